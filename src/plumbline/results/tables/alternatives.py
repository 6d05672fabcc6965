"""Makes the tables of what else a paper could mean, of any study: each such run below the run that it changes.

`alternatives` has the runs that are made on request, `variants` those that are made with all others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from plumbline.core.run_files import COMPLETED, MISSING
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

#: The word of a run that completed and of which a number was not read.
NOT_READ = "not read"


@dataclass(frozen=True, kw_only=True, slots=True)
class RunMetric:
    """A number on which a study's headline rests: `read` gives it of a run's key, NaN where it has none.

    `format`: of the number and, with a sign, of its differences; one that is not `compared` has none.
    """

    name: str
    header: str
    format: str
    read: Callable[[str], float]
    compared: bool = True

    def make_columns(self, narrow: bool) -> list[Column]:
        """Make those of the number, and of by how much it differs from the default's and from the control's."""
        column = number_column(self.name, self.header, self.format)
        if not self.compared:
            return [column]
        signed = f"+{self.format.removeprefix('+')}"
        return [
            column,
            number_column(f"{self.name}_minus_default", f"{self.header} − default's", signed, narrow=narrow),
            number_column(f"{self.name}_minus_control", f"{self.header} − control's", signed),
        ]


def make_alternatives(frames: RunFrames, study: Study, metrics: Sequence[RunMetric] = ()) -> Table:
    """Make one row for each run that is made on request, below the runs that it is an alternative to."""
    keys = [key for key in study.requested_runs if key in frames.runs.index]
    title = "Other meanings of what the paper leaves open, each below the run that has the chosen one."
    return _make_table("alternatives", title, frames, study, metrics, keys)


def make_variants(frames: RunFrames, study: Study, metrics: Sequence[RunMetric] = ()) -> Table:
    """Make one row for each variant and arm that is made with all other runs, below the run that it varies."""
    method_names = {*study.variants, *study.definition.get("arms", {})}
    keys = [key for key, run in study.runs.items() if run.spec.method in method_names and key in frames.runs.index]
    title = "Variants that are run with the rest, each below the run that has the chosen meaning."
    return _make_table("variants", title, frames, study, metrics, keys)


def _make_table(
    name: str, title: str, frames: RunFrames, study: Study, metrics: Sequence[RunMetric], keys: Iterable[str]
) -> Table:
    runs, listed_keys = _Runs(frames, study), set(keys)
    all_keys = dict.fromkeys(run_key for key in keys for run_key in (runs.default(key), key) if run_key is not None)
    methods = [*study.definition["methods"], *study.definition.get("arms", {})]
    ordered = sorted(all_keys, key=lambda key: (key.split("/")[1], methods.index(key.split("/")[2].partition(".")[0])))
    loss = RunMetric(name="loss", header="loss", format=".4f", read=runs.loss)
    return make_table(
        name,
        title,
        study,
        key="run",
        columns=[
            *label_columns("run", "Run"),
            Column(name="seed", header="seed", kind="fact", format="d", narrow=True),
            Column(name="data_seed", header="data order", kind="fact", format="d"),
            number_column("validation_loss", "val. loss", ".4f", narrow=True),
            number_column("loss_minus_default", "loss − default's", "+.4f", narrow=True),
            number_column("loss_minus_control", "loss − control's", "+.4f", narrow=True),
            *(column for metric in metrics for column in metric.make_columns(narrow=metric is metrics[0])),
            Column(name="control", header="control", kind="label"),
            Column(name="interpretations", header="interpretations", kind="label"),
            Column(name="description", header="what it changes", kind="label"),
            OUTCOME,
            RUN_IDS,
            *CONTEXT_ALONE,
        ],
        rows=[_make_row(runs, key, [loss, *metrics], key not in listed_keys) for key in ordered],
        notes=[
            "One seed a row: a difference from the default run of the same seed may be the seed's. None was chosen by "
            "these numbers, and none is tuned.",
            "The control of an arm is what it is a variant of, under the same alternative where that was run; so the "
            "differences of two rows are one effect under two meanings of the text.",
        ],
        scores=frames if "scores" in frames.read else None,
    )


@dataclass(frozen=True, slots=True)
class _Runs:
    """The runs of a study by what they are compared with."""

    frames: RunFrames
    study: Study

    def default(self, key: str) -> str | None:
        """Find the run that has the chosen meaning: of the same seed, or of another seed the study's own."""
        run, method = self.study.every_run[key], self.study.every_run[key].spec.method
        first = self.frames.key(run.spec.scale, method)
        if first != key and first in self.study.runs:
            return first
        if method in self.study.variants:
            return self._find(run, self._choose_point(run, method.partition(".")[0]))
        return self._find(run, self.study.definition["arms"][method]["variant_of"])

    def control(self, key: str) -> str | None:
        """Find the run by which the study measures an effect: under the same alternative, if that was run."""
        run = self.study.every_run[key]
        name, _, variant = run.spec.method.partition(".")
        arm = self.study.definition.get("arms", {}).get(name)
        control_method = arm["variant_of"] if arm else self.study.reference or self.study.definition["comparison"][0]
        if control_method.partition(".")[0] == name:
            return None
        control_run = self._find(run, f"{control_method}.{variant}") if variant else None
        return control_run or self._find(run, self._choose_point(run, control_method))

    def loss(self, key: str | None) -> float:
        """Final held-out loss, nats a token."""
        return math.nan if key is None else float(self.frames.runs.loc[key, "validation_loss"])

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


