"""Holds what is asked of an experiment, its terms, what a run of it gave and what was decided, and reads a decision
from the numbers next to its page; without numpy or scipy until a decision is read.

An experiment is a baseline and a candidate of one trainer at one budget, a primary metric that is named beforehand, and
runs (seeds) of both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from plumbline.core.errors import PlumblineError, UsageError
from plumbline.core.files import read_json
from plumbline.verdict.comparability.check_answer import CheckAnswer
from plumbline.verdict.comparison_terms import LOOP, Terms
from plumbline.verdict.evidence import CRASH, RunEvidence
from plumbline.verdict.outcome import Outcome

if TYPE_CHECKING:
    from plumbline.stats.after_stopping import GainAfterStopping
    from plumbline.stats.sequential import Boundary, Look, Plan, SequentialDesign

#: The arm of the baseline's runs; a candidate's are of its own name.
BASELINE = "baseline"
#: The outcomes of a run that are its arm's own doing; `finished` is the only one that has a value.
FINISHED, DIVERGED, CRASHED, TIMEOUT = "finished", "diverged", "crashed", "timeout"

#: Runs of the baseline before the first look, and of a candidate at most, unless others are requested.
BANK, MOST = 5, 8
#: The first seed of the bank. Seeds of candidates, and those of pairs and claims, begin so much later.
FIRST_SEED, APART = 42, 1000

Session = Literal["each", "fwer"]

#: Key of an earlier version -> the one that it has now.
_NEW_KEYS = {"min_gain": "minimum_gain", "worth": "target_gain_sigmas"}


@dataclass(frozen=True, kw_only=True, slots=True)
class ArmRun:
    """One run of an arm: what training it with one seed gave.

    Attributes:
        arm: `BASELINE`, or the candidate's name.
        value: the primary metric; None of a run that has none.
        outcome: `FINISHED`, `DIVERGED`, `CRASHED` or `TIMEOUT`.
        seconds: wall time of the training; None if it is not known.
        run_id: what was run, by a hash or a commit; two runs of one id and one seed are the same run.
        others: metrics that do not decide.
        why: of a run without a value, what is known of the reason (the last line of its log, say).
        fingerprint: hash of the machine, its device, torch and the data that the run was made with; "" if not known.
        sentinel: a run of the baseline that was made beside candidates, to notice drift.
        remarks: what is to be told of how it ended, though it counts.
    """

    arm: str
    seed: int
    value: float | None
    outcome: str = FINISHED
    seconds: float | None = None
    run_id: str = ""
    others: Mapping[str, float] = field(default_factory=dict)
    why: str = ""
    fingerprint: str = ""
    sentinel: bool = False
    remarks: Sequence[str] = ()

    @property
    def has_value(self) -> bool:
        """Whether the run finished with a finite value of the primary metric."""
        return self.outcome == FINISHED and self.value is not None and math.isfinite(self.value)

    @property
    def evidence(self) -> RunEvidence:
        """What the run itself says; its trainer may know more."""
        return RunEvidence(
            value=self.value if self.has_value else None,
            status=CRASH if self.outcome != FINISHED else FINISHED,
            word=self.why or ("" if self.outcome == FINISHED else self.outcome),
            seed=str(self.seed),
            seconds=self.seconds,
            remarks=tuple(self.remarks),
            others=self.others,
        )

    def rename(self, arm: str) -> ArmRun:
        """The same run as one of another experiment's arm."""
        return replace(self, arm=arm)


