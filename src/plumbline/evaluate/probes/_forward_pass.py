"""Runs one pass of a model over some sequences, which all probes share."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from plumbline.core.errors import PlumblineError
from plumbline.evaluate.probes._base import SITES, Probe, ProbedModel, ProbeValue
from plumbline.evaluate.probes._decoder import ProbedDecoder
from plumbline.model.decoder import Decoder
from plumbline.specs.components import load
from plumbline.specs.spec import Precision, ProbeSpec


def build(specs: Sequence[ProbeSpec]) -> list[Probe]:
    """Make new probes, in the order of their specs."""
    return [load("probe", spec.name)(**spec.options) for spec in specs]


def read_all(
    model: Decoder,
    specs: Sequence[ProbeSpec],
    tokens_BT: torch.Tensor,
    precision: Precision,
    *,
    init_seed: int | None = None,
    separator: int | None = None,
    others: Mapping[float, ProbedModel] | None = None,
) -> list[ProbeValue]:
    """Read new probes of `specs` on the sequences `tokens_BT` (B, T), each on the first of them that its spec asks for.

    Probes that read the same number of sequences share a pass.

    Args:
        init_seed: of the run, for probes that compare with initial weights.
        separator: the token between documents.
        others: fraction of training -> the run's model there, for probes that compare two points.

    Raises:
        PlumblineError: a probe compares with a point that is not among the others.
    """
    subject = ProbedDecoder(model, precision, init_seed)
    values = []
    for sequences, group in itertools.groupby(sorted(specs, key=_sequence_count), key=_sequence_count):
        probes = build(chosen := list(group))
        for probe, spec in zip(probes, chosen):
            if probe.against is not None:
                probe.other = (others or {}).get(probe.against)
                if probe.other is None:
                    raise PlumblineError(
                        f"probe {spec.name!r} compares two points of a run, and the one at {probe.against:g} is not "
                        "there; give it `at` instead of `every`, and `against` a fraction that is a probe point"
                    )
        values += observe(subject, probes, tokens_BT[:sequences], separator)
    return values


def read(
    model: Decoder,
    probes: Sequence[Probe],
    tokens_BT: torch.Tensor,
    precision: Precision = "float32",
    *,
    separator: int | None = None,
) -> list[ProbeValue]:
    """Read all `probes` on one of our models, by `observe`."""
    return observe(ProbedDecoder(model, precision), probes, tokens_BT, separator)


@torch.no_grad()
def observe(
    subject: ProbedModel, probes: Sequence[Probe], tokens_BT: torch.Tensor, separator: int | None = None
) -> list[ProbeValue]:
    """Read all `probes` on the inputs of `tokens_BT` (B, T), in one pass; the last token is a target only.

    The model is in evaluation mode meanwhile, as in validation. One sequence is fed at a time: what is read depends
    neither on a micro-batch nor on a device's memory. Every rank of a sharded model must call this.
    """
    with contextlib.ExitStack() as whole:
        whole.enter_context(_evaluation_mode(subject.module))
        for probe in probes:
            if probe.other is not None:
                whole.enter_context(_evaluation_mode(probe.other.module))
            probe.begin(subject, separator)
        with contextlib.ExitStack() as stack:
            for site in SITES:
                callbacks = _site_callbacks(probes, site)
                for layer in range(subject.layers) if callbacks else ():
                    stack.enter_context(subject.watch(site, layer, _call_each(callbacks)))
            logits_callbacks = _site_callbacks(probes, "logits")
            for tokens_T in tokens_BT:
                inputs_BT, targets_BT = tokens_T[None, :-1], tokens_T[None, 1:]
                for probe in probes:
                    probe.sequence(inputs_BT, targets_BT)
                logits_BTV = subject.logits(inputs_BT)
                for callback in logits_callbacks:
                    callback(logits_BTV)
        return [probe_value for probe in probes for probe_value in probe.probe_values(subject)]


@contextlib.contextmanager
def _evaluation_mode(module: nn.Module) -> Any:
    """Evaluation mode for the time being."""
    training = module.training
    module.eval()
    try:
        yield
    finally:
        module.train(training)


def _site_callbacks(probes: Sequence[Probe], site: str) -> list[Callable[..., None]]:
    """Methods of the probes that want to know of a site."""
    return [getattr(probe, site) for probe in probes if getattr(type(probe), site) is not getattr(Probe, site)]


def _call_each(callbacks: list[Callable[..., None]]) -> Callable[..., None]:
    def call_all(layer: int, *values: Any) -> None:
        for callback in callbacks:
            callback(layer, *values)

    return call_all


def _sequence_count(probe: ProbeSpec) -> int:
    return probe.sequences
