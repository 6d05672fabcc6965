"""Says what was decided of a candidate in a sentence that can be quoted: *improves by*, *ruled out above*, *not
decided: N more runs*.

A gain that was found by looking until it is there is told as its fresh runs have it, or as
`plumbline.stats.after_stopping` estimates it, never as the difference of the means, which flatters what was kept; where
there is neither, no number is told. Nothing is said not to be there because few runs did not show it.

And what stands next to it: what a fixed number of runs would cost, and how many more would decide.
"""

from __future__ import annotations

import math
from typing import get_args

from scipy import special

from plumbline.core.formats import format_count, format_percent
from plumbline.stats.fresh_runs import FRESH_LEVEL
from plumbline.stats.sequential import Boundary, Look, SequentialDesign, compute_characteristics
from plumbline.stats.sessions import false_keeps
from plumbline.verdict.decision.experiment import BASELINE, FINISHED, Decision, ExperimentTerms, Session
from plumbline.verdict.formatting import format_p, format_value, join_with_and, quote, strip_markup
from plumbline.verdict.outcome import Outcome
from plumbline.verdict.power import ComparisonDesign

#: More runs than these are not proposed.
MOST_MORE = 100


def write_sentence(decision: Decision, *, reason: str = "") -> str:
    """Write what was decided in a sentence, to be quoted as it is: with its size, where that is known.

    `reason`: of a candidate that cannot be judged, or that was lost after its looks, why, where no run says it; of one
    that its metric would have kept and that is discarded, what withholds it.
    """
    size = strip_markup(decision.terms.size)
    return f"{f'At {size}, ' if size else ''}{_write_verdict(decision, reason)}"


def _write_verdict(decision: Decision, reason: str) -> str:
    terms = decision.terms
    if decision.verdict == Outcome.CANNOT_BE_JUDGED:
        return f"{_name_candidate(decision)} cannot be judged: {_describe_lost_runs(decision, BASELINE) or reason}."
    if decision.verdict == Outcome.CRASHED:
        base = _describe_lost_runs(decision, BASELINE) or f"none of {quote(terms.baseline)} did"
        verb = _choose_verb(decision, "has", "have")
        text = (
            f"{_name_candidate(decision)} {verb} no gain to tell: "
            f"{reason or _describe_lost_runs(decision, terms.candidate)}, while {base}"
        )
        tail = "" if len(decision.candidate_values) == 0 else " Its other runs do not decide: that would select."
        return f"{text}.{tail}"
    if decision.verdict == Outcome.DISCARD and reason:
        return _write_withheld(decision, reason)
    write = {
        Outcome.KEEP: _write_keep,
        Outcome.AS_GOOD: _write_as_good,
        Outcome.DISCARD: _write_discard,
        Outcome.UNDECIDED: _write_undecided,
        Outcome.IMPLAUSIBLE: _write_implausible,
    }[decision.verdict]
    return write(decision)


def format_gain(gain: float, decision: Decision) -> str:
    """Write a gain with the digits that the noise leaves, and its unit."""
    if not math.isfinite(gain):
        return "no limit"
    return (
        f"{format_value(gain, decision.looks[-1].sigma) if decision.looks else f'{gain:.4g}'}{_format_unit(decision)}"
    )


def format_interval(decision: Decision) -> str:
    """Write the interval of the gain: ``90 % interval 0.002 to 0.013 nats``; empty without an estimate."""
    estimate = decision.estimate
    if estimate is None:
        return ""
    low, high = (format_gain(end, decision) for end in (estimate.low, estimate.high))
    level = f"{format_percent(estimate.level)} interval"
    if math.isinf(estimate.low):
        return f"{level} up to {high}" if math.isfinite(estimate.high) else f"{level}: everything"
    return f"{level} {low.removesuffix(_format_unit(decision))} to {high}"


def name_next_step(look: Look, boundary: Boundary) -> str:
    """State what a look decides: ``kept``, ``discarded``, ``one more run`` or, after the last one, ``not decided``."""
    if look.t >= boundary.keep[look.k - 1]:
        return "kept"
    if look.t <= boundary.discard[look.k - 1]:
        return "discarded"
    return "one more run" if look.k < len(boundary.keep) else "not decided"


def describe_look(look: Look, boundary: Boundary) -> str:
    """Write what one look saw: T, the boundary, and what is next."""
    keep, discard = (side[look.k - 1] for side in (boundary.keep, boundary.discard))
    sides = [f"kept from {keep:.2f}"] if math.isfinite(keep) else ["too early to keep"]
    sides += [f"discarded up to {discard:.2f}"] if math.isfinite(discard) else []
    return (
        f"after {format_count(look.k, 'run')} T = {look.t:.2f} ({', '.join(sides)}): {name_next_step(look, boundary)}"
    )