@dataclass(frozen=True, kw_only=True, slots=True)
class ExperimentTerms(Terms):
    """Everything that is settled before the first value of an experiment is seen.

    Attributes:
        name: of the experiment's page and its files.
        baseline, candidate: as a reader knows them.
        metric: the primary one, which alone decides; `unit` is what it is counted in ("nats a token", or nothing).
        session: how the error over many candidates is controlled; `alpha` is the level that this candidate got of it.
        target_gain_sigmas: a gain beyond the minimum that is not to be missed, in sigma.
        trainer: what trains both arms, as text: study, preset and scale, or a command.
        budget: how long a run trains, as text.
        size: how large the model is and how long it trains, as the sentence to quote says it; empty if that is not
            known.
        fingerprint: of the runs (`ArmRun.fingerprint`): means never cross it.
        varies: what a seed changes: "initialisation", or "initialisation and data order".
        scope: what a reader should know of the size ("results at so small a size say nothing about a larger one").
        differs: in what the candidate's recipe differs from the baseline's beyond the change itself, as words.
        fresh_runs: a keep stands only where so many runs with fresh seeds confirm it; 0: none are made, and `confirm`
            is that look.
        claim: a `confirm`: fresh seeds only, one look, the number to claim.
        together: the changes that the candidate consists of, where it is several that were kept one after another.
        equal: the measures of a run (`plumbline.verdict.evidence.MEASURES`) in which the arms may not differ.
        guards: measures and further metrics that may not get worse -> their limits
            (`plumbline.verdict.guard_limit`); they can only withhold a keep.
        as_good_as: the margin as it was requested, where the question is whether the candidate is as good within it;
            `minimum_gain` is then minus the margin, in the metric's units.
    """

    name: str
    baseline: str
    candidate: str
    metric: str
    design: SequentialDesign
    alpha: float = LOOP
    target_gain_sigmas: float | None = 2.0
    session: Session = "each"
    unit: str = ""
    trainer: str = ""
    budget: str = ""
    size: str = ""
    fingerprint: str = ""
    varies: str = "initialisation"
    scope: str = ""
    differs: tuple[str, ...] = ()
    fresh_runs: int = 0
    claim: bool = False
    together: tuple[str, ...] = ()
    equal: tuple[str, ...] = ()
    guards: Mapping[str, str] = field(default_factory=dict)
    as_good_as: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ExperimentQuestion(ExperimentTerms):
    """What is asked of a candidate: the terms, before `fix_design` has settled their design and what it brings.

    `alpha` is the session's until `find_session_level` computes this candidate's; `planned_tries` is how many are
    planned. The bank's first `bank_since` runs are not used again. `sizes_named`: whether somebody named the numbers of
    runs.
    """

    design: Any = None
    bank: int = BANK
    most: int = MOST
    plan: Plan = "bank"
    planned_tries: int | None = None
    first_seed: int = FIRST_SEED
    bank_since: int = 0
    sizes_named: bool = False

    def __post_init__(self) -> None:
        if (self.session == "fwer") != bool(self.planned_tries):
            raise UsageError("--session fwer needs --planned-tries N, the candidates of the session; each takes none")

    @property
    def design_record(self) -> list[Any]:
        """What decides, to be asked again."""
        design: list[Any] = [self.bank, self.most, self.alpha, self.minimum_gain, self.target_gain_sigmas, self.plan]
        design += [self.first_seed, self.session, self.planned_tries]
        design += [self.as_good_as, self.sizes_named] if self.as_good_as else []
        design += [list(self.equal)] if self.equal else []
        return design + ([dict(self.guards)] if self.guards else [])


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """What was decided of a candidate, and everything that a page states of it.

    Attributes:
        runs: the bank's first, then the candidate's; those of a claim, and of a plan that says so, in turn.
        looks: one after each run of the candidate that was examined; looks[-1] is the one that decided.
        boundary: of the whole design, also of looks that were not needed.
        estimate: the gain that is told, in the metric's units with its interval: that of the fresh runs where there are
            any, of a claim that of its test, else one that is right after stopping; None if none is known.
        fresh: runs of both arms with fresh seeds, in turn, made after the looks had kept the candidate; empty if they
            did not, or where none are made.
        estimate_after_stopping: of a decision with fresh runs, what the looks alone say of the gain.
        p: of a claim (`terms.claim`) alone: the one-sided p of its single test.
        sentence: the one to quote.
        order: the place of each of `runs`, then of each of `fresh`, in the order in which the runs of this trainer were
            made, from 0; None where it is not known, and empty where nothing is.
        comparability: what the checks of the evidence of both arms answered, by check.
        changed_files: file of the candidate that differs from the baseline -> lines added and removed (`+3 -1`); None
            if that is not known.
        checks: the report of the checks before the runs and before a keep; empty if none were needed.
        notes: what a reader has to be told besides: drift, what the noise does not hold.
        ledger: the line that binds the page to its ledger; tries: how many candidates were tried against this baseline.
        seconds: spent on this candidate (its runs; the bank's are `bank_seconds`, whether or not they were made now).
        fixed_runs: runs of a fixed design with the same chance to find `target_gain_sigmas`; None if none is stated.
        more: of an undecided one, how many further candidate runs would probably decide; None if that is not known.
        at: when it was decided (ISO, UTC).
        asked: what trains the arms, as whoever made the runs needs it to make others.
        equal_seeds: seeds at which both arms have the same value to all digits, where that decided.
    """

    terms: ExperimentTerms
    verdict: Outcome
    runs: tuple[ArmRun, ...]
    looks: tuple[Look, ...]
    boundary: Boundary
    sentence: str
    estimate: GainAfterStopping | None = None
    fresh: tuple[ArmRun, ...] = ()
    estimate_after_stopping: GainAfterStopping | None = None
    p: float | None = None
    order: tuple[int | None, ...] = ()
    comparability: Mapping[str, CheckAnswer] = field(default_factory=dict)
    changed_files: Mapping[str, str] | None = None
    checks: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    ledger: str = ""
    tries: int = 1
    seconds: float = 0.0
    bank_seconds: float = 0.0
    fixed_runs: int | None = None
    more: int | None = None
    at: str = ""
    asked: Mapping[str, Any] = field(default_factory=dict)
    equal_seeds: tuple[int, ...] = ()

    @property
    def exit_code(self) -> int:
        """What a program is told."""
        return self.verdict.exit_code

    @property
    def baseline_values(self) -> tuple[float, ...]:
        """The baseline's values, in the order of its runs."""
        return self._values(BASELINE, self.runs)

    @property
    def candidate_values(self) -> tuple[float, ...]:
        """The candidate's values, in the order of its runs."""
        return self._values(self.terms.candidate, self.runs)

    @property
    def fresh_values(self) -> tuple[float, ...]:
        """The values of the candidate's fresh runs, in their order."""
        return self._values(self.terms.candidate, self.fresh)

    @property
    def fresh_baseline_values(self) -> tuple[float, ...]:
        """The values of the baseline's fresh runs, in their order."""
        return self._values(BASELINE, self.fresh)

    @property
    def is_unconfirmed(self) -> bool:
        """Whether the looks kept the candidate and its fresh runs did not confirm that."""
        return self.verdict == Outcome.UNDECIDED and bool(self.fresh)

    def _values(self, arm: str, runs: Sequence[ArmRun]) -> tuple[float, ...]:
        return tuple(run.value for run in runs if run.arm == arm and run.has_value and run.value is not None)


