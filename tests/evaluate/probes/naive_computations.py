"""What tests of probes share: what goes by in a model, computed without any identity; and the largest tensor made."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from plumbline.evaluate.probes import ProbeValue
from plumbline.model.decoder import Decoder, create
from tests.model_specs import small

Key = tuple[str, int | None, int | None]


def keyed(probe_values: Iterable[ProbeValue]) -> dict[Key, ProbeValue]:
    """Readings by what they are of; each is there once."""
    by_key = {(probe_value.probe, probe_value.layer, probe_value.head): probe_value for probe_value in probe_values}
    return by_key


def has_hooks(model: torch.nn.Module) -> bool:
    """Whether something watches a module of `model`. torch exposes to nobody which hooks a module has."""
    return any(module._forward_pre_hooks or module._forward_hooks for module in model.modules())  # noqa: SLF001


def tokens(model: Decoder, sequences: int = 2, *, vocabulary: int | None = None, seed: int = 3) -> torch.Tensor:
    """Sequences of the model's context, of tokens below `vocabulary`."""
    generator = torch.Generator().manual_seed(seed)
    shape = (sequences, model.spec.context)
    return torch.randint(0, vocabulary or model.spec.vocabulary, shape, generator=generator)


def scramble(**overrides: Any) -> Decoder:
    """A small model in float64 with parameters far from their start: attention is sharp, gains and biases matter."""
    model = create(small(init_std=0.2, **overrides), init_seed=1).double()
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator)
    return model


def trace(model: Decoder, place: Callable[[Any], torch.nn.Module], batch_BT: torch.Tensor) -> list[tuple[Any, Any]]:
    """Inputs and output of a module of each layer, for the inputs of whole sequences."""
    by_layer: dict[int, tuple[Any, Any]] = {}
    hooks = [
        place(block).register_forward_hook(
            lambda _, inputs, output, layer=layer: by_layer.update({layer: (inputs, output)})
        )
        for layer, block in enumerate(model.blocks)
    ]
    with torch.no_grad():
        model(batch_BT[:, :-1])
    for hook in hooks:
        hook.remove()
    return [by_layer[layer] for layer in range(len(model.blocks))]


def naive_scores(model: Decoder, batch_BT: torch.Tensor) -> list[torch.Tensor]:
    """All scores (B, H, T, T) of each layer, -inf above the diagonal; keys repeated for their heads."""
    scores = []
    for (q_BHTW, k_BGTW, *_), _ in trace(model, lambda block: block.attention.mixer, batch_BT):
        k_BHTW = k_BGTW.repeat_interleave(q_BHTW.shape[1] // k_BGTW.shape[1], dim=1)
        z_BHTT = q_BHTW @ k_BHTW.transpose(-1, -2) / q_BHTW.shape[-1] ** 0.5
        hidden_TT = torch.ones(z_BHTT.shape[-2:], dtype=torch.bool).triu(1)
        scores.append(z_BHTT.masked_fill(hidden_TT, float("-inf")))
    return scores


class Largest(TorchDispatchMode):
    """Notes the number of elements of the largest tensor that is made."""

    def __init__(self) -> None:
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), options: Any = None) -> Any:
        result = operation(*args, **(options or {}))
        sizes = [leaf.numel() for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)]
        self.elements = max([self.elements, *sizes])
        return result
