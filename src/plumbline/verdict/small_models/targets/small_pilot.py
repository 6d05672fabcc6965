"""Makes the table of what the runs tell that are made first: the noise of each stated test, and whether the stated
seeds give it power.

The rule stands in docs/small-models.md: where their spread gives less than 80 %, seeds are added to the study's
small.yaml, or a larger target or margin is stated, whatever the runs gained. So gains are not shown.
"""

from __future__ import annotations

import math

from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.runs.stated_values import RunValues
from plumbline.results.tables.shared_columns import FACTS, fact_cells, make_table, number_column, text_column
from plumbline.results.tables.table import Cell, Column, Table, number_cell
from plumbline.specs import small_file, small_runs
from plumbline.specs.study_config import Study
from plumbline.stats.sample_spread import bound_sigma
from plumbline.verdict.small_models.statement_gains import ContrastGain, compute_gains, compute_t_power

POWER, MOST_SEEDS = 0.8, 200

NOTES = (
    "σ is of a run, pooled over a statement's arms (test t), or of a seed's own gain (paired_t), over the first three "
    "seeds; of a tuned statement over those that choose the rate, at the rate of the lowest loss. Gains are not shown: "
    "seeds are added by the noise alone.",
    "Power is that of the stated seeds at the stated target, of one contrast, and in low and high by the ends of σ's "
    "90 % interval. seeds needed: the fewest that give 80 % by σ itself, as the rule has it, not by its upper end: the "
    "true power is often less (low). Seeds that are added for this let 3.3 % at most be seen by chance, for 2.5.",
)

COLUMNS = [
    Column(name="row", header="row", kind="label", readable=False),
    Column(name="statement", header="statement", kind="label", narrow=True, once=True),
    Column(name="size", header="size", kind="label", narrow=True),
    Column(name="contrast", header="contrast", kind="label", narrow=True),
    text_column("test", "test"),
    number_column("sigma", "σ", ".3g", narrow=True),
    number_column("df", "df", "d"),
    number_column("power", "power", ".2f", narrow=True),
    number_column("power_low", "low", ".2f"),
    number_column("power_high", "high", ".2f"),
    number_column("seeds_stated", "seeds stated", "d", narrow=True),
    number_column("seeds_needed", "seeds needed", "d", narrow=True),
    *FACTS,
]


def small_pilot(frames: RunFrames, study: Study, published: object) -> Table:
    """One row for each contrast of each statement whose test has a noise, at each size."""
    spec = small_file.load_small(study.name, study.root)
    runs = small_runs.list_stated_runs(study.definition, spec, study.root)
    values = RunValues(frames)
    gains = [
        gain
        for statement in spec.statements
        if statement.test in ("t", "paired_t")
        for size in statement.sizes
        for gain in compute_gains(spec, statement, size, runs, values, pilot=True)
    ]
    return make_table(
        "small_pilot",
        "The noise of each test that was stated of small models, by the runs that are made first.",
        study,
        key="row",
        columns=COLUMNS,
        rows=[_make_row(gain, values, study) for gain in gains],
        notes=NOTES,
        scores=frames if "scores" in frames.read else None,
    )


def _make_row(gain: ContrastGain, values: RunValues, study: Study) -> dict[str, Cell]:
    statement, tested, keys = gain.statement, gain.tested, tuple(filter(values.is_asked, gain.runs))
    word = gain.word or "too few seeds"
    outcomes = map(values.find_outcome, gain.runs)
    low = high = seed_count = None
    if tested is not None and tested.sigma > 0 and not gain.word:  # no seed undoes a run that diverged
        least, most = bound_sigma(tested.sigma, tested.df)
        low, high = (compute_t_power(statement, gain.contrast, sigma, len(statement.seeds)) for sigma in (most, least))
        seed_count = _find_seeds(gain, tested.sigma)

    def number(value: float | int | None, otherwise: str = "") -> Cell:
        return number_cell(value, (tested is not None and otherwise) or word, keys)

    return {
        "row": Cell(f"{statement.id}/{gain.size}/{gain.contrast}"),
        "statement": Cell(statement.id),
        "contrast": Cell(gain.contrast),
        "test": Cell(statement.test),
        "sigma": number(None if tested is None else tested.sigma),
        "df": number(None if tested is None else tested.df),
        "power": number(math.nan if gain.word else gain.power),
        "power_low": number(low, gain.word or "no spread"),
        "power_high": number(high, gain.word or "no spread"),
        "seeds_stated": Cell(len(statement.seeds)),
        "seeds_needed": number(seed_count, f"over {MOST_SEEDS}" if low is not None else gain.word or "no spread"),
        **fact_cells(values.frames, study, gain.size, keys, outcomes=outcomes, seeds=gain.n),
        "size": Cell(study.scale_label(gain.size)),
    }


def _find_seeds(gain: ContrastGain, sigma: float) -> int | None:
    """The fewest seeds whose power is 80 %; None where more than `MOST_SEEDS` are needed."""
    counts = range(2, MOST_SEEDS + 1)
    return next((n for n in counts if compute_t_power(gain.statement, gain.contrast, sigma, n) >= POWER), None)
