"""Makes Table 1: the final key norm of each layer and arm, beside what weight decay alone would leave of it.

Source: key_norms study, "Analyzing the image" and "Experimental Analysis", which print three means of two layers each.
"""

from __future__ import annotations

import math

import pandas as pd

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.shared_columns import OUTCOME, SEEDS, label_columns, make_table, number_column
from plumbline.results.tables.table import (
    CONTEXT_ALONE,
    Cell,
    Column,
    Table,
    context_cells,
    number_cell,
    printed_cell,
    published_column,
    summarize_outcomes,
)
from plumbline.specs.study_config import Study

from ..norm_curves import (
    AS_PUBLISHED,
    ENTROPY,
    FROZEN,
    KEY_NORM,
    NO_DECAY,
    SCALE,
    StartAndFinalValues,
    decay,
    end,
    groups,
    layers_of,
    mean_over,
    spec_of,
)

ARMS = (AS_PUBLISHED, NO_DECAY, FROZEN)

#: What the demo is worth: its sizes were chosen so that the question is answered there (interpretation
#: gain_learning_rate).
DEMO = (
    "A tiny model, whose three arms and decay answer the paper's question at this size and for this model alone: "
    "what they show is under the table. It is no reproduction of the printed numbers."
)

#: Below this a norm did not move: half a unit of the last digit that is shown.
STILL = 0.005


def columns(study: Study) -> list[Column]:
    """The table's columns; arms are called by their weight decay."""
    own = spec_of(study, AS_PUBLISHED)
    named = {AS_PUBLISHED: "decay" if own is None else f"decay {own.optimizer.weight_decay:g}"}
    named |= {NO_DECAY: "no decay", FROZEN: "frozen"}
    return [
        *label_columns("layers", "Layers"),
        number_column("key_l2_norm", named[AS_PUBLISHED], ".2f", narrow=True),
        published_column("key_l2_norm", "printed", narrow=True),
        *(number_column(f"key_l2_norm{_of(arm)}", named[arm], ".2f", narrow=True) for arm in (NO_DECAY, FROZEN)),
        number_column("key_l2_norm_decay_only", "decay alone", ".2f", narrow=True),
        number_column("key_l2_norm_change_over_decay_only_change", "change of key norm / decay alone's", "+.2f"),
        *(number_column(f"entropy{_of(arm)}", f"entropy, {named[arm]}", ".3f") for arm in ARMS),
        OUTCOME,
        SEEDS,
        *CONTEXT_ALONE,
    ]


def _of(arm: str) -> str:
    return "" if arm == AS_PUBLISHED else f"_{arm}"


def table1(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """One row for each group of layers that the paper prints, then one for each layer."""
    norms = {arm: end(frames, arm, KEY_NORM) for arm in ARMS}
    entropies = {arm: end(frames, arm, ENTROPY) for arm in ARMS}
    prose, own = published.prose(), spec_of(study, AS_PUBLISHED)
    left = math.nan if own is None else float(decay(own)[-1])
    named = [(one.name, one.title, one.layers, one.printed) for one in groups(layers_of(study))]
    single = [(f"layer_{layer}", f"Layer {layer}", (layer,), "") for layer in range(layers_of(study))]
    outcomes = frames.select(SCALE, list(ARMS))["outcome"]
    rows = []
    for name, label, layers, printed in named + single:
        values = {f"key_l2_norm{_of(arm)}": _cell(norms[arm], layers) for arm in ARMS}
        values |= {f"entropy{_of(arm)}": _cell(entropies[arm], layers) for arm in ARMS}
        one = norms[AS_PUBLISHED]
        pure = mean_over(one.start, layers) * left
        moved = mean_over(one.change(), layers) / (pure - mean_over(one.start, layers)) if left < 1 else math.nan
        facts = {
            "layers": Cell(name),
            "label": Cell(label),
            "key_l2_norm_decay_only": number_cell(pure, one.word, one.runs),
        }
        facts |= {"key_l2_norm_change_over_decay_only_change": number_cell(moved, one.word or "no decay", one.runs)}
        facts |= {
            "outcome": Cell(summarize_outcomes(outcomes), tuple(outcomes.index)),
            "n_seeds": Cell(one.n, one.runs),
        }
        shown = {"key_l2_norm_published": printed_cell(prose[printed].text if printed else "not printed")}
        rows.append(facts | values | shown | context_cells(study, SCALE))
    return make_table(
        "table1",
        f"Final key norm of each layer by what happens to gains, and attention entropy, at {study.scale_label(SCALE)}.",
        study,
        key="layers",
        columns=columns(study),
        rows=rows,
        notes=found(study, norms),
        published=published.shown("prose"),
        demo=DEMO,
    )


def _cell(one: StartAndFinalValues, layers: tuple[int, ...]) -> Cell:
    return number_cell(mean_over(one.final, layers), one.word, one.runs)


def found(study: Study, norms: dict[str, StartAndFinalValues]) -> list[str]:
    """What these runs say about the question, in numbers: what decay alone does to a norm, how far each layer went of
    that way in each arm, and which changes are there without decay."""
    own = spec_of(study, AS_PUBLISHED)
    one = norms[AS_PUBLISHED]
    if own is None or one.word:
        return [f"{study.label(AS_PUBLISHED)}: {one.word}, so that nothing is said of weight decay."]
    start, left = float(one.start.mean()), float(decay(own)[-1])
    alone = start * left - start
    said = [
        f"Over these {own.train.steps:,} steps weight decay alone takes a key norm from {start:.2f} to "
        f"{start * left:.2f} ({alone:+.2f}). What each layer's norm changed by, as a share of that (1: decay explains "
        "all of it; between 0 and 1: gradients push against it; above 1: they push the same way; below 0: it rose):",
        *(_arm(study, arm, norms[arm], alone) for arm in ARMS),
    ]
    other = norms[NO_DECAY]
    if not other.word:
        fell, fell_too = one.change() < -STILL, other.change() < -STILL
        rose, rose_too = one.change() > STILL, other.change() > STILL
        apart = other.final - one.final
        said.append(
            f"Of {len(one.final)} layers {int(fell.sum())} end lower than they started as published, "
            f"{int((fell & fell_too).sum())} of these without weight decay on gains too; {int(rose.sum())} end higher, "
            f"{int((rose & rose_too).sum())} of these without it too. Without it the final norms are higher by "
            f"{apart.min():.2f} to {apart.max():.2f}."
        )
    return said


def _arm(study: Study, arm: str, one: StartAndFinalValues, alone: float) -> str:
    """How far each layer's norm went, as a share of what decay alone does."""
    label, change = study.label(arm), one.change()
    if one.word:
        return f"{label}: {one.word}."
    if (change.abs() < STILL).all():
        return f"{label}: no layer's norm moved by {STILL:g}."
    return f"{label}: {_listed(change / alone if alone else change)}" + ("." if alone else " (no decay).")


def _listed(values: pd.Series) -> str:
    """As ``layer 0 +1.19, 1 +0.40``."""
    return "layer " + ", ".join(f"{layer} {value:+.2f}" for layer, value in values.items())
