"""Makes Table 8: where other release rules would have let go, from the scores that the intervention's runs logged.

Source: premature study, appendix F and Table 8. Nothing is trained: a rule is replayed by the function that the trainer
follows. Columns that the paper lacks: the first evaluation that reaches the threshold, the range over seeds, and
whether the end of the window forced the release.
"""

from __future__ import annotations

import math

import pandas as pd

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.shared_columns import (
    FACTS,
    column_pair,
    label_columns,
    make_table,
    number_column,
    text_column,
)
from plumbline.results.tables.table import Cell, Column, Table, list_published_cells
from plumbline.specs.study_config import Study
from plumbline.train.interventions._release_rule import ReleaseRule

from ..release_rule_replay import RuleReplay, read_release, replay, rule, scores
from ..row_cells import RowCells
from ..run_values import BASE, INTERVENTION, RunValues

COLUMNS = [
    *label_columns("rule", "Rule"),
    Column(name="release_at_copy_score", header="score threshold", kind="fact", format="g", narrow=True),
    Column(name="patience_evaluations", header="patience (evals)", kind="fact", format="d", narrow=True),
    Column(name="release_window", header="release window", kind="fact", narrow=True),
    *column_pair("release_pct", "released at (%)", ".2f", narrow=True),
    number_column("threshold_first_met_pct", "threshold first met (%)", ".2f"),
    number_column("release_pct_earliest_seed", "released at (%), earliest seed", ".2f"),
    number_column("release_pct_latest_seed", "released at (%), latest seed", ".2f"),
    text_column("forced_releases", "forced releases"),
    *FACTS,
]


def table8(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """One row for each rule; the first seed's release next to the printed one."""
    run_values, print8 = RunValues(frames, study), published.table("table8")
    keys = tuple(run_values.key(INTERVENTION, BASE, seed) for seed in run_values.seeds(INTERVENTION)) or (None,)
    rows = []
    for name, printed in print8.iterrows():
        replays = [replay_rule(run_values, key, printed) for key in keys]
        row, first = RowCells(run_values, keys, BASE), replays[0]
        releases = [100 * replay.release for replay in replays if not math.isnan(replay.release)]
        rows.append(
            {
                "rule": Cell(name),
                "label": Cell(printed["rule"]),
                "release_at_copy_score": Cell(float(printed["threshold"])),
                "patience_evaluations": Cell(int(printed["patience"])),
                "release_window": Cell(f"{printed['window_start_pct']}-{printed['window_end_pct']} %"),
                "release_pct": row.cell(100 * first.release, "not logged", keys[:1]),
                "threshold_first_met_pct": row.cell(100 * first.crossing, "never", keys[:1]),
                "release_pct_earliest_seed": row.cell(min(releases, default=math.nan), "not logged"),
                "release_pct_latest_seed": row.cell(max(releases, default=math.nan), "not logged"),
                "forced_releases": Cell(_format_forced_count(replays), row.runs),
            }
            | list_published_cells(print8, name, {"release_pct": "release_pct"})
            | row.facts(len(releases))
        )
    return make_table(
        "table8",
        f"Release rules replayed over logged lower-copy scores at {study.scale_label(BASE)}.",
        study,
        key="rule",
        columns=COLUMNS,
        rows=rows,
        notes=_notes(
            run_values, keys, rules=[rule_of(run_values, keys[0], printed) for _, printed in print8.iterrows()]
        ),
        published=published.format_path("table8"),
    )


def rule_of(run_values: RunValues, key: str | None, printed: pd.Series) -> ReleaseRule:
    """A printed rule, for a run's context."""
    context = 1024 if key is None else run_values.study.runs[key].spec.model.context
    window = (float(printed["window_start_pct"]) / 100, float(printed["window_end_pct"]) / 100)
    return rule(context, float(printed["threshold"]), int(printed["patience"]), window)


def replay_rule(run_values: RunValues, key: str | None, printed: pd.Series) -> RuleReplay:
    """A printed rule over one run's scores."""
    if key is None:
        return RuleReplay()
    steps = run_values.study.runs[key].spec.train.steps
    return replay(scores(run_values, key), rule_of(run_values, key, printed), steps)


def _format_forced_count(replays: list[RuleReplay]) -> str:
    there = [replay for replay in replays if not math.isnan(replay.release)]
    return "not logged" if not there else f"{sum(replay.forced for replay in there)} of {len(there)}"


def _notes(run_values: RunValues, keys: tuple[str | None, ...], rules: list[ReleaseRule]) -> list[str]:
    notes = ["Only evaluations inside the window count (interpretation patience_inside_the_window)."]
    if rules and rules[0].relative:
        scaled = ", ".join(f"{rule.threshold:g} as {rule.threshold_over_null:.2f}" for rule in rules[:3])
        notes.append(f"Thresholds are for a context of 1,024; here each counts as a multiple of its null: {scaled}.")
    own = [read_release(run_values, key).get("fraction") for key in keys]
    if any(fraction is not None for fraction in own):
        text = ", ".join("none" if fraction is None else f"{100 * fraction:.2f} %" for fraction in own)
        notes.append(f"The runs themselves were released at {text} of training, by seed.")
    return notes
