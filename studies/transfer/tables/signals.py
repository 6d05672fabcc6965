"""Makes a table of which metric tells methods apart: z and prediction t of each method by accuracy, log-probabilities
and loss.

Source: ours. The transfer study judges by CLIMB-avg alone (section 3.3) and prints losses next to it (Table 7). The
metrics of the same runs, each in units of its own spread over the reference's seeds.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import pandas as pd

from plumbline.core.run_files import COMPLETED
from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.number_formats import PROBABILITY
from plumbline.results.tables.shared_columns import OUTCOME, SEEDS, label_columns, make_table, number_column
from plumbline.results.tables.table import (
    CONTEXT,
    NO_FLOOR,
    REFERENCE,
    Cell,
    Column,
    Table,
    context_cells,
    missing_word,
    number_cell,
    require_reference,
    summarize_outcomes,
)
from plumbline.specs.study_config import Study
from plumbline.stats.noise_floor import NoiseFloor, compute_verdicts, noise_floor, spread_by_chance
from plumbline.stats.sample_spread import sample_deviation

from ..headline_runs import BASE, best_first, headline_runs
from ..signal_metrics import METRICS, SignalMetric

#: The spread of methods over that of seeds, how often noise alone gives more than which is said.
BEYOND = 2

#: What is said of a metric as a whole, in each row of the csv.
WHOLE = {
    "sigma_over_seeds": "σ over seeds",
    "smallest_significant_delta": "smallest significant Δ",
    "sigma_over_methods": "σ over methods",
    "sigma_methods_over_sigma_seeds": "σ over methods / σ over seeds",
}


def _columns(metric: SignalMetric) -> list[Column]:
    name, heading = metric.name, metric.heading
    return [
        number_column(name, heading, metric.format),
        number_column(f"{name}_delta", f"Δ {heading}", f"+{metric.format}", readable=False),
        number_column(f"{name}_z", f"z {heading}", "+.2f", narrow=True),
        number_column(f"{name}_t", f"t {heading}", "+.2f"),
        number_column(f"{name}_p_bonferroni", f"p Bonferroni {heading}", PROBABILITY, readable=False),
        *(
            number_column(f"{name}_{part}", f"{label} {heading}", ".5g", readable=False)
            for part, label in WHOLE.items()
        ),
    ]


COLUMNS = [
    *label_columns("method", "Method"),
    *(column for metric in METRICS for column in _columns(metric)),
    OUTCOME,
    SEEDS,
    *CONTEXT,
]


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgedMetric:
    """A metric of all methods: values, `plumbline.stats.noise_floor.compute_verdicts` of these, the reference's floor.

    Besides: the standard deviation over the `methods` others that have a value, and half of these methods' |z| being
    beyond `middle`; `called` is the share of repeats in which a true difference of `smallest` is called.
    """

    values: pd.Series
    verdicts: pd.DataFrame
    floor: NoiseFloor
    methods: int
    spread: float
    middle: float
    smallest: float
    called: float

    @property
    def signal(self) -> float:
        """The methods' spread in units of the seeds'; for what noise alone gives see `spread_by_chance`."""
        return self.spread / self.floor.sigma if self.floor.usable else math.nan


def judge_signal(frames: RunFrames, study: Study, reference: str, metric: SignalMetric) -> JudgedMetric:
    """All methods by one metric: the mean of the reference's seeds, the first seed of any other."""
    runs = frames.select(BASE, study.methods)
    of_runs = metric.read_values(frames, runs)
    behind = {method: of_runs[headline_runs(runs, method, reference).index] for method in study.methods}
    floor = noise_floor(behind[reference]) if len(behind[reference]) else noise_floor([math.nan])
    values = pd.Series({method: own.mean() for method, own in behind.items()}, dtype=float)
    others = values.drop(reference)
    with warnings.catch_warnings():
        # A missing floor is a word in every cell that needs it.
        warnings.filterwarnings("ignore", message="no noise floor")
        table = compute_verdicts(values, floor, m=study.m, baseline=reference)
    return JudgedMetric(
        values=values,
        verdicts=table,
        floor=floor,
        methods=int(others.notna().sum()),
        spread=sample_deviation(others.dropna()),
        middle=float(table["z"].drop(reference).abs().median()),
        smallest=floor.smallest_called(m=study.m),
        called=floor.compute_share_called(m=study.m),
    )


