"""Writes what made-up runs of a study's small.yaml leave, as training, probing and scoring leave it.

A world is a folder of runs. What each arm measures is chosen by hand: as the paper has it, the other way round, or the
same for all arms; what becomes of single runs is a change of it.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from plumbline.core import fingerprint_file
from plumbline.core import frames as schemas
from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.runs import finished_runs
from plumbline.results.runs.expected_runs import list_expected_runs
from plumbline.specs import small_file, small_runs, study_config, study_parts
from plumbline.specs.small_file import SmallFile
from plumbline.specs.small_runs import StatedRun
from plumbline.specs.study_config import Study
from tests.studies.run_files import MadeRun, make_run

ROOT = Path(__file__).resolve().parents[3]
#: Study -> arm -> its final loss above the best one's, where the paper is right.
LOSSES: dict[str, dict[str, float]] = {
    "key_norms": {},
    "premature": {"gpt": 0.08, "gpt_swiglu": 0.02, "gpt_geglu": 0.02, "global_half_lr": 0.07, "entropy_floor": 0.06},
    "query_free": {
        **{"baseline": 0.05, "baseline_reduced_schedule": 0.05, "baseline.untied": 0.04},
        "wq_identity_large_mlp": -0.01,
        **{"baseline_small_mlp": 0.06, "baseline_small_d": 0.05, "wq_identity_baseline_schedule": 0.06},
    },
    "quack": {
        **{"default.eta_0.003": 0.15, "default.eta_0.03": 0.15, "qk_norm.eta_0.003": 0.1, "qk_clip_30.eta_0.03": 0.1},
        **{"qk_clip_100.eta_0.03": 0.12, "ablation.eta_0.03-tau_0.1": 0.2},
    },
    "transfer": {
        **{"baseline": 0.3, "softpick": 0.0, "sigmoid_attn": 0.05, "layerscale": 0.1, "ssmax": 0.6, "diff_attn": 0.7},
        **{"sandwich_norm": 0.5, "relu_squared": 0.15, "gated_attn_qknorm": 0.2, "qknorm": 0.35, "attnres": 0.4},
        **{"value_residual": 0.25, "hybrid_norm": 0.45},
    },
}
#: Study -> probe -> what all measure if no idea is true, and of each arm the first half of layers and the second.
PROBES: dict[str, dict[str, tuple[float, dict[str, tuple[float, float]]]]] = {
    "key_norms": {
        "key_norm": (8.0, {"as_published": (5.3, 9.8), "no_decay": (8.2, 10.0), "frozen_gains": (8.0, 8.0)}),
        "entropy": (0.7, {"as_published": (0.9, 0.5), "no_decay": (0.8, 0.5), "frozen_gains": (0.8, 0.7)}),
    },
    "premature": {
        "entropy": (0.8, {"gpt": (0.8, 0.6), "gpt_slow": (0.8, 0.95)}),
        "loss_neither": (5.0, {"gpt": (6.0, 6.0), "gpt_slow": (4.8, 4.8)}),
        "loss": (4.5, {"gpt": (4.6, 4.6), "gpt_slow": (4.4, 4.4)}),
        "lower_copy": (0.02, {"gpt": (0.02, 9.0), "gpt_slow": (0.04, 9.0)}),
        "bilinear_displacement": (
            0.15,
            {"gpt": (9.0, 0.3), "mult_0p5": (9.0, 0.22), "gpt_slow": (9.0, 0.15), "mult_0p125": (9.0, 0.09)},
        ),
    },
    "query_free": {},
    "quack": {"logit_change": (0.2, {"default.eta_0.03": (0.3, 0.3), "quack.eta_0.03-tau_1": (0.1, 0.1)})},
    "transfer": {},
}
BEST_LOSS, SPREAD, RELEASED = 4.4, 0.01, 0.04
#: What a loss has for each decade, squared, that the rate is off 1: little where rates are compared, and most train.
CURVATURE = {"quack": 0.02}


@dataclass
class Made:
    """What a run is to leave: `ended` is completed, diverged or missing; `probes`: (probe, layer or None, value);
    `measured`: what is read of it beside its own files."""

    loss: float
    ended: str = "completed"
    released: float | None = RELEASED
    score: float = -80.0
    measured: set[str | None] = field(default_factory=set)
    probes: list[tuple[str, int | None, float]] = field(default_factory=list)


#: Changes what a run is to leave.
Change = Callable[[StatedRun, Made], None]


@cache
def load_study(root: Path, name: str) -> tuple[Study, SmallFile, list[StatedRun]]:
    """A study as it lies below a root, with its statements and their runs."""
    study, small = study_config.load(name, "evening", root), small_file.load_small(name, root)
    return study, small, small_runs.list_stated_runs(study.definition, small, root)


def lay_root(root: Path, name: str, rates: str = "") -> Path:
    """A folder with the study's two files, and the chosen rates if there are some."""
    folder = root / "studies" / name
    folder.mkdir(parents=True)
    (root / "config").symlink_to(ROOT / "config")
    for file in ("study.yaml", "small.yaml"):
        (folder / file).symlink_to(ROOT / "studies" / name / file)
    if rates:
        (folder / "small_rates.yaml").write_text(rates, encoding="utf-8")
    return root


