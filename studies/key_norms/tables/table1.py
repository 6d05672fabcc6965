"""Makes Table 1: the final key norm of each layer and arm, next to what weight decay alone would leave of it.

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
    make_printed_cell,
    make_published_column,
    number_cell,
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
    count_layers,
    decay,
    find_spec,
    groups,
    mean_over,
    read_ends,
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
    own = find_spec(study, AS_PUBLISHED)
    headers = {AS_PUBLISHED: "decay" if own is None else f"decay {own.optimizer.weight_decay:g}"}
    headers |= {NO_DECAY: "no decay", FROZEN: "frozen"}
    return [
        *label_columns("layers", "Layers"),
        number_column("key_l2_norm", headers[AS_PUBLISHED], ".2f", narrow=True),
        make_published_column("key_l2_norm", "printed", narrow=True),
        *(number_column(f"key_l2_norm{_suffix(arm)}", headers[arm], ".2f", narrow=True) for arm in (NO_DECAY, FROZEN)),
        number_column("key_l2_norm_decay_only", "decay alone", ".2f", narrow=True),
        number_column("key_l2_norm_change_over_decay_only_change", "change of key norm / decay alone's", "+.2f"),
        *(number_column(f"entropy{_suffix(arm)}", f"entropy, {headers[arm]}", ".3f") for arm in ARMS),
        OUTCOME,
        SEEDS,
        *CONTEXT_ALONE,
    ]


def _suffix(arm: str) -> str:
    return "" if arm == AS_PUBLISHED else f"_{arm}"


def table1(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """One row for each group of layers that the paper prints, then one for each layer."""
    norms = {arm: read_ends(frames, arm, KEY_NORM) for arm in ARMS}
    entropies = {arm: read_ends(frames, arm, ENTROPY) for arm in ARMS}
    prose, own = published.prose(), find_spec(study, AS_PUBLISHED)
    gain = math.nan if own is None else float(decay(own)[-1])
    group_rows = [(group.name, group.title, group.layers, group.printed) for group in groups(count_layers(study))]
    layer_rows = [(f"layer_{layer}", f"Layer {layer}", (layer,), "") for layer in range(count_layers(study))]
    outcomes = frames.select(SCALE, list(ARMS))["outcome"]
    rows = []
    for name, label, layers, printed in group_rows + layer_rows:
        values = {f"key_l2_norm{_suffix(arm)}": _cell(norms[arm], layers) for arm in ARMS}
        values |= {f"entropy{_suffix(arm)}": _cell(entropies[arm], layers) for arm in ARMS}
        ends = norms[AS_PUBLISHED]
        pure = mean_over(ends.start, layers) * gain
        moved = mean_over(ends.change(), layers) / (pure - mean_over(ends.start, layers)) if gain < 1 else math.nan
        facts = {
            "layers": Cell(name),
            "label": Cell(label),
            "key_l2_norm_decay_only": number_cell(pure, ends.word, ends.runs),
        }
        facts |= {"key_l2_norm_change_over_decay_only_change": number_cell(moved, ends.word or "no decay", ends.runs)}
        facts |= {
            "outcome": Cell(summarize_outcomes(outcomes), tuple(outcomes.index)),
            "n_seeds": Cell(ends.n, ends.runs),
        }
        printed_norm = {"key_l2_norm_published": make_printed_cell(prose[printed].text if printed else "not printed")}
        rows.append(facts | values | printed_norm | context_cells(study, SCALE))
    return make_table(
        "table1",
        f"Final key norm of each layer by what happens to gains, and attention entropy, at {study.scale_label(SCALE)}.",
        study,
        key="layers",
        columns=columns(study),
        rows=rows,
        notes=describe_changes(study, norms),
        published=published.format_path("prose"),
        demo=DEMO,
    )


def _cell(ends: StartAndFinalValues, layers: tuple[int, ...]) -> Cell:
    return number_cell(mean_over(ends.final, layers), ends.word, ends.runs)


def describe_changes(study: Study, norms: dict[str, StartAndFinalValues]) -> list[str]:
    """What these runs say about the question, in numbers: what decay alone does to a norm, how far each layer went of
    that way in each arm, and which changes are there without decay."""
    own = find_spec(study, AS_PUBLISHED)
    ends = norms[AS_PUBLISHED]
    if own is None or ends.word:
        return [f"{study.label(AS_PUBLISHED)}: {ends.word}, so that nothing is said of weight decay."]
    start, gain = float(ends.start.mean()), float(decay(own)[-1])
    alone = start * gain - start
    sentences = [
        f"Over these {own.train.steps:,} steps weight decay alone takes a key norm from {start:.2f} to "
        f"{start * gain:.2f} ({alone:+.2f}). What each layer's norm changed by, as a share of that (1: decay explains "
        "all of it; between 0 and 1: gradients push against it; above 1: they push the same way; below 0: it rose):",
        *(_describe_arm(study, arm, norms[arm], alone) for arm in ARMS),
    ]
    other = norms[NO_DECAY]
    if not other.word:
        fell, fell_too = ends.change() < -STILL, other.change() < -STILL
        rose, rose_too = ends.change() > STILL, other.change() > STILL
        apart = other.final - ends.final
        sentences.append(
            f"Of {len(ends.final)} layers {int(fell.sum())} end lower than they started as published, "
            f"{int((fell & fell_too).sum())} of these without weight decay on gains too; {int(rose.sum())} end higher, "
            f"{int((rose & rose_too).sum())} of these without it too. Without it the final norms are higher by "
            f"{apart.min():.2f} to {apart.max():.2f}."
        )
    return sentences


def _describe_arm(study: Study, arm: str, ends: StartAndFinalValues, alone: float) -> str:
    """How far each layer's norm went, as a share of what decay alone does."""
    label, change = study.label(arm), ends.change()
    if ends.word:
        return f"{label}: {ends.word}."
    if (change.abs() < STILL).all():
        return f"{label}: no layer's norm moved by {STILL:g}."
    return f"{label}: {_format_layers(change / alone if alone else change)}" + ("." if alone else " (no decay).")


def _format_layers(values: pd.Series) -> str:
    """As ``layer 0 +1.19, 1 +0.40``."""
    return "layer " + ", ".join(f"{layer} {value:+.2f}" for layer, value in values.items())
