"""Makes a row of each method: what its step asks of a device, and what a step should not do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.fake_device.fake_step import FakeStep, graphs
from benchmarks.fake_device.step_counts import NOWHERE, Rates
from benchmarks.gpu_check import base_scale_specs
from benchmarks.gpu_check.measured_rows import MeasuredRows
from plumbline.core.errors import PlumblineError, nearest
from plumbline.specs import study_config

BASELINE = base_scale_specs.BASELINE
#: Files whose matrix products may be float32 -> why.
SINGLE_PRODUCTS = {
    "src/plumbline/model/residual/_sources.py": "weighted sums of the stream's sources: thin, of a float32 stream",
    "src/plumbline/model/residual/_streams.py": "mixing of a few streams: thin, of float32 streams",
    "src/plumbline/model/mixers/_base.py": "explicit scores, of mixers that fold into no kernel",
}
#: Layers that torch.compile traces: more are more of the same, and take it minutes.
TRACED_LAYERS = 4
#: Micro-batches that a device accumulates to a step of the base scale: 512 sequences on eight devices.
ACCUMULATED = 8


def specs(names: list[str] | None) -> dict[str, Any]:
    """The base scale's first run of each method and variant at paper size, in the study's order.

    Runs that differ from another in training alone (a rate, a decay, the hardware) take the same step and are left out.
    A name may also be that of a run of any study, as ``key_norms/base/as_published/s42``.

    Raises:
        PlumblineError: there is no such method or run.
    """
    if names is not None:
        return {name: _spec(name) for name in names}
    found, models = {}, []
    for name, spec in base_scale_specs.runs("paper").items():
        if spec.model not in models:
            models.append(spec.model)
            found[name] = spec
    return found


def _spec(name: str) -> Any:
    known = base_scale_specs.runs("paper")
    if "/" in name:
        known = {key: run.spec for key, run in study_config.load(name.partition("/")[0], "paper").runs.items()}
    if name not in known:
        raise PlumblineError(
            f"--methods {name}: there is no such one{nearest(name, known)} (there are {sorted(known)})"
        )
    return known[name]


def rows(chosen: dict[str, Any], sequences: int, layers: int | None, trace: bool) -> Iterator[dict[str, Any]]:
    """A row for each spec.

    Args:
        layers: of each model, in place of its own.
        trace: have torch.compile trace the model, and count graphs.
    """
    for name, spec in chosen.items():
        step = FakeStep(spec, sequences, layers=layers)
        row = {"method": name, **counted(step), "without_gradient": step.without_gradient}
        traced = min(layers or spec.model.layers, TRACED_LAYERS)
        yield row | {"graphs": graphs(spec, sequences, layers=traced) if trace else None}


def counted(step: FakeStep) -> dict[str, Any]:
    """What a step's counts come to: of a micro-batch's forward and backward pass, and of an update."""
    counts, rates = step.counts, Rates()
    passes = [call for call in counts.calls if call.phase != "update"]
    update = [call for call in counts.calls if call.phase == "update"]
    return {
        "kernels": sum(call.kernels for call in passes),
        "bytes": sum(call.bytes for call in passes),
        "operations": sum(call.operations for call in passes),
        "seconds": sum(call.seconds(rates) for call in passes),
        "update_kernels": sum(call.kernels for call in update),
        "update_bytes": sum(call.bytes for call in update),
        "update_operations": sum(call.operations for call in update),
        "update_seconds": sum(call.seconds(rates) for call in update),
        "peak_bytes": counts.peak,
        "parameter_bytes": step.parameters,
        "waits": dict(counts.waits),
        "single_products": dict(counts.single_products),
    }


def faults(row: dict[str, Any]) -> list[str]:
    """What a step does that none should, a sentence each."""
    found = [f"the host waits {often} times: {what}" for what, often in row["waits"].items()]
    products = {what: _listed(what) for what in row["single_products"]}
    found += [
        f"a float32 product, {row['single_products'][what]} times: {what}"
        for what, listed in products.items()
        # A backward pass of torch's own has no place: it is that of what is listed, if anything is.
        if not listed and not (what.endswith(NOWHERE) and any(products.values()))
    ]
    found += [f"a gradient that is not of its parameter's type: {name}" for name in row["without_gradient"]]
    if row["graphs"] not in (None, 1):
        found.append(f"{row['graphs']} graphs of torch.compile")
    return found


def _listed(what: str) -> bool:
    return any(what.rpartition(" at ")[2].startswith(f"{file}:") for file in SINGLE_PRODUCTS)


def step_seconds(row: dict[str, Any]) -> float:
    """A whole step: `ACCUMULATED` micro-batches and an update."""
    return ACCUMULATED * row["seconds"] + row["update_seconds"]


def measured(root: Path, section: str = "eager_steps") -> dict[str, float]:
    """Seconds of a step of one micro-batch by method, from the newest table that `make gpu-check` has left."""
    found: dict[str, float] = {}
    for path in sorted(root.glob("benchmarks/gpu_check_*.json"), key=lambda path: path.stat().st_mtime):
        rows = MeasuredRows.read(path).rows(section)
        found |= {key.partition(",")[0]: row["seconds"] for key, row in rows.items() if "seconds" in row}
    return found