def describe_session(decision: Decision) -> str:
    """State what the control of a session of candidates promises, and what it costs or lets through."""
    terms, design = decision.terms, decision.terms.design
    if terms.session == "fwer":
        return (
            "Session `fwer`: the level was spread over the candidates that were planned against this baseline, so that "
            "it holds for all of them together; another baseline begins another session."
        )
    if terms.session not in get_args(Session):  # of an earlier version, whose page is made again
        return f"Session `{terms.session}`, of an earlier version: its boundary was none of those of `each` and `fwer`."
    promise = "Session `each`: the level holds for each candidate by itself."
    if design.plan != "bank" or decision.tries < 2 or terms.as_good_as:
        return promise
    false_keep_count = false_keeps(design, decision.tries, fresh_runs=terms.fresh_runs)
    return (
        f"{promise} If none of the {decision.tries} changes tried so far against this baseline did anything, "
        f"{false_keep_count.mean:.2g} false keeps would be expected, and {false_keep_count.low} to "
        f"{false_keep_count.high} in 9 of 10 such sessions, for candidates share the baseline's runs until one is kept."
    )


def _write_keep(decision: Decision) -> str:
    terms, estimate = decision.terms, decision.estimate
    required = (
        (f", more than the {format_gain(terms.minimum_gain, decision)} that are required") if terms.minimum_gain else ""
    )
    improves = f"{_name_candidate(decision)} {_choose_verb(decision, 'improves', 'improve')} {_name_metric(decision)}"
    if estimate is None:
        return (
            f"{improves}{required}: kept {_describe_runs(decision)}. By how much in fresh runs, `plumbline confirm` "
            "says."
        )
    gain = f"by {format_gain(estimate.median, decision)} ({format_interval(decision)}{_describe_p(decision)}){required}"
    if terms.claim:
        return f"{improves} {gain}, with {_describe_fresh_runs(decision, len(decision.candidate_values))}."
    if decision.fresh:
        runs = format_count(len(decision.candidate_values), "run")
        return (
            f"{improves} {gain}, with {_describe_fresh_runs(decision, len(decision.fresh_values))}: kept after {runs}."
        )
    return f"{improves} {gain}: kept {_describe_runs(decision)}; whether fresh runs agree, `plumbline confirm` says."


def _write_withheld(decision: Decision, reason: str) -> str:
    estimate, metric = decision.estimate, _name_metric(decision)
    gain = "" if estimate is None else f"{format_gain(estimate.median, decision)} ({format_interval(decision)})"
    if decision.terms.as_good_as:
        start = f"{_describe_as_good(decision)} in {metric} by a margin of {describe_margin(decision)}"
        start += f" (a gain of {gain})" if gain else ""
    else:
        improves = _choose_verb(decision, "improves", "improve")
        start = f"{_name_candidate(decision)} {improves} {metric}{f' by {gain}' if gain else ''}"
    if decision.fresh or decision.terms.claim:
        fresh = decision.fresh_values if decision.fresh else decision.candidate_values
        runs = f", with {_describe_fresh_runs(decision, len(fresh))}"
    else:
        runs = f" {_describe_runs(decision)}"
    return f"{start}{runs}, and {_choose_verb(decision, 'is', 'are')} not kept: {reason}."


def _write_as_good(decision: Decision) -> str:
    terms, estimate = decision.terms, decision.estimate
    within = f"{_describe_as_good(decision)} in {_name_metric(decision)} by a margin of {describe_margin(decision)}"
    if decision.equal_seeds:
        runs = format_count(len(decision.equal_seeds), "seed")
        seeds = ", ".join(map(str, decision.equal_seeds))
        return f"{within}: at each of the baseline's {runs} tried ({seeds}) its value is the same to all digits."
    if estimate is None:
        return f"{within}, {_describe_runs(decision)}."
    gain = f"a gain of {format_gain(estimate.median, decision)} ({format_interval(decision)}{_describe_p(decision)})"
    if terms.claim:
        return f"{within}: {gain}, with {_describe_fresh_runs(decision, len(decision.candidate_values))}."
    if decision.fresh:
        runs = format_count(len(decision.candidate_values), "run")
        fresh = _describe_fresh_runs(decision, len(decision.fresh_values))
        return f"{within}: {gain}, with {fresh}: kept after {runs}."
    return f"{within}: {gain}, {_describe_runs(decision)}."


