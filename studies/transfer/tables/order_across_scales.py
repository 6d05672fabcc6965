"""Makes a table of what validation loss says of each method at both scales, and of how much of the order is kept.

Source: ours. The paper orders methods by CLIMB-avg (Table 2) and asks what is kept at 3B (section 5.2, Table 3); the
printed numbers stand beside.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import pandas as pd

from plumbline.published.printed_numbers import PrintedNumbers, read_printed_value
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.number_formats import PROBABILITY, format_probability
from plumbline.results.tables.shared_columns import label_columns, make_table, number_column, text_column
from plumbline.results.tables.table import (
    CONTEXT,
    NO_FLOOR,
    REFERENCE,
    Cell,
    Column,
    Table,
    context_cells,
    list_published_cells,
    make_published_column,
    missing_word,
    number_cell,
    require_reference,
)
from plumbline.specs.study_config import Study
from plumbline.stats.order_agreement import OrderAgreement, order_agreement
from plumbline.stats.protocol_error import WORLDS, simulate_pooled_test

from ..headline_runs import BASE, LARGE
from ..scale_differences import LEVEL, ScaleDifferences, scale_differences
from ..signal_metrics import METRICS

#: Metrics of the runs themselves: validation loss leads, the right answers' log-probability and accuracy stand beside.
LOSS, LOGPROB, ACCURACY = (
    next(each for each in METRICS if each.name == name) for name in ("validation_loss", "answer_logprob", "climb_avg")
)

#: The words of a method's difference.
BETTER, WORSE, NOT_RESOLVED, ONE_SEED = "lower", "higher", "not resolved", "no spread"

#: Below every difference of accuracies.
LAST = 2.0

#: The word of a method that has no run at a scale.
NOT_RUN = "not run"


def _columns(scale: str, word: str) -> list[Column]:
    return [
        number_column(f"validation_loss_minus_baseline_{scale}", f"Δ, {word}", "+.3f", narrow=True),
        number_column(f"half_interval_95_{scale}", f"±, {word}", ".3f", narrow=True),
        text_column(f"resolved_{scale}", f"resolved, {word}", narrow=True),
        number_column(f"p_bonferroni_{scale}", f"p Bonferroni, {word}", PROBABILITY, readable=False),
        number_column(f"spread_of_own_seeds_{scale}", f"own spread, {word}", ".4f", readable=False),
        number_column(f"answer_logprob_minus_baseline_{scale}", f"Δ log p, {word}", "+.2f", readable=False),
        number_column(
            f"answer_logprob_p_bonferroni_{scale}", f"p Bonferroni of log p, {word}", PROBABILITY, readable=False
        ),
        number_column(f"climb_avg_minus_baseline_{scale}", f"Δ CLIMB-avg, {word}", "+.4f", readable=False),
        number_column(
            f"climb_avg_p_bonferroni_{scale}", f"p Bonferroni of CLIMB-avg, {word}", PROBABILITY, readable=False
        ),
        number_column(f"seeds_{scale}", f"seeds, {word}", "d"),
    ]


COLUMNS = [
    *label_columns("method", "Method"),
    *_columns("base", "small"),
    *_columns("large", "larger"),
    make_published_column("z", "z", narrow=True),
    make_published_column("delta_3b", "Δ 3B"),
    *CONTEXT,
]


def order_across_scales(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """All methods of the study, lowest validation loss at the base scale first, those without one last."""
    reference = require_reference(study, "order_across_scales")
    differences = {
        (scale, metric.name): scale_differences(frames, study, reference, scale, metric)
        for scale in (BASE, LARGE)
        for metric in (LOSS, LOGPROB, ACCURACY)
    }
    base = differences[BASE, LOSS.name]
    order = base.means.reindex(study.methods).sort_values(kind="stable", na_position="last").index
    table2, table3 = published.table("table2"), published.table("table3")
    rows = []
    for method in order:
        row = {"method": Cell(method), "label": Cell(study.label(method))}
        for scale, word in ((BASE, "base"), (LARGE, "large")):
            row |= _scale_cells(
                frames,
                {metric.name: differences[scale, metric.name] for metric in (LOSS, LOGPROB, ACCURACY)},
                scale,
                word,
                method,
                reference,
            )
        row |= list_published_cells(table2, method, {"z": "z"})
        row |= list_published_cells(table3, method, {"delta_3b": "delta_3b"}, source=published.format_path("table3"))
        rows.append(row | context_cells(study, BASE, frames))
    return make_table(
        "order_across_scales",
        f"Validation loss of every method beside {study.label(reference)}'s at {study.scale_label(BASE)} and "
        f"{study.scale_label(LARGE)}, all seeds, lowest first.",
        study,
        key="method",
        columns=COLUMNS,
        rows=rows,
        notes=_notes(study, differences),
        warnings=lead(study, reference, base, differences[LARGE, LOSS.name], published),
        published=published.format_path("table2", "csv"),
        scores=frames,
    )


def _scale_cells(
    frames: RunFrames, differences: Mapping[str, ScaleDifferences], scale: str, word: str, method: str, reference: str
) -> dict[str, Cell]:
    """The cells of one scale; `differences`: metric -> differences."""
    loss, logprob, accuracy = (differences[metric.name] for metric in (LOSS, LOGPROB, ACCURACY))
    runs = frames.select(scale, [method])
    mine, both = loss.runs.get(method, ()), (*loss.runs.get(method, ()), *loss.runs.get(reference, ()))
    gone = missing_word(runs["outcome"]) if len(runs) else NOT_RUN
    if loss.diverged.get(reference, 0) and not loss.diverged.get(method, 0):
        gone = NO_FLOOR
    is_reference = method == reference

    def at(values: pd.Series) -> float:
        return float(values.get(method, math.nan))

    untested = REFERENCE if is_reference else gone if math.isnan(at(loss.delta)) else ONE_SEED
    if is_reference or math.isnan(at(loss.p_bonferroni)):
        resolved = untested
    elif at(loss.p_bonferroni) <= LEVEL:
        resolved = BETTER if at(loss.delta) < 0 else WORSE
    else:
        resolved = NOT_RESOLVED
    return {
        f"validation_loss_minus_baseline_{word}": number_cell(at(loss.delta), gone, both),
        f"half_interval_95_{word}": number_cell(math.nan if is_reference else at(loss.half_interval), untested, both),
        f"resolved_{word}": Cell(resolved, both),
        f"p_bonferroni_{word}": number_cell(at(loss.p_bonferroni), untested, both),
        f"spread_of_own_seeds_{word}": number_cell(at(loss.spread), gone if gone != "missing" else ONE_SEED, mine),
        f"answer_logprob_minus_baseline_{word}": number_cell(at(logprob.delta), gone, both),
        f"answer_logprob_p_bonferroni_{word}": number_cell(at(logprob.p_bonferroni), untested, both),
        f"climb_avg_minus_baseline_{word}": number_cell(at(accuracy.delta), gone, both),
        f"climb_avg_p_bonferroni_{word}": number_cell(at(accuracy.p_bonferroni), untested, both),
        f"seeds_{word}": number_cell(int(loss.seeds[method]) if mine else None, gone, mine),
    }


def lead(
    study: Study, reference: str, base: ScaleDifferences, large: ScaleDifferences, published: PrintedNumbers
) -> list[str]:
    """What the smaller scale resolves, how much of its order the larger one keeps, and how much the paper has."""
    sentences = [
        _describe_resolved(study, differences, scale, reference)
        for scale, differences in ((BASE, base), (LARGE, large))
    ]
    agreements = agreement(study, base, large, published)
    all_pairs, pairs_apart = agreements["kept"], agreements["kept_where_told_apart"]
    small, larger = study.scale_label(BASE), study.scale_label(LARGE)
    if all_pairs.pairs:
        sentences.append(
            f"Decision accuracy, {small} for {larger}: {_describe_order(all_pairs)}; of those that {small} tells apart "
            f"(p <= {LEVEL}, one pair at a time), {_describe_order(pairs_apart)}."
        )
    for name, text in (("printed_z", "z of accuracy at 1.2B (Table 2)"), ("printed_3b", "accuracy at 3B (Table 3)")):
        if agreements[name].pairs:
            sentences.append(f"Beside the paper's {text}: {_describe_order(agreements[name])}.")
    last = agreements["printed_3b_diverged_last"]
    if last.pairs > agreements["printed_3b"].pairs:
        sentences.append(f"With those last that diverge there in the paper (Table 6): {_describe_order(last)}.")
    return sentences


def agreement(
    study: Study, base: ScaleDifferences, large: ScaleDifferences, published: PrintedNumbers
) -> dict[str, OrderAgreement]:
    """How alike the smaller scale orders methods as the larger one does, and as the printed accuracies do."""
    lower, larger = _negate_means(base), _negate_means(large)
    both = [method for method in lower if math.isfinite(lower[method]) and math.isfinite(larger.get(method, math.nan))]
    z = {method: read_printed_value(published.table("table2"), method, "z") for method in study.methods}
    delta = {method: read_printed_value(published.table("table3"), method, "delta_3b") for method in study.methods}
    return {
        "kept": order_agreement(lower, larger),
        "kept_where_told_apart": order_agreement(lower, larger, counted=base.pairs_apart(both)),
        "printed_z": order_agreement(lower, z),
        "printed_3b": order_agreement(lower, delta),
        "printed_3b_diverged_last": order_agreement(
            lower, {**delta, **dict.fromkeys(list_printed_divergences(published), -LAST)}
        ),
    }


def list_printed_divergences(published: PrintedNumbers) -> list[str]:
    """The methods of which a run at 3B diverges in the paper."""
    return sorted(set(published.table("table6").index))


def _negate_means(differences: ScaleDifferences) -> Mapping[str, float]:
    """Method -> minus its mean loss, so that larger is better."""
    return {str(method): -float(value) for method, value in differences.means.items()}


def _describe_order(order: OrderAgreement) -> str:
    if not order.pairs:
        return "no pair"
    text = f"{order.alike:g} of {order.pairs} pairs of {order.methods} methods in the same order ({order.share:.0%}"
    if math.isnan(order.p):
        return f"{text})"
    # Where every pair is alike so is every draw of them, and an interval would say that it is certain.
    interval = f"95 % interval over methods {order.low:.0%} to {order.high:.0%}; " if order.low < order.high else ""
    return f"{text}; {interval}by chance up to {order.chance:.0%}, p {format_probability(order.p)})"


def _describe_resolved(study: Study, differences: ScaleDifferences, scale: str, reference: str) -> str:
    resolved = differences.is_resolved()
    steps = {run.spec.train.steps for run in study.runs.values() if run.spec.scale == scale}
    where = f"{study.scale_label(scale)}{f' and {steps.pop()} steps' if len(steps) == 1 else ''}"
    if not differences.freedom:
        return f"At {where}: no spread of seeds, so nothing is resolved{_describe_unjudged(study, differences)}."
    parts = []
    for word, chosen in ((BETTER, resolved & (differences.delta < 0)), (WORSE, resolved & (differences.delta > 0))):
        deltas = differences.delta[chosen].sort_values()
        names = [f"{study.label(str(method))} {value:+.2f}" for method, value in deltas.items()]
        parts += [f"{word}: {', '.join(names)}"] if names else []
    others = int(differences.delta.drop(reference, errors="ignore").notna().sum())
    if not others:
        nothing = f"no method beside {study.label(reference)} has a loss to compare"
        return f"At {where}: {nothing}{_describe_unjudged(study, differences)}."
    return (
        f"Resolved by validation loss at {where}: {int(resolved.sum()) or 'none'} of {others} methods against "
        f"{study.label(reference)} (all seeds, Bonferroni over {study.m})"
        f"{f'. {parts[0][0].upper()}{parts[0][1:]}' if parts else ''}{f'; {parts[1]}' if len(parts) > 1 else ''}"
        f"{_describe_unjudged(study, differences)}."
    )


def _describe_unjudged(study: Study, differences: ScaleDifferences) -> str:
    """Which methods are not judged, since a seed diverged."""
    names = [
        f"{study.label(str(method))} ({count} of {len(differences.runs[str(method)])} seeds diverged)"
        for method, count in differences.diverged.items()
        if count
    ]
    return f". Not judged: {', '.join(names)}" if names else ""


def _notes(study: Study, differences: Mapping[tuple[str, str], ScaleDifferences]) -> list[str]:
    notes = [
        "Δ: mean validation loss over a method's seeds minus the mean over the reference's; ±: half of its 95 % "
        "interval, one comparison at a time; resolved: significant after Bonferroni. Spread of seeds: pooled over all "
        "methods about their own means. Δ log p: log-probability in nats of the right answer, mean over items and "
        "tasks; z, Δ 3B as printed (accuracy)."
    ]
    for scale in (BASE, LARGE):
        whole = differences[scale, LOSS.name]
        own = whole.spread.dropna()
        if whole.freedom and len(own):
            notes.append(
                f"{study.scale_label(scale)}: pooled spread {whole.sigma:.4f} nats ({whole.freedom} degrees of "
                f"freedom); methods' own from {own.min():.4f} ({study.label(str(own.idxmin()))}) to {own.max():.4f} "
                f"({study.label(str(own.idxmax()))}). Where a method's own is larger, its test is too easy."
                f"{_describe_false_calls(study, whole)}"
            )
        notes += _describe_accuracy(study, differences[scale, ACCURACY.name], scale)
    return notes


def _describe_false_calls(study: Study, differences: ScaleDifferences) -> str:
    """How often a method that does nothing would be called different, were seeds spread alike, and as they are here."""
    reference = require_reference(study, "order_across_scales")
    whole = [method for method in differences.means.dropna().index if method != reference]
    seeds = [int(differences.seeds[method]) for method in (reference, *whole)]
    if not whole or min(seeds) < 2:
        return ""
    own = [float(differences.spread[method]) for method in (reference, *whole)]
    alike, as_here = (simulate_pooled_test(each, seeds, m=study.m) for each in ([1.0] * len(own), own))
    return (
        f" In {WORLDS:,} simulated worlds in which no method does anything, at least one is called different in "
        f"{alike:.1%} if all spread alike, and in {as_here:.0%} were the methods' own spreads the true ones."
    )


def _describe_accuracy(study: Study, differences: ScaleDifferences, scale: str) -> list[str]:
    """What the same test says of accuracy, where there is a spread to say it by."""
    if not differences.freedom:
        return []
    deltas = differences.delta[differences.is_resolved()].sort_values(ascending=False)
    names = ", ".join(f"{study.label(str(method))} {value:+.4f}" for method, value in deltas.items())
    text = f"{len(deltas)} of {int(differences.p.notna().sum())} methods{': ' if names else ''}{names}"
    return [
        f"{study.scale_label(scale)} by CLIMB-avg, the same test of all seeds (ours): resolved {text}; pooled spread "
        f"{differences.sigma:.4f} ({differences.freedom} degrees of freedom). Of these items alone: "
        "their sampling error is in Table 2."
    ]
