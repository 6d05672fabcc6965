"""Made-up runs, as training and probing leave them: as files, or held in the place of others that were read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
import pyarrow as pa

from plumbline.core import fingerprint_file, frames
from plumbline.core.run_files import MISSING
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.specs.spec import RunSpec

World = TypeVar("World")


def keep_read(world: World) -> World:
    """The same world, which keeps what was read of it: for one of which nothing is written any more."""
    world.load = cache(world.load)
    return world


@dataclass(frozen=True, kw_only=True, slots=True)
class MadeRun:
    """What a made-up run leaves behind."""

    spec: RunSpec
    outcome: dict[str, Any]
    manifest: dict[str, Any]
    metrics: pd.DataFrame
    probes: pd.DataFrame | None = None
    scores: pd.DataFrame | None = None


def make_run(
    spec: RunSpec, metrics: pd.DataFrame, probes: pd.DataFrame | None = None, scores: pd.DataFrame | None = None, *,
    step: int, loss: float | None, diverged: str = "", outcome: dict[str, Any] | None = None,
    made_on: dict[str, Any] | None = None,
) -> MadeRun:  # fmt: skip
    """A run that came to `step` and ended there with `loss`, or `diverged` for a reason; `outcome` and `made_on` are
    what its outcome and its manifest say besides."""
    identity = {"run_id": spec.run_id, "study": spec.study, "preset": spec.preset, "scale": spec.scale}
    identity |= {"method": spec.method}
    ended = {"init_seed": spec.init_seed, "outcome": "diverged" if diverged else "completed", "step": step}
    ended |= {"steps": spec.train.steps, "validation_loss": None if diverged else loss, "reason": diverged or None}
    ended |= {"last_finite_loss": 2.6, "last_finite_step": step - bool(diverged)}
    manifest = {"spec": spec.to_dict(), "git_commit": "0" * 40, "git_dirty": False, "packages": {"torch": "2.13.0"}}
    manifest |= {"data_fingerprint": "d" * 16, "validation_fingerprint": "e" * 16, "host": "here"}
    manifest |= {"wall_seconds": 12.5, "attempts": 1, "started": "t0", "finished": "t1", "parameters": 1216710656}
    return MadeRun(
        spec=spec,
        outcome=identity | ended | (outcome or {}),
        manifest=identity | manifest | (made_on or {"device": "cpu"}),
        metrics=metrics,
        probes=probes,
        scores=scores,
    )


def write_frame(frame: pd.DataFrame, name: str, path: Path, metadata: dict[str, str] | None = None) -> None:
    """Write scores or probes with the small file that their makers leave next to them."""
    frames.write(frame, name, path, metadata)
    fingerprint_file.write(path, "made up")


def write_run(root: Path, run: MadeRun) -> None:
    """Write a run's files."""
    folder = root / "runs" / run.spec.key
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("outcome", "manifest"):
        text = json.dumps(getattr(run, name), allow_nan=False)
        (folder / f"{name}.json").write_text(text, encoding="utf-8")
    frames.write(run.metrics, "metrics", folder / "metrics.parquet")
    if run.probes is not None:
        labels = {"probes": json.dumps({probe.name: "c" * 16 for probe in run.spec.probes}), "torch": "2.13.0"}
        labels |= {"validation_fingerprint": "e" * 16, "device": "cpu"}
        write_frame(run.probes, "probes", root / "probes" / run.spec.key / "probes.parquet", labels)
    if run.scores is not None:
        write_frame(run.scores, "scores", root / "scores" / run.spec.key / "scores.parquet")


@dataclass(frozen=True, kw_only=True)
class ExchangedRuns(RunFrames):
    """Frames in which some runs are others, of which nothing is written."""

    before: RunFrames
    anew: Mapping[str, MadeRun | None]

    def metrics(self, key: str) -> pd.DataFrame:
        """A run's frame: of one that is held, or of the files of before."""
        if key not in self.anew:
            return self.before.metrics(key)
        run = self.anew[key]
        return pd.DataFrame(columns=frames.SCHEMAS["metrics"].names) if run is None else run.metrics


def exchange_runs(before: RunFrames, anew: Mapping[str, MadeRun | None], work: Path | None = None) -> ExchangedRuns:
    """What `load` would read if some runs had been others (None: missing); measurements lie below `work`."""
    rows = before.runs.to_dict("index")
    made = {key: run for key, run in anew.items() if run is not None}
    for key, run in anew.items():
        rows[key] |= dict.fromkeys(_ENDS) | {"outcome": MISSING} if run is None else _ends(run, before.average)

    def join(name: str) -> pd.DataFrame:
        old, new = getattr(before, name), [_as_read(run, name) for run in made.values()]
        rest = old[~old["key"].isin(list(anew))] if len(old) else old
        filled = [frame for frame in (rest, *new) if len(frame)]
        return pd.concat(filled, ignore_index=True) if filled else rest

    def update(name: str) -> dict[str, Any]:
        old = {key: content for key, content in getattr(before, f"{name}s").items() if key not in anew}
        return old | {key: getattr(run, name) for key, run in made.items()}

    values = {field.name: getattr(before, field.name) for field in fields(RunFrames)}
    with pd.option_context("mode.string_storage", "python"):
        runs = pd.DataFrame.from_dict(rows, orient="index", columns=before.runs.columns).rename_axis("key")
    values |= {"runs": runs.astype(dict.fromkeys(("last_finite_loss", "validation_loss", "average"), float))}
    values |= {name: join(name) for name in ("scores", "probes")}
    values |= {"outcomes": update("outcome"), "manifests": update("manifest"), "work": work or before.work}
    return ExchangedRuns(before=before, anew=anew, **values)


#: Columns of `RunFrames.runs` that a run has once it ended.
_ENDS = ("outcome", "steps", "step", "last_finite_step", "reason", "last_finite_loss", "validation_loss", "average")
_ENDS += ("parameters", "device")


def _ends(run: MadeRun, average: str) -> dict[str, Any]:
    row = {name: run.outcome.get(name) for name in _ENDS} | {name: run.manifest.get(name) for name in _ENDS[-2:]}
    if run.scores is not None and len(run.scores):
        row["average"] = run.scores.set_index("task")["value"][average]
    return row


def _as_read(run: MadeRun, name: str) -> pd.DataFrame:
    """A run's frame as it comes back from its file, with where the run stands."""
    schema, frame = frames.SCHEMAS[name], getattr(run, name)
    if frame is None:
        return pd.DataFrame()
    table = pa.Table.from_pandas(frame[schema.names], schema=schema, preserve_index=False)
    frame = table.replace_schema_metadata().to_pandas()
    spec = run.spec
    return frame.assign(key=spec.key, scale=spec.scale, method=spec.method, seed=spec.init_seed)
