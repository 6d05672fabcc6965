"""Judges a record: against the goal and against its predecessor, with the noise of all records pooled."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from plumbline.core.errors import PlumblineError
from plumbline.stats.distributions import t_sf
from plumbline.stats.pooling import SigmaEstimate, bartlett_p, combine_estimates, may_cross, pool_spreads
from plumbline.verdict.comparability import every_check
from plumbline.verdict.comparability.compared_arms import ComparedArms
from plumbline.verdict.comparability.every_check import Answers
from plumbline.verdict.comparability.settings_comparison import SettingsComparison, compare_with_earlier
from plumbline.verdict.comparison_terms import ComparisonTerms
from plumbline.verdict.evidence import Evidence, RunEvidence
from plumbline.verdict.gate.examined_records import ExaminedRecord
from plumbline.verdict.gate.rules import Rules
from plumbline.verdict.judge import BaselineComparison, judge, judge_goal
from plumbline.verdict.outcome import CannotBeJudgedError, Outcome

#: Nothing is known of the noise.
UNKNOWN = SigmaEstimate(0.0, 0.0)
#: The kind of a fault that is the runs' own outcome.
DIVERGED = "diverged"


@dataclass(frozen=True, kw_only=True, slots=True)
class BoardNoise:
    """The noise of a board's records: one sigma of all of them, and Bartlett's p that it is one."""

    sigma: SigmaEstimate
    records: int
    bartlett: float


@dataclass(kw_only=True)
class Judgement:
    """What is decided of a record.

    Attributes:
        goal, predecessor: the tests; None if there is none, or none can be made. `why_not_*` says why.
        before: the record before it; changes: the printed settings in which this one differs from it.
        comparability: what the checks answered of both; of this one alone where there is none before it.
        sigma, sigma_words: the noise that the tests use, and where it is from.
        tries: what p is multiplied by, for a step or a number of runs that was chosen after looking.
        p_rules: the p of the goal by the rules' own sigma.
        one_more: the chance that the goal's test, or else the predecessor's, holds with one more run.
    """

    evidence: ExaminedRecord
    verdict: Outcome = Outcome.CANNOT_BE_JUDGED
    reason: str = ""
    goal: BaselineComparison | None = None
    predecessor: BaselineComparison | None = None
    before: ExaminedRecord | None = None
    changes: SettingsComparison = field(default_factory=SettingsComparison)
    comparability: Answers = field(default_factory=dict)
    why_not_goal: str = ""
    why_not_predecessor: str = ""
    sigma: SigmaEstimate = UNKNOWN
    sigma_words: str = ""
    tries: int = 1
    paid_for: str = ""
    p_rules: float | None = None
    one_more: float | None = None

    @property
    def exit_code(self) -> int:
        """What a program is told."""
        return self.verdict.exit_code


def pool_noise(board: Sequence[ExaminedRecord]) -> BoardNoise:
    """Pool the spread of all records of which two runs or more can be read."""
    groups = [values for each in board if each.pools and len(values := each.finite_values) > 1]
    sigma = pool_spreads(groups) if groups else UNKNOWN
    return BoardNoise(sigma=sigma, records=len(groups), bartlett=bartlett_p(groups) if len(groups) > 1 else math.nan)


def judge_record(examined: ExaminedRecord, board: Sequence[ExaminedRecord], rules: Rules) -> Judgement:
    """Judge one record of a board."""
    place = next(place for place, each in enumerate(board) if each is examined)
    return _judge(examined, find_predecessors(board, rules)[place], pool_noise_of_others(board)[place], rules)


def judge_board(board: Sequence[ExaminedRecord], rules: Rules) -> list[Judgement]:
    """Judge every record of a board."""
    other_noise, predecessors = pool_noise_of_others(board), find_predecessors(board, rules)
    return [_judge(examined, predecessors[place], other_noise[place], rules) for place, examined in enumerate(board)]


def _judge(
    examined: ExaminedRecord, predecessor: ExaminedRecord | None, other_noise: SigmaEstimate, rules: Rules
) -> Judgement:
    judgement = Judgement(evidence=examined, before=predecessor)
    values = _name_values(examined.values)
    judgement.comparability = own_answers = _examine(examined, None, rules)
    own_noise = pool_spreads([examined.finite_values]) if len(examined.finite_values) > 1 else UNKNOWN
    _choose_sigma(judgement, own_noise, other_noise, rules)
    _set_tries(judgement, rules)
    if predecessor is not None:
        judgement.comparability = _examine(examined, predecessor, rules)
        judgement.changes = compare_with_earlier(
            examined.values, predecessor.values, rules.same.configuration_may_differ
        )
    if values:
        _judge_goal(judgement, values, rules)
        _judge_predecessor(judgement, values, rules)
    _decide(judgement, rules, every_check.describe_refusal(own_answers))
    return judgement


def _examine(examined: ExaminedRecord, predecessor: ExaminedRecord | None, rules: Rules) -> Answers:
    """What the checks of comparability answer of a record, next to the one before it."""
    records = [each for each in (examined, predecessor) if each is not None]
    runs = {each.record.name: {f"{number}": run for number, run in enumerate(each.values, start=1)} for each in records}
    arms = ComparedArms(
        evidence=Evidence(metric=rules.metric, runs=runs),
        baseline=predecessor.record.name if predecessor is not None else "",
        candidate=examined.record.name,
        may_differ=rules.same.configuration_may_differ,
        higher=rules.higher,
    )
    return every_check.examine(arms)


def pool_noise_of_others(board: Sequence[ExaminedRecord]) -> list[SigmaEstimate]:
    """For each record the pooled spread of all others; in the time of two passes over the board."""
    spreads = [
        pool_spreads([values]) if each.pools and len(values := each.finite_values) > 1 else UNKNOWN for each in board
    ]
    heads, tails = [UNKNOWN], [UNKNOWN]
    for each in spreads:
        heads.append(combine_estimates(heads[-1], each))
    for each in reversed(spreads):
        tails.append(combine_estimates(tails[-1], each))
    return [combine_estimates(heads[place], tails[len(spreads) - 1 - place]) for place in range(len(spreads))]


def find_predecessors(board: Sequence[ExaminedRecord], rules: Rules) -> list[ExaminedRecord | None]:
    """For each record the best one before it, the earlier of two; None for the first."""
    sign = 1 if rules.lower_headline else -1
    best_record: ExaminedRecord | None = None
    predecessors: dict[int, ExaminedRecord | None] = {}
    for each in sorted(board, key=lambda each: each.record.order):
        predecessors[each.record.order] = best_record
        if each.record.headline is None or not each.record.marked:
            continue
        if best_record is None or sign * _board_order(each) < sign * _board_order(best_record):
            best_record = each
    return [predecessors[each.record.order] for each in board]


def _board_order(examined: ExaminedRecord) -> float:
    """What the board sorts by: the step, or else the headline."""
    record = examined.record
    assert record.headline is not None
    return float(record.step) if record.step is not None else record.headline.value


def _name_values(values: Sequence[RunEvidence]) -> dict[str, float]:
    """The values by a name that no two runs share."""
    return {f"run {number}": each.value for number, each in enumerate(values, start=1) if each.value is not None}


def _choose_sigma(judgement: Judgement, own_noise: SigmaEstimate, other_noise: SigmaEstimate, rules: Rules) -> None:
    if own_noise.df and own_noise.sigma and (not other_noise.df or not may_cross(own_noise, other_noise)):
        judgement.sigma = own_noise
        judgement.sigma_words = "its own runs" + (", which spread wider than the board's" if other_noise.df else "")
    elif own_noise.df and other_noise.df:
        judgement.sigma, judgement.sigma_words = combine_estimates(own_noise, other_noise), "pooled over the board"
    elif rules.goal is not None and rules.goal.sigma is not None:
        judgement.sigma, judgement.sigma_words = (
            SigmaEstimate(rules.goal.sigma, math.inf),
            "assumed by the rules, for one run",
        )


def _make_terms(
    judgement: Judgement, rules: Rules, alpha: float, minimum: float = 0.0, target_gain: float | None = None
) -> ComparisonTerms:
    sigma = judgement.sigma
    runs = None if math.isinf(sigma.df) else round(sigma.df) + 1
    return ComparisonTerms(
        higher=rules.higher,
        alpha=alpha,
        minimum_gain=minimum,
        target_gain=target_gain,
        sigma=sigma.sigma or None,
        sigma_runs=runs if sigma.sigma else None,
    )


def _set_tries(judgement: Judgement, rules: Rules) -> None:
    """What p is multiplied by: once for each look that could have ended otherwise, where the rules have that paid."""
    examined, paid = judgement.evidence, []
    if rules.stopping.chosen == "paid" and examined.looks > 1:
        judgement.tries *= examined.looks
        paid.append(f"{examined.looks} steps")
    number = len(examined.values) - rules.runs.least + 1
    if rules.runs.chosen == "paid" and not rules.runs.fixed and number > 1:
        judgement.tries *= number
        paid.append(f"{number} numbers of runs")
    judgement.paid_for = " and ".join(paid)


def _judge_goal(judgement: Judgement, values: dict[str, float], rules: Rules) -> None:
    goal = rules.goal
    if goal is None:
        return
    try:
        # Anything beyond the goal is worth having: what is ruled out is that the goal is reached.
        terms = _make_terms(judgement, rules, goal.alpha, target_gain=1e-9 * max(1.0, abs(goal.value)))
        judgement.goal = judge_goal("the record", values, goal.value, terms, tries=judgement.tries)
        judgement.one_more = compute_chance_with_one_more_run(judgement.goal)
        if goal.sigma is not None:
            assumed_terms = ComparisonTerms(higher=rules.higher, alpha=goal.alpha, sigma=goal.sigma)
            judgement.p_rules = judge_goal("the record", values, goal.value, assumed_terms).p
    except CannotBeJudgedError:
        judgement.why_not_goal = "one run, and no sigma: it cannot be tested"
    except PlumblineError as error:
        judgement.why_not_goal = str(error)


def _judge_predecessor(judgement: Judgement, values: dict[str, float], rules: Rules) -> None:
    part, predecessor = rules.predecessor, judgement.before
    if part is None:
        return
    if predecessor is None:
        judgement.why_not_predecessor = "it is the first of the board"
        return
    theirs = _name_values(predecessor.values)
    if not theirs:
        judgement.why_not_predecessor = "no log of it could be read"
        return
    if refusal := every_check.describe_refusal(judgement.comparability):
        judgement.why_not_predecessor = f"not compared: {refusal}"
        return
    step, earlier_step = judgement.evidence.record.step, predecessor.record.step
    saving = earlier_step - step if step is not None and earlier_step is not None else 0
    shift = part.slope * saving * (1 if rules.higher else -1)
    try:
        shifted = {seed: value + shift for seed, value in values.items()}
        judgement.predecessor = judge(
            "the record",
            shifted,
            theirs,
            _make_terms(judgement, rules, part.alpha, part.minimum_gain),
            tries=judgement.tries,
        )
        if rules.goal is None:
            judgement.one_more = compute_chance_with_one_more_run(judgement.predecessor)
    except CannotBeJudgedError:
        judgement.why_not_predecessor = "too few runs, and no sigma"
    except PlumblineError as error:
        judgement.why_not_predecessor = str(error)


def _decide(judgement: Judgement, rules: Rules, refusal: str) -> None:
    """Decide; `refusal`: why the record's own runs cannot be judged, by the checks of comparability."""
    faults = judgement.evidence.faults
    kinds = list(dict.fromkeys(fault.kind for fault in faults))
    found_runs = judgement.evidence.values
    required = [
        test for test, part in ((judgement.goal, rules.goal), (judgement.predecessor, rules.predecessor)) if part
    ]
    if rules.predecessor is not None and (not rules.predecessor.required or judgement.before is None):
        required = required[:1] if rules.goal is not None else []
    if DIVERGED in kinds:
        judgement.verdict, judgement.reason = Outcome.CRASHED, faults[kinds.index(DIVERGED)].words
    elif faults:
        judgement.verdict, judgement.reason = Outcome.CANNOT_BE_JUDGED, faults[0].words
    elif refusal:
        judgement.verdict, judgement.reason = Outcome.CANNOT_BE_JUDGED, refusal
    elif not found_runs or any(test is None for test in required):
        judgement.reason = judgement.why_not_goal or judgement.why_not_predecessor or "there is no run to test"
    elif all(test is not None and test.outcome is Outcome.KEEP for test in required):
        judgement.verdict = Outcome.KEEP
        judgement.reason = "its logs say what it says" + (", and it is better than is required" if required else "")
    elif any(test is not None and test.outcome is Outcome.DISCARD for test in required):
        judgement.verdict, judgement.reason = Outcome.DISCARD, "that it is as good as is required is ruled out"
    else:
        judgement.verdict, judgement.reason = Outcome.UNDECIDED, "its runs do not show that it is better"


def compute_chance_with_one_more_run(test: BaselineComparison) -> float:
    """The chance that a test against a goal or another record holds with one more run, drawn as the others were.

    The new run is predicted from the mean and sigma; sigma is not estimated anew with it.
    """
    n, sign, theirs = test.n, test.terms.sign, 1 / test.n_baseline if test.n_baseline else 0.0
    critical = test.design.critical * test.sigma * math.sqrt(1 / (n + 1) + theirs)
    # The least value, upwards when better, with which the mean of n + 1 is still better by `critical`.
    least = (n + 1) * (sign * test.mean_baseline + test.terms.minimum_gain + critical) - n * sign * test.mean
    return float(t_sf((least - sign * test.mean) / (test.sigma * math.sqrt(1 + 1 / n)), test.freedom))