def signals(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """All methods of the study, best CLIMB-avg first, the rows without a value last."""
    reference = require_reference(study, "signals")
    runs = frames.select(BASE, study.methods)
    entries = {metric.name: judge_signal(frames, study, reference, metric) for metric in METRICS}
    floor_runs = tuple(headline_runs(runs, reference, reference).index)
    rows = []
    for method in best_first(entries["climb_avg"].values):
        mine, behind = runs[runs["method"] == method], headline_runs(runs, method, reference)
        row = {
            "method": Cell(method),
            "label": Cell(study.label(method)),
            "outcome": Cell(summarize_outcomes(mine["outcome"]), tuple(mine.index)),
            "n_seeds": Cell(int((mine["outcome"] == COMPLETED).sum()), tuple(mine.index)),
        }
        for metric in METRICS:
            entry = entries[metric.name]
            verdict, value = entry.verdicts.loc[method], float(entry.values[method])
            compared = tuple(dict.fromkeys((*behind.index, *floor_runs)))
            word = missing_word(behind["outcome"])
            no_z = word if math.isnan(value) else NO_FLOOR
            no_p = REFERENCE if method == reference else no_z
            row |= {
                metric.name: number_cell(value, word, behind.index),
                f"{metric.name}_delta": number_cell(float(verdict["delta"]), no_z, compared),
                f"{metric.name}_z": number_cell(float(verdict["z"]), no_z, compared),
                f"{metric.name}_t": number_cell(float(verdict["t_run_vs_seeds"]), no_z, compared),
                f"{metric.name}_p_bonferroni": number_cell(float(verdict["p_run_vs_seeds_bonferroni"]), no_p, compared),
                f"{metric.name}_sigma_over_seeds": number_cell(entry.floor.sigma, NO_FLOOR, floor_runs),
                f"{metric.name}_smallest_significant_delta": number_cell(entry.smallest, NO_FLOOR, floor_runs),
                f"{metric.name}_sigma_over_methods": number_cell(entry.spread, "too few methods", runs.index),
                f"{metric.name}_sigma_methods_over_sigma_seeds": number_cell(entry.signal, NO_FLOOR, runs.index),
            }
        rows.append(row | context_cells(study, BASE, frames))
    return make_table(
        "signals",
        f"What tells methods apart at {study.scale_label(BASE)}: z by four metrics, sorted by CLIMB-avg.",
        study,
        key="method",
        columns=COLUMNS,
        rows=rows,
        notes=_notes(study, entries, study.label(reference)),
        warnings=_lead(entries),
        scores=frames,
    )


def _lead(entries: dict[str, JudgedMetric]) -> list[str]:
    usable = [(metric, entry) for metric in METRICS if math.isfinite((entry := entries[metric.name]).signal)]
    if not usable:
        return []
    alone = []
    for methods, seeds in dict.fromkeys((entry.methods, entry.floor.n) for _, entry in usable):
        middle, above = spread_by_chance(methods, seeds, BEYOND)
        counts = f"{methods} methods against {seeds} seeds"
        alone.append(f"{middle:.2f} in the middle and more than {BEYOND} in {100 * above:.0f} % of repeats ({counts})")
    signal = ", ".join(f"{metric.heading} {entry.signal:.1f}" for metric, entry in usable)
    return [
        f"Signal over noise, the spread of methods over that of seeds: {signal}. Noise alone gives {'; '.join(alone)}."
    ]


def _notes(study: Study, entries: dict[str, JudgedMetric], label: str) -> list[str]:
    sentences = []
    for metric in METRICS:
        entry, number_format = entries[metric.name], metric.format
        begin = f"{metric.label} ({metric.better} is better): "
        if not entry.floor.usable:
            spread = f"σ {entry.floor.sigma:g}, seeds with a value: {entry.floor.n}"
            sentences.append(f"{begin}{label} gives no noise floor ({spread}).")
            continue
        sentences.append(
            f"{begin}{label} {entry.floor.mean:{number_format}}, σ {entry.floor.sigma:.2g} over {entry.floor.n} seeds; "
            f"the smallest difference that these call (prediction t, Bonferroni over {study.m} methods) is "
            f"{entry.smallest:.2g}, "
            f"{entry.smallest / entry.floor.sigma:.1f}σ, and a method whose true difference is that is called in "
            f"{100 * entry.called:.0f} % of repeats, were σ the true one; "
            f"methods are spread by {entry.spread:.2g}, and half of them beyond |z| = {entry.middle:.1f}."
        )
    floor = entries["climb_avg"].floor
    low, high = floor.sigma_range()
    return [
        "↑: higher is better, ↓: lower is. z = Δ/σ and t = Δ/(σ√(1 + 1/n)) keep the sign of Δ = x − mean, each with "
        "the metric's own σ over the reference's seeds. log p: log-probability in nats of the right answer, mean over "
        "items and then tasks, so that tasks of long answers weigh most; bits/byte: bits of the right answers over "
        "their bytes, mean over tasks; loss: validation loss.",
        *sentences,
        "Spread: standard deviation over the methods without the reference, one seed each, failures too."
        + (f" The true σ is between {low:.2f} and {high:.2g} times one over {floor.n} seeds." if floor.usable else ""),
    ]
