"""Reads the runs that a target expects as frames; a run that is not on disk is `missing`, never dropped."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from plumbline import NUMERICS
from plumbline.core import fingerprint_file, frames, run_files
from plumbline.core.errors import PlumblineError, nearest
from plumbline.core.files import parse_json, sha256_file
from plumbline.core.run_files import MISSING
from plumbline.results.measurements import measurement_file
from plumbline.results.runs.comparability import ComparabilityCheck
from plumbline.results.runs.expected_runs import ExpectedRun

METRICS = "metrics.parquet"


@dataclass(frozen=True, kw_only=True)
class RunFrames:
    """The frames and files of runs that a table may read.

    `runs` has one row for each expected run, on its key: study, scale, method, seed, groups, run_id, outcome
    (completed, diverged or missing), steps, step, last_finite_step, last_finite_loss, validation_loss, average
    (of its tasks; NaN if there is none), reason, parameters, device. `scores` and `probes` are those frames with
    the run's key, scale, method and seed. `outcomes` and `manifests` are the runs' JSON files by key. `average` is
    the name of the average in the scores: that of the study's suite, empty if it has none. `others` names the runs
    of another spec than the study's present one, `mixed` what about the runs cannot be compared (both are empty
    unless a table reads the runs on disk, whatever their specs), `notes` in what else they differ.
    `measurements`: name -> key (``measured/study/name``) of what the target reads in addition to runs. `per_item`:
    whether the target reads the score of each item. `called`: where `work` lay when they were made, if elsewhere.
    `read`: which of scores, examples, probes and packs the target reads; other files there came earlier or later by
    chance.
    `scored_as`: run's key -> key of its scores, if that is another one.
    """

    work: Path
    runs: pd.DataFrame
    scores: pd.DataFrame
    probes: pd.DataFrame
    average: str = ""
    outcomes: dict[str, dict[str, Any]] = field(default_factory=dict)
    manifests: dict[str, dict[str, Any]] = field(default_factory=dict)
    others: tuple[str, ...] = ()
    mixed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    measurements: Mapping[str, str] = field(default_factory=dict)
    per_item: bool = False
    called: str = ""
    read: frozenset[str] = frozenset({"scores", "probes"})
    scored_as: Mapping[str, str] = field(default_factory=dict)

    def scores_key(self, key: str) -> str:
        """Return the key under which a run's scores lie."""
        return self.scored_as.get(key, key)

    @property
    def named(self) -> str:
        """The name by which products call the folder `work`."""
        return self.called or self.work.as_posix()

    def select(self, scale: str, methods: Iterable[str] | None = None) -> pd.DataFrame:
        """Select the rows of `runs` at a scale, and of some methods only if they are named."""
        rows = self.runs[self.runs["scale"] == scale]
        return rows if methods is None else rows[rows["method"].isin(list(methods))]

    def key(self, scale: str, method: str, seed: int | None = None) -> str | None:
        """Find the key of a method's run at a scale: of a seed, or of the first one; None if none is expected."""
        keys = self._keys_by_seed.get((scale, method), {})
        return keys.get(min(keys, default=-1) if seed is None else seed)

    @cached_property
    def _keys_by_seed(self) -> dict[tuple[str, str], dict[int, str]]:
        """(scale, method) -> seed -> key: claims look up thousands of keys."""
        keys: dict[tuple[str, str], dict[int, str]] = {}
        columns = (self.runs[name] for name in ("scale", "method", "seed"))
        for scale, method, seed, key in zip(*columns, self.runs.index, strict=True):
            keys.setdefault((scale, method), {})[seed] = key
        return keys

    def task_scores(self, key: str) -> pd.Series:
        """Read a run's primary metric per task, in the order of its scores; empty if it has no scores."""
        return self._select_primary_scores(key)["value"]

    def metric_scores(self, key: str, metric: str) -> pd.Series:
        """Read a run's values of one metric, primary or not, per task; empty if it has none."""
        rows = self.scores[(self.scores["key"] == key) & (self.scores["metric"] == metric)]
        return rows.set_index("task")["value"]

    def examples(self, key: str) -> pd.Series:
        """Read a run's primary metric item by item, on (task, item), named by the run; empty if it has no scores.

        They are read on demand: at full size they are more than a hundred thousand rows a run.

        Raises:
            PlumblineError: the target does not declare that it reads them, or they are missing or of other scores.
        """
        if not self.per_item:
            raise PlumblineError(
                f"the items of {key} are read, but `reads` of the target in the study's YAML has no `examples`; add it"
            )
        task_scores = self.task_scores(key).astype(float)
        if task_scores.empty:
            return pd.Series(dtype=float, index=pd.MultiIndex.from_arrays([[], []], names=["task", "item"]), name=key)
        path = self.work / "scores" / self.scores_key(key) / "examples.parquet"
        items = frames.read(_require_file(path, "evaluate"), "examples")
        expected = (fingerprint_file.read(fingerprint_file.sidecar_path(path.with_name("scores.parquet"))) or {}).get(
            "examples_sha256"
        )
        primary = items["metric"] == items["task"].map(self._select_primary_scores(key)["metric"])
        values = items[primary].set_index(["task", "item"])["value"]
        differences = values.groupby("task").mean().reindex(task_scores.index) - task_scores
        same_run = set(items["run_id"]) == {self.runs.loc[key, "run_id"]}
        same_bytes = expected is None or expected == sha256_file(path)
        if not same_run or not same_bytes or not values.index.is_unique or not (differences.abs() < 1e-9).all():
            raise PlumblineError(
                f"{path} does not belong to the scores next to it (another run's, another evaluation's, an item twice, "
                "or other means): "
                f"remove {path.parent} and run the command again to evaluate it"
            )
        return values.rename(key)

    def metrics(self, key: str) -> pd.DataFrame:
        """Read a run's frame of metrics over steps; without rows for a run that is missing."""
        if self.runs.loc[key, "outcome"] == MISSING:
            return pd.DataFrame(columns=frames.SCHEMAS["metrics"].names)
        folder = self.work / "runs" / key
        path = _require_file(folder / METRICS, "pretrain")
        run_files.require(folder, self.manifests[key], METRICS)
        return frames.read(path, "metrics")

    def read_pack(self, corpus: str, context: int, split: str, name: str) -> dict[str, Any] | None:
        """Read the manifest of a pack; None if it was not made.

        Raises:
            PlumblineError: the target does not declare that it reads it, or it is not what was written.
        """
        if "packs" not in self.read:
            raise PlumblineError(
                f"the pack {name!r} is read, but `reads` of the target in the study's YAML has no `packs`; add it"
            )
        path = self.work / "corpora" / corpus / "packs" / f"context{context}" / split / f"{name}.json"
        if not path.exists():
            return None
        manifest = fingerprint_file.read(path)
        if manifest is None:
            raise PlumblineError(f"{path} is no manifest that can be read; rerun the rule `pack`")
        fingerprint_file.require_as_written(path, manifest, "rerun the rule `pack`")
        return manifest

    def read_measurement(self, name: str) -> pd.DataFrame | None:
        """Read a measurement's frame; None if it was not made: a table then shows `MISSING`, never a number.

        Raises:
            PlumblineError: the target does not declare that it reads it.
        """
        return measurement_file.read(measurement_file.frame_path(self.work, self.find_measurement_key(name)))

    def find_measurement_key(self, name: str) -> str:
        """Look up the key of a measurement, ``measured/study/name``, by which cells and claims name it.

        Raises:
            PlumblineError: the target does not declare that it reads it.
        """
        if name not in self.measurements:
            raise PlumblineError(
                f"the measurement {name!r} is read but not among `measurements` of the target in the study's YAML"
                f"{nearest(name, self.measurements)} (there are {sorted(self.measurements)}); add it"
            )
        return self.measurements[name]

    def identity(self, key: str) -> str:
        """Look up the id of a run, or the fingerprint of a measurement.

        `MISSING` where the measurement was not made.
        """
        if not measurement_file.is_key(key):
            return str(self.runs.loc[key, "run_id"])
        path = measurement_file.frame_path(self.work, key)
        return str(measurement_file.read_facts(path)["fingerprint"]) if path.exists() else MISSING

    @cached_property
    def task_sources(self) -> dict[str, str]:
        """The source of each task's items: benchmark or proxy; both where runs differ."""
        sources: dict[str, set[str]] = {}
        for task, source in self.scores[["task", "task_source"]].drop_duplicates().itertuples(index=False):
            if task != self.average:
                sources.setdefault(str(task), set()).add(source)
        return {task: " and ".join(sorted(names)) for task, names in sources.items()}

    @cached_property
    def _primary_scores(self) -> dict[str, pd.DataFrame]:
        """Key -> its scores of tasks by their primary metric, on the task."""
        rows = self.scores[self.scores["primary"] & (self.scores["task"] != self.average)]
        return {str(key): of_run.set_index("task") for key, of_run in rows.groupby("key", sort=False)}

    def _select_primary_scores(self, key: str) -> pd.DataFrame:
        scores = self._primary_scores.get(key)
        return self.scores.iloc[:0].set_index("task") if scores is None else scores