def _make_row(runs: _Runs, key: str, metrics: Sequence[RunMetric], is_default: bool) -> dict[str, Cell]:
    spec, run = runs.study.every_run[key].spec, runs.frames.runs.loc[key]
    default, control = None if is_default else runs.default(key), runs.control(key)
    names = (spec.method, f"{spec.method}/s{spec.init_seed}")
    interpretations = [] if is_default else [each for name in names for each in list_alternatives(runs.study, name)]
    cells = {}
    for metric in metrics:
        cells[metric.name] = _read_cell(runs, metric, key)
        if not metric.compared:
            continue
        cells[f"{metric.name}_minus_default"] = (
            Cell(None, word=DEFAULT) if is_default else _subtract(runs, metric, key, default)
        )
        cells[f"{metric.name}_minus_control"] = (
            Cell(None, word=REFERENCE) if control is None else _subtract(runs, metric, key, control)
        )
    return {
        "run": Cell("/".join(key.split("/")[1:])),
        "label": Cell(f"{runs.study.label(spec.method)}, {runs.study.scale_label(spec.scale)}, seed {spec.init_seed}"),
        "interpretations": Cell(", ".join(interpretations) or "none"),
        "seed": Cell(spec.init_seed, (key,)),
        "data_seed": Cell(spec.data_seed, (key,)),
        "validation_loss": cells.pop("loss"),
        "control": Cell("none" if control is None else control.split("/")[2]),
        "description": Cell(DEFAULT if is_default else describe_run(runs.study, spec.method)),
        "outcome": Cell(str(run["outcome"]), (key,)),
        "run_ids": Cell(str(run["run_id"]), (key,)),
    } | (cells | context_cells(runs.study, spec.scale))


def _read_cell(runs: _Runs, metric: RunMetric, *keys: str) -> Cell:
    """Make the cell of a run's number, or of the difference of two runs'."""
    outcomes = [str(runs.frames.runs.loc[key, "outcome"]) for key in keys]
    word = NOT_READ if set(outcomes) == {COMPLETED} else missing_word(outcomes)
    values = [metric.read(key) for key in keys]
    value = values[0] - values[1] if len(values) > 1 else values[0]
    return number_cell(value if math.isfinite(value) else None, word, keys)


def _subtract(runs: _Runs, metric: RunMetric, key: str, other_key: str | None) -> Cell:
    return Cell(None, (key,), word=MISSING) if other_key is None else _read_cell(runs, metric, key, other_key)