def _describe_as_good(decision: Decision) -> str:
    return f"{_name_candidate_with_is(decision)} as good as {quote(decision.terms.baseline)}"


def describe_margin(decision: Decision) -> str:
    """State the margin by which a candidate may be worse, in the metric's units: ``0.01 (1 sigma)``."""
    terms = decision.terms
    in_sigmas = f" ({terms.as_good_as})" if "sigma" in terms.as_good_as else ""
    return f"{-terms.minimum_gain:.3g}{_format_unit(decision)}{in_sigmas}"


def _write_implausible(decision: Decision) -> str:
    gain = f" ({format_interval(decision)} of its gain)" if decision.estimate is not None else ""
    return (
        f"{_name_candidate_with_is(decision)} not kept, though {_name_metric(decision)} is better{gain} "
        f"{_describe_runs(decision)}: no modification gained so much. Look at what it does; then the same command with "
        "--accept-implausible keeps it."
    )


def _write_discard(decision: Decision) -> str:
    terms, estimate = decision.terms, decision.estimate
    if terms.as_good_as:
        return _write_not_as_good(decision)
    tail = f"discarded {_describe_runs(decision)}"
    if estimate is None or not math.isfinite(estimate.high):
        target_gain, minimum = terms.design.target_gain_sigmas, _describe_minimum(decision)
        if target_gain is None:
            return f"{_name_candidate_with_is(decision)} {tail}."
        chance = format_percent(terms.design.futility)
        return (
            f"{_name_candidate_with_is(decision)} {tail}: a change that gains {target_gain:g} sigma{minimum} in "
            f"{_name_metric(decision)} ends so in at most {chance} of cases."
        )
    level = f"{format_percent((1 + estimate.level) / 2)}, one-sided"
    # No p: it is of the order in which tries end, and may be small where the interval, which holds at every look,
    # reaches zero.
    level += f"; its gain is estimated as {format_gain(estimate.median, decision)}"
    if math.isfinite(estimate.low):
        level += f", {format_interval(decision)}"
    if estimate.high <= terms.minimum_gain:
        any_gain = f"any gain{_describe_minimum(decision)} in {_name_metric(decision)}"
        return f"{_name_candidate(decision)}: {any_gain} is ruled out ({level}): {tail}."
    bound = format_gain(estimate.high, decision)
    sentence = (
        f"{_name_candidate(decision)}: gains above {bound} in {_name_metric(decision)} are ruled out ({level}): {tail}"
    )
    return f"{sentence} (this does not say that it is worse)." if estimate.high > 0 else f"{sentence}."


def _write_not_as_good(decision: Decision) -> str:
    terms, estimate = decision.terms, decision.estimate
    subject, margin = _name_candidate_with_is(decision), describe_margin(decision)
    tail = f"discarded {_describe_runs(decision)}"
    if estimate is not None and math.isfinite(estimate.high):
        gain = f"{format_gain(estimate.median, decision)}, {format_interval(decision)}"
        if estimate.high <= terms.minimum_gain:
            worse = (
                f"worse than {quote(terms.baseline)} in {_name_metric(decision)} by more than the margin of {margin}"
            )
            return f"{subject} {worse} (its gain: {gain}): {tail}."
        tail = f"(its gain: {gain}): {tail}"
    chance = format_percent(terms.design.futility)
    return (
        f"{subject} not as good as {quote(terms.baseline)} in {_name_metric(decision)} by a margin of {margin}, as far "
        f"as its runs show {tail}; a change that does nothing ends so in at most {chance} of cases."
    )


def _write_undecided(decision: Decision) -> str:
    if not decision.candidate_values:
        return f"{_name_candidate_with_is(decision)} not decided: it has no run yet."
    gain_interval = (
        f"; the gain in {_name_metric(decision)} has the {format_interval(decision)}" if decision.estimate else ""
    )
    if decision.is_unconfirmed and decision.estimate is not None:
        gain, confirms = format_gain(decision.estimate.median, decision), f"{FRESH_LEVEL:g} at most would confirm it"
        return (
            f"{_name_candidate_with_is(decision)} not decided, for it was kept {_describe_runs(decision)} and is not "
            f"confirmed by its fresh runs: a gain of {gain} in {_name_metric(decision)} "
            f"({format_interval(decision)}{_describe_p(decision)}; {confirms}), with "
            f"{_describe_fresh_runs(decision, len(decision.fresh_values))}."
        )
    hint = ""
    if decision.more:
        hint = f": {decision.more:,} more {'runs' if decision.more > 1 else 'run'} would probably decide"
    question = (
        f", whether it is as good by a margin of {describe_margin(decision)}," if decision.terms.as_good_as else ""
    )
    return f"{_name_candidate_with_is(decision)} not decided{question} {_describe_runs(decision)}{hint}{gain_interval}."