def write_world(
    root: Path, name: str, work: Path, statements: Collection[str], ways: Mapping[str, float], change: Change | None
) -> None:
    """Write the runs of some statements at some sizes.

    Args:
        statements: their ids; none for all.
        ways: size -> 1 where the paper is right, -1 where it has it the wrong way round, 0 where arms are all alike.
    """
    made: dict[str, tuple[StatedRun, Made]] = {}
    runs = load_study(root, name)[2]
    measured: dict[str, set[str | None]] = {}
    for run in runs:
        measured.setdefault(run.spec.key, set()).add(run.measured)
    for run in runs:
        if run.size in ways and run.rate is not None and (not statements or run.statement in statements):
            if run.spec.key not in made:
                made[run.spec.key] = run, draw(name, run, ways[run.size])
                made[run.spec.key][1].measured = measured[run.spec.key]
            one = made[run.spec.key][1]
            if change is not None:
                change(run, one)
    for run, one in made.values():
        if one.ended != "missing":
            write_run(work, run, one)


def draw(name: str, run: StatedRun, way: float) -> Made:
    """What a run leaves by itself; noise is its own, whatever else is drawn."""
    rng = np.random.default_rng(zlib.crc32(run.spec.key.encode()))
    losses, layers = LOSSES[name], run.spec.model.layers
    middle = float(np.mean(list(losses.values()))) if losses else 0.0
    loss = BEST_LOSS + middle + way * (losses.get(run.arm, 0.0) - middle) + rng.normal(0, SPREAD)
    loss += CURVATURE.get(name, 0.5) * math.log10(run.rate or 1.0) ** 2
    probes: list[tuple[str, int | None, float]] = []
    for probe, (level, of_arms) in PROBES[name].items():
        for half, value in enumerate(of_arms.get(run.arm, (level, level))):
            mean = level + way * (value - level) + SPREAD * level * float(rng.normal())
            if probe in ("loss", "loss_neither", "logit_change"):
                probes += [(probe, None, mean)] if half else []
            else:
                here = range(half * layers // 2, (half + 1) * layers // 2)
                probes += [(probe, layer, mean + 0.1 * float(rng.normal()) * SPREAD) for layer in here]
    released = RELEASED if way > 0 else 0.12 if way == 0 else 0.2
    score = -80 - 10 * way * (losses.get(run.arm, 0.0) - middle) + float(rng.normal(0, 0.3))
    return Made(loss=loss, probes=probes, released=released, score=score)


def write_run(work: Path, run: StatedRun, one: Made) -> None:
    """Write a run's files, without the waiting for a disk that real ones have."""
    spec = run.spec
    release = {"interventions": [{"fraction": one.released, "released": 1, "why": "online"}]}
    written = make_run(
        spec,
        pd.DataFrame(),
        step=spec.train.steps,
        loss=one.loss,
        diverged="no number" if one.ended == "diverged" else "",
        outcome=release if run.spec.interventions else {"interventions": []},
    )
    folder = work / "runs" / spec.key
    folder.mkdir(parents=True)
    for file in ("outcome", "manifest"):
        (folder / f"{file}.json").write_text(json.dumps(getattr(written, file)), encoding="utf-8")
    if "probes" in one.measured:
        _write_frame("probes", work, written, _list_probe_rows(one), {"validation_fingerprint": "e" * 16})
    if "scores" in one.measured and one.ended == "completed":
        row = {"metric": "logprob_gold", "stderr": 1.0, "items": 100, "task_source": "proxy", "harness_version": "0.4"}
        tasks = {"first": 30.0, "second": -30.0}
        rows = [row | {"task": task, "value": one.score + shift} for task, shift in tasks.items()]
        rows += [row | {"task": task, "value": 0.5, "metric": "acc", "primary": True} for task in tasks]
        _write_frame("scores", work, written, [{"primary": False} | each for each in rows], {})


def _list_probe_rows(one: Made) -> list[dict[str, Any]]:
    """Rows at each fraction that a statement asks for, of two heads where there are layers, and misleading ones."""
    rows = []
    for fraction in (0.03, 0.2, 0.5, 1.0):
        for probe, layer, value in one.probes:
            shift = 40.0 if fraction == 0.5 else 0.0
            base = {"fraction": fraction, "step": round(1000 * fraction), "probe": probe, "source": "online"}
            if layer is None:
                rows.append(base | {"value": value + shift})
            else:
                for head, way in ((0, 1), (1, -1)):
                    rows.append(base | {"layer": layer, "head": head, "value": value + shift + 0.25 * way})
    return rows


def _write_frame(name: str, work: Path, run: MadeRun, rows: list[dict[str, Any]], labels: dict[str, str]) -> None:
    schema = schemas.SCHEMAS[name]
    frame = pd.DataFrame(rows, columns=schema.names).assign(run_id=run.spec.run_id)
    labels |= {"probes": json.dumps({probe.name: "c" * 16 for probe in run.spec.probes}), "device": "cpu"}
    path = work / name / run.spec.key / f"{name}.parquet"
    path.parent.mkdir(parents=True)
    table = pa.Table.from_pandas(frame, schema=schema, preserve_index=False)
    pq.write_table(table.replace_schema_metadata({b"frame": name.encode(), **_encode(labels)}), path)
    fingerprint_file.write(path, "made up")


def _encode(labels: Mapping[str, str]) -> dict[bytes, bytes]:
    return {key.encode(): value.encode() for key, value in labels.items()}


def make_table(root: Path, name: str, work: Path) -> pd.DataFrame:
    """The project's table of a world, as its command makes it."""
    study = load_study(root, name)[0]
    entry = study.definition["targets"]["small"]
    frames = finished_runs.load(
        list_expected_runs(None, study, entry["runs"], work),
        work,
        average=study.suite.average if study.suite else "",
        scores="scores" in entry["reads"],
        probes="probes" in entry["reads"],
        probed_groups=entry["read_of"].get("probes"),
    )
    make = study_parts.function(study.code, "tables", "small")
    table: pd.DataFrame = make(frames, study, PrintedNumbers.of(study.code, reads=[])).frame
    return table.assign(size=table["row"].str.split("/").str[1])
