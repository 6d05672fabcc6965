"""Counts operations by the transfer study's own formula (appendix C.1), which its Table 4 uses. No other study uses it;
what the modules really compute is `plumbline.model.flops.counted`."""

from __future__ import annotations

from torch import nn

from plumbline.model.decoder import on_meta
from plumbline.model.roles import collect_roles
from plumbline.specs.spec import ModelSpec


def appendix_c(model: ModelSpec, sequences: int = 1) -> int:
    """Training operations on `sequences` sequences by the printed formula.

    For each layer 2 s^2 d + s (2 (2 d^2 + 2 d d_kv) + 2 k d d_inter), times 3, with the context s, width d, key and
    value width d_kv, and k matrices of inner width d_inter in the FFN. Neither the head nor a second s^2 d for the
    weighted values is in it, nor what a method changes in its projections. A gate on head outputs adds 2 s for each
    of its weights (2 s d heads), which the text does not write down but its Table 4 has.

    The FFN's k d d_inter and the gate's weights are read from the modules, so that no component's name is asked for.
    """
    s, d = model.context, model.width
    scores = 2 * s * s * d
    projections = 2 * (2 * d * d + 2 * d * model.key_value_heads * model.head_width)
    layers = (
        scores + s * (projections + 2 * (_weights(block.ffn) + _weights(block.attention.output)))
        for block in on_meta(model).blocks
    )
    return 3 * sequences * sum(layers)


def _weights(module: nn.Module) -> int:
    """Weights of a module's matrices."""
    values = dict(module.named_parameters())
    return sum(values[name].numel() for name, role in collect_roles(module).items() if role.matrix)