#: Columns of `RunFrames.runs` in addition to its key, and those of them that are numbers with or without a value.
RUN_COLUMNS = ["study", "scale", "method", "seed", "groups", "run_id", "outcome", "steps", "step", "last_finite_step"]
RUN_COLUMNS += ["last_finite_loss", "validation_loss", "average", "reason", "parameters", "device"]
_FLOATS = ["last_finite_loss", "validation_loss", "average"]


def load(
    expected: Iterable[ExpectedRun],
    work: str | Path,
    *,
    average: str = "",
    scores: bool = True,
    examples: bool = False,
    probes: bool = False,
    packs: bool = False,
    probed_groups: Collection[str] | None = None,
    measurements: Mapping[str, str] | None = None,
    mixed: bool = False,
    called: str = "",
) -> RunFrames:
    """Read what the expected runs left under `work`: outcomes, and scores and probes where a target reads them.

    Args:
        average: the name of the average in the scores frames; empty if nothing is evaluated.
        examples: let `RunFrames.examples` read the score of each item.
        packs: let `RunFrames.read_pack` read manifests of packs.
        probed_groups: groups of the runs that targets read probes of; None for all runs.
        measurements: name -> key of what the target reads in addition to runs.
        mixed: accept runs that cannot be compared, and describe that in `RunFrames.mixed`.
        called: what products call `work`, if it lay elsewhere when the runs were made.

    Raises:
        PlumblineError: a directory holds another run than the expected one, a file cannot be read, or runs cannot be
            compared (`plumbline.results.runs.comparability`).
    """
    work = Path(work)
    requested = {"scores": scores, "examples": examples, "probes": probes, "packs": packs}
    comparability = ComparabilityCheck(work)
    rows, score_frames, probe_frames, outcomes, manifests, other_runs = [], [], [], {}, {}, []
    expected = list(expected)
    scored_as = {run.key: run.scores for run in expected if run.scores}
    for run in expected:
        row: dict[str, Any] = {"key": run.key, "study": run.study, "groups": run.groups, "run_id": run.run_id}
        place = {"scale": run.scale, "method": run.method, "seed": run.seed}
        row |= {**place, "outcome": MISSING}
        outcome = _read_run_json(work / "runs" / run.key / "outcome.json", run)
        if outcome is not None:
            manifest = _read_run_json(work / "runs" / run.key / "manifest.json", run)
            if manifest is None:
                raise PlumblineError(f"{work / 'runs' / run.key}: outcome.json without manifest.json; rerun it")
            run_files.require_manifest(work / "runs" / run.key / "manifest.json", manifest)
            run_files.require(work / "runs" / run.key, manifest, "outcome.json")
            outcomes[run.key], manifests[run.key] = outcome, manifest
            row["outcome"] = outcome["outcome"]
            row |= {name: outcome.get(name) for name in ("steps", "step", "last_finite_step", "reason")}
            row |= {name: _to_float(outcome.get(name)) for name in ("last_finite_loss", "validation_loss")}
            row |= {"parameters": manifest.get("parameters"), "device": manifest.get("device")}
            comparability.record_run(run.key, manifest)
            path = work / "scores" / run.scores_key / "scores.parquet"
            run_scores = _read_frame(path, "scores", run) if scores else None
            if run_scores is not None:
                comparability.record_scores(run.scores_key, run_scores, frames.metadata(path), manifest, average)
                row["average"] = _check_average(run_scores, average, run)
                score_frames.append(run_scores.assign(key=run.key, **place))
            reads_probes = probes and (probed_groups is None or not set(probed_groups).isdisjoint(run.groups))
            if reads_probes and manifest["spec"].get("probes"):
                path = _require_file(work / "probes" / run.key / "probes.parquet", "probe")
                run_probes = _read_frame(path, "probes", run)
                comparability.record_probes(run.key, frames.metadata(path), manifest)
                probe_frames.append(run_probes.assign(key=run.key, **place))
            if run.instead_of:
                made_with = manifest["spec"].get("numerics", "not recorded")
                other_runs.append(
                    f"{run.key} is run {run.run_id} (numerics {made_with}), here it would be {run.instead_of} "
                    f"(numerics {NUMERICS})"
                )
        rows.append(row)
    # Tables take rows of this small frame by the thousand: texts of Python's own are taken in half of Arrow's time.
    with pd.option_context("mode.string_storage", "python"):
        runs = pd.DataFrame(rows, columns=["key", *RUN_COLUMNS]).set_index("key")
    runs[_FLOATS] = runs[_FLOATS].astype(float)
    if not mixed:
        comparability.refuse()
    return RunFrames(
        work=work,
        runs=runs,
        scores=_join_frames(score_frames, "scores").astype({"primary": bool}),
        probes=_join_frames(probe_frames, "probes") if probes else pd.DataFrame(),
        average=average,
        outcomes=outcomes,
        manifests=manifests,
        others=tuple(other_runs),
        mixed=tuple(comparability.warnings()),
        notes=tuple(comparability.notes()),
        measurements=measurements or {},
        per_item=examples,
        called=called,
        read=frozenset(name for name, is_read in requested.items() if is_read),
        scored_as=scored_as,
    )


