"""One pass of a model over some sequences, seen by every probe that is there."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from plumbline.model.decoder import Decoder
from plumbline.probes._base import SITES, Probe, Reading
from plumbline.specs.components import load
from plumbline.specs.spec import Precision, ProbeSpec
from plumbline.train.numerics import autocast


def build(specs: Sequence[ProbeSpec]) -> list[Probe]:
    """New probes, in the order of their specs."""
    return [load("probe", spec.name)(**spec.options) for spec in specs]


def read_all(
    model: Decoder, specs: Sequence[ProbeSpec], tokens_BT: torch.Tensor, precision: Precision
) -> list[Reading]:
    """What new probes of `specs` read on the first of the sequences `tokens_BT`, each on its own number of them; those
    that read the same ones share a pass."""
    found = []
    for sequences, together in itertools.groupby(sorted(specs, key=_sequences), key=_sequences):
        found += read(model, build(list(together)), tokens_BT[:sequences], precision)
    return found


@torch.no_grad()
def read(model: Decoder, probes: Sequence[Probe], tokens_BT: torch.Tensor, precision: Precision) -> list[Reading]:
    """The readings of all `probes` on the inputs of `tokens_BT` (B, T), the last token being a target only.

    The model is in evaluation mode meanwhile, as in validation. One sequence is fed at a time: what is read depends
    neither on a micro-batch nor on a device's memory. Every rank of a sharded model must call this.
    """
    with contextlib.ExitStack() as stack:
        for site, path in SITES.items():
            told = [getattr(probe, site) for probe in probes if getattr(type(probe), site) is not getattr(Probe, site)]
            for layer, block in enumerate(model.blocks) if told else ():
                stack.enter_context(_watched(block.get_submodule(path), layer, told))
        stack.callback(model.train, model.training)
        model.eval()
        for tokens_T in tokens_BT:
            with autocast(precision, tokens_BT.device):
                model(tokens_T[None, :-1])
        return [reading for probe in probes for reading in probe.readings(model)]


@contextlib.contextmanager
def _watched(module: nn.Module, layer: int, told: list[Callable[..., None]]) -> Any:
    """Tell what `module` gives out, for the time being."""

    def tell(_: nn.Module, inputs: Any, output: Any) -> None:
        for tell_probe in told:
            tell_probe(layer, *(output if isinstance(output, tuple) else (output,)))

    handle = module.register_forward_hook(tell)
    try:
        yield
    finally:
        handle.remove()


def _sequences(probe: ProbeSpec) -> int:
    return probe.sequences
