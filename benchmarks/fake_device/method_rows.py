"""Makes a row of each kind of step: what it takes of a device's memory, and what a step should not do."""

from __future__ import annotations

from typing import Any

from benchmarks.fake_device.fake_step import FakeStep
from benchmarks.fake_device.step_counts import NOWHERE, ROOT
from benchmarks.gpu_check import base_scale_specs
from plumbline.core.errors import PlumblineError, nearest
from plumbline.plan import step_memory
from plumbline.specs import study_config, study_folders
from plumbline.specs.spec import RunSpec
from plumbline.specs.study_config import Run

#: Files whose matrix products may be float32 -> why.
SINGLE_PRODUCTS = {
    "src/plumbline/model/residual/_sources.py": "weighted sums of the stream's sources: thin, of a float32 stream",
    "src/plumbline/model/residual/_streams.py": "mixing of a few streams: thin, of float32 streams",
    "src/plumbline/model/mixers/_base.py": "explicit scores, of mixers that fold into no kernel and of interventions",
    "src/plumbline/train/interventions/_heads.py": "spectral norms of heads, in float64",
}


def specs(names: list[str] | None) -> dict[str, Run]:
    """The first run of each kind of step at paper size: of the transfer study's base scale by its method's or variant's
    name, in the study's order, then of all others by their keys, as ``key_norms/base/as_published/s42``.

    Runs that differ from another in numbers of training alone (a rate, a decay, the hardware) take the same step and
    are left out. `names` may be any method's of the base scale, or any run's.

    Raises:
        PlumblineError: there is no such method or run.
    """
    every = {
        key: run
        for study in study_folders.list_runnable_studies(ROOT)
        for key, run in study_config.load(study, "paper").runs.items()
    }
    runs = {spec.method: every[spec.key] for spec in base_scale_specs.runs("paper").values()} | every
    for name in names or ():
        if name not in runs:
            raise PlumblineError(f"--methods {name}: there is no such one{nearest(name, runs)}")
    if names is not None:
        return {name: runs[name] for name in names}
    first: dict[str, str] = {}
    for name, run in runs.items():
        first.setdefault(step_memory.step_kind(run.spec), name)
    return {name: runs[name] for name in first.values()}


def make_row(name: str, spec: RunSpec, sequences: int, layers: int | None) -> dict[str, Any]:
    """What a step of so many sequences at a time comes to; `layers` of the model in place of its own."""
    step = FakeStep(spec, sequences, layers=layers)
    counts = step.counts
    memory = {
        "peak_bytes": max(counts.peaks.values()),
        "passes_peak_bytes": max(counts.peaks["forward"], counts.peaks["backward"]),
        "held_bytes": step.held,
        "parameter_bytes": step.parameters,
    }
    doings = {"waits": counts.waits, "declared_waits": counts.declared, "single_products": counts.single_products}
    head = {"method": name, "kind": step_memory.step_kind(spec), "sequences": sequences}
    return head | memory | doings | {"without_gradient": step.without_gradient, "unfinished": step.unfinished}


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
    return sentences + ([f"the step cannot go on: {row['unfinished']}"] if row["unfinished"] else [])


def _is_listed(product: str) -> bool:
    return any(product.rpartition(" at ")[2].startswith(f"{file}:") for file in SINGLE_PRODUCTS)