def _describe_minimum(decision: Decision) -> str:
    least = decision.terms.minimum_gain
    return f" beyond {format_gain(least, decision)}" if least else ""


def _describe_runs(decision: Decision) -> str:
    """After how many runs of which arms."""
    candidate_runs, baseline_runs = len(decision.candidate_values), len(decision.baseline_values)
    return f"after {format_count(candidate_runs, 'run')} against {baseline_runs} of {quote(decision.terms.baseline)}"


def _describe_fresh_runs(decision: Decision, runs: int) -> str:
    """So many fresh runs against those of the baseline."""
    baseline = decision.fresh_baseline_values or decision.baseline_values
    return f"{format_count(runs, 'fresh run')} against {len(baseline)} of {quote(decision.terms.baseline)}"


def _describe_p(decision: Decision) -> str:
    return "" if decision.estimate is None else f"; one-sided p = {format_p(decision.estimate.p)}"


def _describe_lost_runs(decision: Decision, arm: str) -> str:
    """Which runs of an arm have no value: ``1 of 3 runs of `x` diverged (seed 4)``; empty if none has."""
    runs = [run for run in decision.runs if run.arm == arm]
    label = quote(decision.terms.baseline if arm == BASELINE else decision.terms.candidate)
    phrases = []
    for outcome in dict.fromkeys(run.outcome for run in runs if not run.has_value):
        lost_runs = [run for run in runs if run.outcome == outcome and not run.has_value]
        seeds = f"seed{'s' * (len(lost_runs) > 1)} {join_with_and([str(run.seed) for run in lost_runs])}"
        why = next((f": {quote(run.why)}" for run in lost_runs if run.why), "")
        reason = {FINISHED: "gave no finite value", "timeout": "took too long"}.get(outcome, outcome)
        phrases.append(f"{len(lost_runs)} {reason} ({seeds}{why})")
    return f"of {format_count(len(runs), 'run')} of {label} {join_with_and(phrases)}" if phrases else ""


def _format_unit(decision: Decision) -> str:
    """What the metric is counted in, with a blank before it; nothing of it that a page could take for more."""
    unit = strip_markup(decision.terms.unit)
    return f" {unit}" if unit else ""


def _name_candidate(decision: Decision) -> str:
    """What was judged: its name, or the names of all changes that are judged together."""
    together = decision.terms.together
    if len(together) < 2:
        return quote(decision.terms.candidate)
    every = "both" if len(together) == 2 else f"all {len(together)}"
    return f"{join_with_and([quote(change) for change in together])} together ({every} that were kept)"


def _name_candidate_with_is(decision: Decision) -> str:
    return f"{_name_candidate(decision)} {_choose_verb(decision, 'is', 'are')}"


def _choose_verb(decision: Decision, singular: str, plural: str) -> str:
    return plural if len(decision.terms.together) > 1 else singular


def _name_metric(decision: Decision) -> str:
    return quote(decision.terms.metric)


def count_fixed_runs(design: SequentialDesign) -> int | None:
    """Count the candidate runs of a fixed design with the same bank that has this design's power at its target gain."""
    if design.target_gain_sigmas is None or design.plan != "bank":
        return None
    power = compute_characteristics(design, design.target_gain_sigmas).kept
    for n in range(1, 10 * design.most):
        df = design.bank + n - 2
        fixed = ComparisonDesign(math.sqrt(1 / design.bank + 1 / n), df, design.alpha)
        if df >= 1 and fixed.power(design.target_gain_sigmas) >= power:
            return n
    return None


def count_further_runs(terms: ExperimentTerms, look: Look) -> int | None:
    """Count the candidate runs more at which the gain that was seen would pass a t test; None if none would."""
    design = terms.design
    gain = look.gain - terms.minimum_gain
    if design.plan != "bank" or gain <= 0:
        return None
    for k in range(look.k + 1, look.k + MOST_MORE):
        t = gain / (look.allowance * look.sigma * math.sqrt(1 / design.bank + 1 / k))
        if t >= float(special.stdtrit(look.df + k - look.k, 1 - design.alpha / 2)):
            return k - look.k
    return None


def list_notes(terms: ExperimentTerms) -> list[str]:
    """State what a page of these terms has to say whatever was found."""
    if terms.varies != "initialisation":
        return []
    return ["Seeds change the initialisation alone: the noise of the order of data is not in these numbers."]
