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
    runs = _all_runs()
    if names is not None:
        for name in names:
            if name not in runs:
                raise PlumblineError(
                    f"--methods {name}: there is no such one{nearest(name, runs)} (there are {sorted(runs)})"
                )
        return {name: runs[name] for name in names}
    first: dict[str, str] = {}
    for name, run in runs.items():
        first.setdefault(step_memory.step_kind(run.spec), name)
    return {name: runs[name] for name in first.values()}


def _all_runs() -> dict[str, Run]:
    """All runs of all studies at paper size; those of the transfer study's base scale by their method as well."""
    runs = {
        key: run
        for study in study_folders.list_runnable_studies(ROOT)
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
        spec, count = run.spec, sequences or usual[run.size]
        step = FakeStep(spec, count, layers=layers)
        row = {"method": name, "kind": step_memory.step_kind(spec), "sequences": count, **count_step(step)}
        row |= {"without_gradient": step.without_gradient, "unfinished": step.unfinished}
        traced = min(layers or spec.model.layers, TRACED_LAYERS)
        graph_count, why = graphs(spec, count, layers=traced) if trace else (None, None)
        yield row | {"graphs": graph_count, "no_graph": why}


def count_step(step: FakeStep) -> dict[str, Any]:
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
    sentences = [f"the host waits {often} times: {place}" for place, often in row["waits"].items()]
    products = {place: _is_listed(place) for place in row["single_products"]}
    sentences += [
        f"a float32 product, {row['single_products'][place]} times: {place}"
        for place, listed in products.items()
        # A backward pass of torch's own has no place: it is that of what is listed, if anything is.
        if not listed and not (place.endswith(NOWHERE) and any(products.values()))
    ]
    sentences += [f"a gradient that is not of its parameter's type: {name}" for name in row["without_gradient"]]
    if row["unfinished"]:
        sentences.append(f"the step cannot go on: {row['unfinished']}")
    if row["graphs"] not in (None, 1):
        why = f": {row['no_graph']}" if row["no_graph"] else ""
        sentences.append(f"{row['graphs']} graphs of torch.compile{why}")
    return sentences


def _is_listed(product: str) -> bool:
    return any(product.rpartition(" at ")[2].startswith(f"{file}:") for file in SINGLE_PRODUCTS)


#: Device -> method -> seconds.
Measured = dict[str, dict[str, float]]


def read_timings(root: Path) -> Measured:
    """Seconds of a compiled step of one micro-batch by device and method, as `make gpu-check` has measured them, the
    newest of each device. What a rehearsal left is none.

    Raises:
        PlumblineError: a table does not say what it was measured on.
    """
    times_by_device: Measured = {}
    for path in sorted(root.glob("benchmarks/gpu_check_*.json"), key=lambda path: path.stat().st_mtime):
        state = MeasuredRows.read(path)
        call, rows = state.told(), state.rows("compiled_method_steps")
        if call["rehearsal"]:
            continue
        times = {key.partition(",")[0]: row["seconds"] for key, row in rows.items() if "seconds" in row}
        if times:
            times_by_device[call["device"]] = times_by_device.get(call["device"], {}) | times
    return times_by_device


def timing_columns(times_by_device: Measured) -> tuple[str, ...]:
    """Heads of the columns of what was measured, one a device; one without any."""
    label = "micro-batch and update, ms, measured"
    return tuple(f"{label}: {device}" for device in times_by_device) or (label,)


def timing_cells(times_by_device: Measured, method: str) -> tuple[str, ...]:
    """A method's cells in these columns."""
    device_times = times_by_device.values() or [{}]
    return tuple(f"{1e3 * times[method]:.0f}" if method in times else "not measured" for times in device_times)
