"""Makes the table of alternatives of any study: what else a paper could mean, run, next to what was chosen.

Its rows are the runs that are made for it alone (`on_request` in the study's YAML), each below the run that it changes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from plumbline.core.run_files import MISSING
from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.interpretations import describe_run, list_alternatives
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.shared_columns import OUTCOME, RUN_IDS, label_columns, make_table, number_column
from plumbline.results.tables.table import (
    CONTEXT_ALONE,
    REFERENCE,
    Cell,
    Column,
    Table,
    context_cells,
    missing_word,
    number_cell,
)
from plumbline.specs.study_config import Run, Study

#: The word of a default run where others have their distance from it.
DEFAULT = "default"

COLUMNS = [
    *label_columns("run", "Run"),
    Column(name="interpretations", header="interpretations", kind="label"),
    number_column("seed", "seed", "d", narrow=True),
    number_column("data_seed", "data order", "d"),
    number_column("validation_loss", "val. loss", ".4f", narrow=True),
    number_column("loss_minus_default", "loss − default's", "+.4f", narrow=True),
    number_column("loss_minus_control", "loss − control's", "+.4f", narrow=True),
    Column(name="control", header="control", kind="label"),
    Column(name="description", header="what it changes", kind="label"),
    OUTCOME,
    RUN_IDS,
    *CONTEXT_ALONE,
]


def alternatives(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """One row for each run that is made on request, below the runs that it is an alternative to."""
    runs = _Runs(frames, study)
    requested = [key for key in study.requested_runs if key in frames.runs.index]
    keys = dict.fromkeys(other for key in requested for other in (runs.default(key), key) if other is not None)
    names = [*study.definition["methods"], *study.definition.get("arms", {})]
    ordered = sorted(keys, key=lambda key: (key.split("/")[1], names.index(key.split("/")[2].partition(".")[0])))
    return make_table(
        "alternatives",
        "Other meanings of what the paper leaves open, each below the run that has the chosen one.",
        study,
        key="run",
        columns=COLUMNS,
        rows=[_make_row(runs, key) for key in ordered],
        notes=[
            "One seed a row: a difference from the default run of the same seed may be the seed's. None was chosen by "
            "these numbers, and none is tuned.",
            "The control of an arm is what it is a variant of, under the same alternative where that was run; so the "
            "differences of two rows are one effect under two meanings of the text.",
        ],
    )


@dataclass(frozen=True, slots=True)
class _Runs:
    """The runs of a study by what they are compared with."""

    frames: RunFrames
    study: Study

    def default(self, key: str) -> str | None:
        """Find the run that has the chosen meaning: of the same seed, or of another seed the study's own."""
        run, method = self.study.every_run[key], self.study.every_run[key].spec.method
        if first := self._find_usual(run):
            return first
        if method in self.study.variants:
            return self._find(run, self._choose_point(run, method.partition(".")[0]))
        return self._find(run, self.study.definition["arms"][method]["variant_of"])

    def control(self, key: str) -> str | None:
        """Find the run by which the study measures an effect: under the same alternative, if that was run."""
        run = self.study.every_run[key]
        name, _, variant = run.spec.method.partition(".")
        arm = self.study.definition.get("arms", {}).get(name)
        other = arm["variant_of"] if arm else self.study.reference or self.study.definition["comparison"][0]
        if other.partition(".")[0] == name:
            return None
        alike = self._find(run, f"{other}.{variant}") if variant else None
        return alike or self._find(run, self._choose_point(run, other))

    def loss(self, key: str | None) -> float:
        """Final held-out loss, nats a token."""
        return math.nan if key is None else float(self.frames.runs.loc[key, "validation_loss"])

    def _find_usual(self, run: Run) -> str | None:
        key = self.frames.key(run.spec.scale, run.spec.method)
        return key if key in self.study.runs else None

    def _find(self, run: Run, method: str) -> str | None:
        key = self.frames.key(run.spec.scale, method, run.spec.init_seed)
        return key if key is not None and key in self.study.every_run else None

    def _choose_point(self, run: Run, method: str) -> str:
        """Choose the point of a swept method that has the values of `run`; another method is its own name."""
        axes = self.study.definition["methods"].get(method, {}).get("sweep", {})
        for name, point in self.study.points(method).items() if axes else ():
            if all(_read_value(run, axes[axis]["sets"]) == value for axis, value in point.items()):
                return name
        return method


def _read_value(run: Run, path: str) -> Any:
    """Read what an axis of a sweep sets; None where the run has none."""
    value: Any = run.spec.to_dict()
    for name in path.split("."):
        if isinstance(value, list):
            value = next((entry for entry in value if entry["name"] == name), {})
        else:
            value = value.get(name)
        if value is None:
            return None
    return value


def _make_row(runs: _Runs, key: str) -> dict[str, Cell]:
    spec, run = runs.study.every_run[key].spec, runs.frames.runs.loc[key]
    default, control = runs.default(key), runs.control(key)
    is_default = key not in runs.study.requested_runs
    names = (spec.method, f"{spec.method}/s{spec.init_seed}")
    interpretations = [] if is_default else [each for name in names for each in list_alternatives(runs.study, name)]
    return {
        "run": Cell("/".join(key.split("/")[1:])),
        "label": Cell(f"{runs.study.label(spec.method)}, {runs.study.scale_label(spec.scale)}, seed {spec.init_seed}"),
        "interpretations": Cell(", ".join(interpretations) or "none"),
        "seed": Cell(spec.init_seed, (key,)),
        "data_seed": Cell(spec.data_seed, (key,)),
        "validation_loss": number_cell(runs.loss(key), missing_word([run["outcome"]]), (key,)),
        "loss_minus_default": Cell(None, word=DEFAULT) if is_default else _subtract(runs, key, default),
        "loss_minus_control": Cell(None, word=REFERENCE) if control is None else _subtract(runs, key, control),
        "control": Cell("none" if control is None else control.split("/")[2]),
        "description": Cell(DEFAULT if is_default else describe_run(runs.study, spec.method)),
        "outcome": Cell(str(run["outcome"]), (key,)),
        "run_ids": Cell(str(run["run_id"]), (key,)),
    } | context_cells(runs.study, spec.scale)


def _subtract(runs: _Runs, key: str, other: str | None) -> Cell:
    if other is None:
        return Cell(None, (key,), word=MISSING)
    outcomes = [runs.frames.runs.loc[each, "outcome"] for each in (key, other)]
    return number_cell(runs.loss(key) - runs.loss(other), missing_word(outcomes), (key, other))