def read_decision(path: Path) -> Decision:
    """Read a decision.

    Raises:
        PlumblineError: there is none.
    """
    record = read_json(path)
    if not isinstance(record, dict) or "terms" not in record:
        raise PlumblineError(f"{path} is no decision of an experiment; plumbline log lists those that there are")
    try:
        return _make_decision(record)
    except (KeyError, TypeError, ValueError) as error:
        raise PlumblineError(f"{path} is no decision of an experiment ({error!r}); repeat plumbline try") from None


def _make_decision(record: Mapping[str, Any]) -> Decision:
    from plumbline.stats.sequential import Boundary, Look, SequentialDesign
    from plumbline.verdict.comparability import every_check

    terms = _select_fields(ExperimentTerms, record["terms"])
    terms["design"] = SequentialDesign(**_select_fields(SequentialDesign, terms["design"]))
    for key in ("differs", "together", "equal"):
        terms[key] = tuple(terms.get(key, ()))
    edges = record["boundary"]
    keep, discard, df = (tuple(map(_read_number, edges[side])) for side in ("keep", "discard", "df"))
    past = record["terms"].get("history_words")  # of an earlier version, whose sigma was of past runs too
    decision_fields = _select_fields(Decision, record) | {
        "verdict": Outcome(record["verdict"]),
        "terms": ExperimentTerms(**terms),
        "runs": tuple(ArmRun(**run) for run in record["runs"]),
        "looks": tuple(Look(**_select_fields(Look, look)) for look in record["looks"]),
        "boundary": Boundary(keep, discard, df, edges["error"]),
        "order": tuple(record.get("order", ())),
        "equal_seeds": tuple(record.get("equal_seeds", ())),
        "fresh": tuple(ArmRun(**run) for run in record.get("fresh", ())),
        "comparability": every_check.answers_from_json(record.get("comparability", {})),
        "notes": (*record["notes"], *([past] if past else [])),
    }
    decision_fields |= {key: _read_estimate(record.get(key)) for key in ("estimate", "estimate_after_stopping")}
    return Decision(**decision_fields)


def _select_fields(kind: type, record: Mapping[str, Any]) -> dict[str, Any]:
    """What is known of it: an earlier version's decision has more, and other keys."""
    names = {field.name for field in fields(kind)}
    current = {_NEW_KEYS.get(key, key): value for key, value in record.items()}
    return {key: value for key, value in current.items() if key in names}


def _read_estimate(record: Mapping[str, Any] | None) -> GainAfterStopping | None:
    if record is None:
        return None
    from plumbline.stats.after_stopping import GainAfterStopping

    low = -math.inf if record["low"] is None else record["low"]
    high = math.inf if record["high"] is None else record["high"]
    return GainAfterStopping(**{**record, "low": low, "high": high})


def _read_number(value: float | None) -> float:
    return math.nan if value is None else value
