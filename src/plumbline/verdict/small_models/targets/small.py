"""Makes the table of what was stated of small models: each contrast of each statement at each size, with the verdict.

A verdict's words are of this size alone, and never those of a claim.
"""

from __future__ import annotations

from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.runs.stated_values import RunValues
from plumbline.results.tables.number_formats import PROBABILITY
from plumbline.results.tables.shared_columns import FACTS, fact_cells, make_table, number_column, text_column
from plumbline.results.tables.table import Cell, Column, Table, number_cell
from plumbline.specs import small_file, small_runs
from plumbline.specs.study_config import Study
from plumbline.verdict.small_models.statement_gains import ContrastGain, compute_gains, join_verdicts

#: What stands below the table.
NOTES = (
    "Gains are positive where the paper is right. low and high are one-sided bounds at the level, which is divided by "
    "the contrasts of a statement: of a sign test they are of the chance that a seed has a gain, of an order of the "
    "correlation of true gains, whose gain is Kendall's tau.",
    "A contrast is the first of these that holds: seen (p at most the level), reversed (that of the opposite is), not "
    "seen (high lies below the target), not decided. A statement with several contrasts is seen if all are, else the "
    "first of reversed, not seen and not decided that one of them is.",
    "not run: a run is missing, one that chooses a rate among them, and the others' gain is not shown; or the size is "
    "none of those asked for (`sizes`). A run that "
    "diverged, or of which the number was not read, leaves a statement not decided, whatever its other contrasts; what "
    "the other seeds gained is shown. So do runs at another rate than the tuning runs choose. Where the best rate or "
    "the largest that trains is asked for, a rate at which a run diverges is neither; a seed in which every arm trains "
    "at the largest that was tried has no gain, and in high it has one. Of capped losses, arms of which none trains in "
    "any seed leave a statement not decided.",
    "Nothing here is evidence about a model of the paper's size.",
)

COLUMNS = [
    Column(name="row", header="row", kind="label", readable=False),
    Column(name="statement", header="statement", kind="label", narrow=True, once=True),
    Column(name="size", header="size", kind="label", narrow=True),
    Column(name="contrast", header="contrast", kind="label", narrow=True),
    text_column("verdict", "verdict", narrow=True),
    text_column("contrast_verdict", "of the contrast"),
    text_column("below_target", "below the target"),
    text_column("lacking", "lacking"),
    text_column("test", "test"),
    number_column("gain", "gain", "+.4g", narrow=True),
    number_column("low", "low", "+.4g", narrow=True),
    number_column("high", "high", "+.4g", narrow=True),
    number_column("minimum", "minimum", "+.4g"),
    number_column("target", "target", "+.4g"),
    number_column("p", "p", PROBABILITY),
    number_column("p_reversed", "p, reversed", PROBABILITY, readable=False),
    number_column("level", "level", ".4g"),
    number_column("sigma", "σ", ".3g"),
    number_column("df", "df", "d", readable=False),
    number_column("power", "power at the target", ".2f"),
    number_column("seeds_stated", "seeds stated", "d", readable=False),
    Column(name="statement_digest", header="statement's digest", kind="fact", readable=False),
    *FACTS,
]


def small(frames: RunFrames, study: Study, published: object) -> Table:
    """One row for each contrast of each statement at each size."""
    spec = small_file.load_small(study.name, study.root)
    runs = small_runs.list_stated_runs(study.definition, spec, study.root)
    values = RunValues(frames)
    rows = []
    for statement in spec.statements:
        for size in statement.sizes:
            gains = compute_gains(spec, statement, size, runs, values)
            verdict = join_verdicts(gains)
            rows += [_make_row(gain, verdict, values, study) for gain in gains]
    return make_table(
        "small",
        "What was stated of small models before their runs, and what these say.",
        study,
        key="row",
        columns=COLUMNS,
        rows=rows,
        notes=NOTES,
        scores=frames if "scores" in frames.read else None,
    )


def _make_row(gain: ContrastGain, verdict: str, values: RunValues, study: Study) -> dict[str, Cell]:
    statement, tested, keys = gain.statement, gain.tested, tuple(filter(values.is_asked, gain.runs))
    word = gain.word or "too few seeds"
    outcomes = map(values.find_outcome, gain.runs)
    below = "no number" if tested is None else "yes" if tested.high < statement.target_gain else "no"

    def number(name: str, absent: str = "") -> Cell:
        """A number of the test, with the word where there is none, or where the test has none (`absent`)."""
        return number_cell(None if tested is None else getattr(tested, name), word if tested is None else absent, keys)

    return {
        "row": Cell(f"{statement.id}/{gain.size}/{gain.contrast}"),
        "statement": Cell(statement.id),
        "contrast": Cell(gain.contrast),
        "verdict": Cell(verdict, keys),
        "contrast_verdict": Cell(gain.verdict, keys),
        "below_target": Cell(below, keys),
        "lacking": Cell(gain.word or "nothing", keys),
        "test": Cell(statement.test),
        "gain": number("gain"),
        "low": number("low"),
        "high": number("high"),
        "minimum": Cell(statement.minimum_gain),
        "target": Cell(statement.target_gain),
        "p": number("p"),
        "p_reversed": number("p_reversed"),
        "level": Cell(statement.level_of_contrast),
        "sigma": number("sigma", "none"),
        "df": number("df"),
        "power": number_cell(gain.power, word, keys),
        "seeds_stated": Cell(gain.stated),
        "statement_digest": Cell(statement.digest),
        **fact_cells(values.frames, study, gain.size, keys, outcomes=outcomes, seeds=gain.n),
        "size": Cell(study.scale_label(gain.size)),
    }
