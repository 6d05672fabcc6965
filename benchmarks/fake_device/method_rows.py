"""Makes a row of each method: what its step asks of a device, and what a step should not do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.fake_device.fake_step import FakeStep, graphs
from benchmarks.fake_device.step_counts import NOWHERE, ROOT, Rates
from benchmarks.gpu_check import base_scale_specs
from benchmarks.gpu_check.measured_rows import MeasuredRows
from plumbline.core.errors import PlumblineError, nearest
from plumbline.plan import machines, step_memory
from plumbline.specs import study_config, study_folders
from plumbline.specs.study_config import Run

BASELINE = base_scale_specs.BASELINE
#: Of config/machines.yaml: whose micro-batches are counted, and whose memory the page goes by.
MACHINE = "h100"
#: Files whose matrix products may be float32 -> why.
SINGLE_PRODUCTS = {
    "src/plumbline/model/residual/_sources.py": "weighted sums of the stream's sources: thin, of a float32 stream",
    "src/plumbline/model/residual/_streams.py": "mixing of a few streams: thin, of float32 streams",
    "src/plumbline/model/mixers/_base.py": "explicit scores, of mixers that fold into no kernel and of interventions",
    "src/plumbline/train/interventions/_heads.py": "spectral norms of heads, in float64",
}
#: Layers that torch.compile traces: more are more of the same, and take it minutes.
TRACED_LAYERS = 4
#: Micro-batches that a device accumulates to a step of the base scale: 512 sequences on eight devices.
ACCUMULATED = 8


def specs(names: list[str] | None) -> dict[str, Run]:
    """The first run of each kind of step at paper size: of the transfer study's base scale by its method's or variant's
    name, in the study's order, then of all others by their keys, as ``key_norms/base/as_published/s42``.

    Runs that differ from another in numbers of training alone (a rate, a decay, the hardware) take the same step and
    are left out. `names` may be any method's of the base scale, or any run's.

    Raises:
        PlumblineError: there is no such method or run.
    """
    known = _known()
    if names is not None:
        for name in names:
            if name not in known:
                raise PlumblineError(
                    f"--methods {name}: there is no such one{nearest(name, known)} (there are {sorted(known)})"
                )
        return {name: known[name] for name in names}
    first: dict[str, str] = {}
    for name, run in known.items():
        first.setdefault(step_memory.step_kind(run.spec), name)
    return {name: known[name] for name in first.values()}


def _known() -> dict[str, Run]:
    """All runs of all studies at paper size; those of the transfer study's base scale by their method as well."""
    runs = {
        key: run
        for study in study_folders.runnable(ROOT)
        for key, run in study_config.load(study, "paper").runs.items()
    }
    base = {spec.method: runs[spec.key] for spec in base_scale_specs.runs("paper").values()}
    return base | runs


def rows(chosen: dict[str, Run], sequences: int | None, layers: int | None, trace: bool) -> Iterator[dict[str, Any]]:
    """A row for each run.

    Args:
        sequences: at a time; by default what profiles/slurm gives a device.
        layers: of each model, in place of its own.
        trace: have torch.compile trace the model, and count graphs.
    """
    usual = machines.load(MACHINE).micro_batch
    for name, run in chosen.items():
        spec, taken = run.spec, sequences or usual[run.size]
        step = FakeStep(spec, taken, layers=layers)
        row = {"method": name, "kind": step_memory.step_kind(spec), "sequences": taken, **counted(step)}
        row |= {"without_gradient": step.without_gradient, "unfinished": step.unfinished}
        traced = min(layers or spec.model.layers, TRACED_LAYERS)
        made, why = graphs(spec, taken, layers=traced) if trace else (None, None)
        yield row | {"graphs": made, "no_graph": why}


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
        "peak_bytes": max(counts.peaks.values()),
        "passes_peak_bytes": max(counts.peaks["forward"], counts.peaks["backward"]),
        "held_bytes": step.held,
        "parameter_bytes": step.parameters,
        "waits": dict(counts.waits),
        "declared_waits": dict(counts.declared),
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
    if row["unfinished"]:
        found.append(f"the step cannot go on: {row['unfinished']}")
    if row["graphs"] not in (None, 1):
        why = f": {row['no_graph']}" if row["no_graph"] else ""
        found.append(f"{row['graphs']} graphs of torch.compile{why}")
    return found


def _listed(what: str) -> bool:
    return any(what.rpartition(" at ")[2].startswith(f"{file}:") for file in SINGLE_PRODUCTS)


def step_seconds(row: dict[str, Any]) -> float:
    """A whole step: `ACCUMULATED` micro-batches and an update."""
    return ACCUMULATED * row["seconds"] + row["update_seconds"]


#: Device -> method -> seconds.
Measured = dict[str, dict[str, float]]


def measured(root: Path, section: str = "eager_steps") -> Measured:
    """Seconds of a step of one micro-batch by device and method, as tables of `make gpu-check` have them, the newest of
    each device. What a rehearsal left is none.

    Raises:
        PlumblineError: a table does not say what it was measured on.
    """
    found: Measured = {}
    for path in sorted(root.glob("benchmarks/gpu_check_*.json"), key=lambda path: path.stat().st_mtime):
        state = MeasuredRows.read(path)
        told, rows = state.told(), state.rows(section)
        if told["rehearsal"]:
            continue
        times = {key.partition(",")[0]: row["seconds"] for key, row in rows.items() if "seconds" in row}
        if times:
            found[told["device"]] = found.get(told["device"], {}) | times
    return found


def measured_columns(found: Measured) -> tuple[str, ...]:
    """Heads of the columns of what was measured, one a device; one without any."""
    words = "micro-batch and update, ms, measured"
    return tuple(f"{words}: {device}" for device in found) or (words,)


def measured_cells(found: Measured, method: str) -> tuple[str, ...]:
    """A method's cells in these columns."""
    times = found.values() or [{}]
    return tuple(f"{1e3 * one[method]:.0f}" if method in one else "not measured" for one in times)