def _join_frames(parts: list[pd.DataFrame], name: str) -> pd.DataFrame:
    filled = [frame for frame in parts if len(frame)]
    columns = [*frames.SCHEMAS[name].names, "key", "scale", "method", "seed"]
    return pd.concat(filled, ignore_index=True) if filled else pd.DataFrame(columns=columns)


def _to_float(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _require_file(path: Path, rule: str) -> Path:
    if not path.exists():
        raise PlumblineError(
            f"{path} is not there although the run is finished; the rule {rule} makes it: snakemake {path}, with the "
            "--config and --profile that the run was made with"
        )
    return path


def _read_run_json(path: Path, run: ExpectedRun) -> dict[str, Any] | None:
    if not path.exists():
        return None
    try:
        content = parse_json(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise PlumblineError(f"{path} is not JSON ({error}); remove the run's directory and rerun it") from error
    if not isinstance(content, dict):
        raise PlumblineError(f"{path} is not a JSON object; remove the run's directory and rerun it")
    _require_run_id(content.get("run_id"), path, run)
    return content


def _require_run_id(run_id: str | None, path: Path, run: ExpectedRun) -> None:
    if run_id != run.run_id:
        raise PlumblineError(
            f"{path} is of run {run_id}, but {run.key} is run {run.run_id} under the present configuration; "
            "rerun it, restore the configuration it was made with, or make the table with --expected-runs found"
        )


def _read_frame(path: Path, name: str, run: ExpectedRun) -> pd.DataFrame | None:
    if not path.exists():
        return None
    fingerprint_file.read_verified(path, required=True)
    frame = frames.read(path, name)
    for run_id in frame["run_id"].unique():
        _require_run_id(run_id, path, run)
    return frame


def _check_average(scores: pd.DataFrame, name: str, run: ExpectedRun) -> float:
    """Return the average over a run's tasks; refuse one that is not the mean of the tasks next to it."""
    rows = scores[scores["task"] == name]["value"]
    if rows.empty:
        return math.nan
    tasks = scores[scores["primary"] & (scores["task"] != name)]["value"]
    value, mean = float(rows.iloc[0]), float(tasks.mean()) if tasks.notna().all() else math.nan
    if len(rows) > 1 or (not math.isnan(value) and not math.isclose(value, mean, abs_tol=1e-9)):
        raise PlumblineError(f"scores of {run.key}: {name} is {value}, the mean of its {len(tasks)} tasks is {mean}")
    return value
