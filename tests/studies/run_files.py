"""The files of made-up runs, as training and probing write them; and worlds that are read over and over."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd

from plumbline.core import frames
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.specs.spec import RunSpec

World = TypeVar("World")


def keep_read(world: World) -> World:
    """The same world, which keeps what was read of it: for one of which nothing is written any more."""
    world.load = cache(world.load)
    return world


@dataclass(frozen=True, kw_only=True, slots=True)
class ExchangedRuns(RunFrames):
    """Frames in which some runs were read anew; all others are as they were read before."""

    before: RunFrames
    anew: RunFrames

    def metrics(self, key: str) -> pd.DataFrame:
        """Read a run's frame where its files are."""
        return (self.anew if key in self.anew.runs.index else self.before).metrics(key)


def exchange_runs(before: RunFrames, anew: RunFrames) -> RunFrames:
    """The frames with the runs of `anew` in the place of those that they are instead of."""
    changed = anew.runs.index
    values = {field.name: getattr(before, field.name) for field in fields(RunFrames)} | {"work": anew.work}
    if changed.empty:
        return ExchangedRuns(before=before, anew=anew, **values)

    def join(old: pd.DataFrame, new: pd.DataFrame) -> pd.DataFrame:
        rest = old[~old["key"].isin(changed)] if len(old) else old
        return pd.concat([rest, new], ignore_index=True) if len(new) else rest

    def update(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
        return {key: content for key, content in old.items() if key not in changed} | new

    values["runs"] = pd.concat([before.runs.drop(index=changed), anew.runs]).loc[before.runs.index]
    values |= {name: join(getattr(before, name), getattr(anew, name)) for name in ("scores", "probes")}
    values |= {name: update(getattr(before, name), getattr(anew, name)) for name in ("outcomes", "manifests")}
    return ExchangedRuns(before=before, anew=anew, **values)


def write_run(
    root: Path, spec: RunSpec, metrics: pd.DataFrame, probes: pd.DataFrame | None = None, *, step: int,
    loss: float | None, diverged: str = "", outcome: dict[str, Any] | None = None,
    made_on: dict[str, Any] | None = None,
) -> None:  # fmt: skip
    """Write a run that came to `step` and ended there with `loss`, or `diverged` for a reason; `outcome` and `made_on`
    are what its outcome and its manifest say besides."""
    folder = root / "runs" / spec.key
    folder.mkdir(parents=True, exist_ok=True)
    identity = {"run_id": spec.run_id, "study": spec.study, "preset": spec.preset, "scale": spec.scale}
    identity |= {"method": spec.method}
    ended = {"init_seed": spec.init_seed, "outcome": "diverged" if diverged else "completed", "step": step}
    ended |= {"steps": spec.train.steps, "validation_loss": None if diverged else loss, "reason": diverged or None}
    ended |= {"last_finite_loss": 2.6, "last_finite_step": step - bool(diverged)}
    manifest = {"spec": spec.to_dict(), "git_commit": "0" * 40, "git_dirty": False, "packages": {"torch": "2.13.0"}}
    manifest |= {"data_fingerprint": "d" * 16, "validation_fingerprint": "e" * 16, "host": "here"}
    manifest |= {"wall_seconds": 12.5, "attempts": 1, "started": "t0", "finished": "t1", "parameters": 1216710656}
    for name, content in (
        ("outcome", ended | (outcome or {})),
        ("manifest", manifest | (made_on or {"device": "cpu"})),
    ):
        (folder / f"{name}.json").write_text(json.dumps(identity | content, allow_nan=False), encoding="utf-8")
    frames.write(metrics, "metrics", folder / "metrics.parquet")
    if probes is not None:
        labels = {"probes": json.dumps({probe.name: "c" * 16 for probe in spec.probes}), "torch": "2.13.0"}
        labels |= {"validation_fingerprint": "e" * 16, "device": "cpu"}
        frames.write(probes, "probes", root / "probes" / spec.key / "probes.parquet", metadata=labels)
