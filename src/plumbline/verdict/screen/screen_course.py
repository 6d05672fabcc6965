"""Decides what a screen runs next, and what came out: the design, a look halfway, crashes, the chosen set, its proof.

It is a function of the terms, the design and the runs that are there, and keeps nothing: a screen that was killed goes
on from its runs. Run i of the design has the i-th seed from the first one on; fresh runs have the seeds after.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from plumbline.core.formats import format_count
from plumbline.stats.fresh_runs import MeanDifference, compare_means
from plumbline.verdict.comparability.check_answer import CheckAnswer
from plumbline.verdict.decision.experiment import ArmRun
from plumbline.verdict.formatting import name_some
from plumbline.verdict.outcome import Outcome
from plumbline.verdict.screen import screen_sentences
from plumbline.verdict.screen.screen_design import (
    WITH,
    Level,
    ScreenDesign,
    augment_design,
    drop_levels,
    insert_single_levels,
    name_level,
)
from plumbline.verdict.screen.screen_effects import ScreenEffects, blame_crashes, blame_pairs, estimate_effects
from plumbline.verdict.screen.screen_terms import ScreenTerms

#: What a run is for: the design, the chosen set and the baseline with fresh seeds, the set without one of its levels.
DESIGN, FRESH, LEFT_OUT = "design", "fresh", "left out"
#: Runs after which crashes are looked at first; then after twice as many, and so on.
FIRST_LOOK_AT_CRASHES = 16
#: How often runs that were lost by chance are made up for by new ones, and rows at most, in those of the design.
MOST_ROUNDS, MOST_TIMES = 3, 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """A run to be made: the level of every factor, its seed, and what it is for (`DESIGN`, `FRESH`, `LEFT_OUT`)."""

    settings: Mapping[str, str]
    seed: int
    part: str

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells a run from all others."""
        return self.part, self.seed, tuple(sorted(self.settings.items()))


@dataclass(frozen=True, slots=True)
class ScreenRun:
    """What a request gave; a run without a value crashed or diverged."""

    request: Request
    run: ArmRun


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """What is to be run next, all of it before the next step.

    Attributes:
        design: as it is now: levels that crash are gone from rows that are still to be made, and rows were added.
        notes: what happened since the design was made.
    """

    requests: tuple[Request, ...]
    design: ScreenDesign
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class LeftOut:
    """What a level gains inside the chosen set: the set's fresh runs against those of the set without it."""

    level: Level
    difference: MeanDifference


@dataclass(frozen=True, kw_only=True, slots=True)
class ScreenDecision:
    """What came out of a screen.

    Attributes:
        runs: all that were made; those of the design first, in the order of its rows.
        effects: by all runs of the design; None where nothing could be estimated.
        dropped: levels that made their runs crash, and pairs of levels that did so together.
        chosen: the levels of the set.
        confirmation: of the set against the baseline by fresh runs; None without a set or its runs.
        left_out: what each level gains inside the set, where that was asked for.
        stopped_at: the number of rows after which a look ended the design; 0 where all were made.
        to_keep: how the set is taken over, by whoever made the runs.
    """

    terms: ScreenTerms
    design: ScreenDesign
    verdict: Outcome
    runs: tuple[ScreenRun, ...]
    sentence: str = ""
    effects: ScreenEffects | None = None
    dropped: tuple[Level, ...] = ()
    clashing: tuple[tuple[Level, Level], ...] = ()
    chosen: tuple[Level, ...] = ()
    confirmation: MeanDifference | None = None
    left_out: tuple[LeftOut, ...] = ()
    stopped_at: int = 0
    comparability: Mapping[str, CheckAnswer] = field(default_factory=dict)
    fresh_comparability: Mapping[str, CheckAnswer] = field(default_factory=dict)
    changed_files: Mapping[str, str] | None = None
    notes: tuple[str, ...] = ()
    ledger: str = ""
    tries: int = 1
    to_keep: str = ""
    asked: Mapping[str, Any] = field(default_factory=dict)
    at: str = ""

    @property
    def exit_code(self) -> int:
        """What a program is told."""
        return self.verdict.exit_code

    def verdict_of(self, level: Level) -> Outcome:
        """How the screen ended for one level: it is kept if it is in a set that fresh runs confirm."""
        if self.verdict == Outcome.CANNOT_BE_JUDGED:
            return self.verdict
        if level in self.dropped:
            return Outcome.CRASHED
        return self.verdict if level in self.chosen else Outcome.DISCARD

    def sentence_of(self, level: Level, name: str) -> str:
        """State what came out for one level."""
        effect = next((each for each in self.effects.effects if each.level == level), None) if self.effects else None
        return screen_sentences.describe_level(
            self.terms, name, effect, self.verdict_of(level), crashed=level in self.dropped, chosen=level in self.chosen
        )


@dataclass
class _Course:
    """The runs of a design as they are gone through, and what became of the design.

    Attributes:
        probes: rows that were put in to find out whether a level crashes by itself.
        made_up: rows that were lost, and for which there is another one.
    """

    terms: ScreenTerms
    design: ScreenDesign
    past: Sequence[float]
    there: Mapping[tuple[Any, ...], ScreenRun]
    made: list[ScreenRun] = field(default_factory=list)
    dropped: list[Level] = field(default_factory=list)
    clashing: list[tuple[Level, Level]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    probes: dict[int, Level] = field(default_factory=dict)
    made_up: set[int] = field(default_factory=set)

    def take(self, requests: Sequence[Request]) -> Step | list[ScreenRun]:
        """The runs of these requests; a step where one of them is to be made."""
        missing = tuple(request for request in requests if request.key not in self.there)
        if missing:
            return Step(requests=missing, design=self.design, notes=tuple(self.notes))
        return [self.there[request.key] for request in requests]

    @property
    def lost(self) -> list[int]:
        """The rows that were made and have no value."""
        return [place for place, run in enumerate(self.made) if not run.run.has_value]

    def request_rows(self, until: int) -> list[Request]:
        """The next rows of the design, up to a number of rows."""
        return [
            Request(settings=self.design.settings(row), seed=self.terms.first_seed + row, part=DESIGN)
            for row in range(len(self.made), until)
        ]

    def estimate(self, level: float) -> ScreenEffects | None:
        """Estimate the effects by the rows that were made; None where no run has a value."""
        if len(self.lost) == len(self.made):
            return None
        values = [run.run.value if run.run.has_value else None for run in self.made]
        rows = replace(self.design, rows=self.design.rows[: len(self.made)])
        return estimate_effects(
            rows, values, higher=self.terms.higher, past=self.past, rule=self.terms.rule, level=level
        )

    def drop_what_crashes(self) -> None:
        """Let levels whose runs crash leave the rows that are still to be made, and make up for those that did."""
        crashed = [not run.run.has_value for run in self.made]
        # A pair is named only where it explains every crash, which neither of its levels does then.
        pairs = [pair for pair in blame_pairs(self.design, crashed) if pair not in self.clashing]
        blamed = [level for row, level in self.probes.items() if row < len(crashed) and crashed[row]]
        if not pairs and not self.clashing:
            blamed += blame_crashes(self.design, crashed)
        levels = [level for level in dict.fromkeys(blamed) if level not in self.dropped]
        if levels or pairs:
            self._drop(levels, pairs)
        elif crashed and 2 * sum(crashed) > len(crashed):
            self._probe(crashed)

    def _drop(self, levels: Collection[Level], pairs: Collection[tuple[Level, Level]]) -> None:
        for level in levels:
            self.notes.append(
                f"{name_level(level)} makes its runs crash, and leaves the design: its rows are made without it"
            )
        for first, second in pairs:
            self.notes.append(
                f"{name_level(first)} and {name_level(second)} crash together, and are in one run no more"
            )
        self.dropped += levels
        self.clashing += pairs
        again = [row for row in self.lost if row not in self.made_up and self._is_explained(row, levels, pairs)]
        again = [row for row in again if row not in self.probes]
        self.made_up.update(again)
        self.design = drop_levels(
            self.design,
            dropped=self.dropped,
            clashing=self.clashing,
            after=len(self.made),
            again=again,
            seed=self.terms.first_seed + len(self.design.rows),
        )

    def _is_explained(self, row: int, levels: Collection[Level], pairs: Collection[tuple[Level, Level]]) -> bool:
        run = set(self.design.settings(row).items())
        return any(level in run for level in levels) or any(first in run and second in run for first, second in pairs)

    def _probe(self, crashed: Sequence[bool]) -> None:
        """Where most runs crash and no level explains it alone, put in a run of each level that no other run clears."""
        cleared = {level for row, lost in enumerate(crashed) if not lost for level in self.design.settings(row).items()}
        suspects = [
            level
            for level in self.design.effects
            if level not in cleared and level not in self.dropped and level not in self.probes.values()
        ]
        if not suspects or 2 * len(suspects) > len(self.design.effects):
            return
        self.notes.append(
            f"most runs crash: {format_count(len(suspects), 'level')} that no finished run has "
            f"{'is' if len(suspects) == 1 else 'are'} run alone"
        )
        self.design = insert_single_levels(self.design, suspects, after=len(self.made))
        self.probes |= {len(self.made) + place: level for place, level in enumerate(suspects)}

    def replace_lost(self, rounds: int) -> bool:
        """Add a run for each that was lost by chance, so that the effects can be told apart as well as before."""
        missing = [row for row in self.lost if row not in self.made_up and row not in self.probes]
        missing = missing[: max(0, MOST_TIMES * self.terms.runs - len(self.design.rows))]
        if not missing or rounds >= MOST_ROUNDS:
            return False
        self.made_up.update(missing)
        self.notes.append(
            f"{format_count(len(missing), 'run')} without a value: {len(missing)} more "
            f"{'is' if len(missing) == 1 else 'are'} made"
        )
        self.design = augment_design(
            self.design,
            dropped=self.dropped,
            lost=self.lost,
            runs=len(missing),
            seed=self.terms.first_seed + len(self.design.rows),
        )
        return True


def advance(
    terms: ScreenTerms, design: ScreenDesign, past: Sequence[float], runs: Sequence[ScreenRun]
) -> Step | ScreenDecision:
    """Say what is to be run next, or what came out.

    Args:
        terms: settled before the first run.
        design: as it was made.
        past: the baseline's other runs, for sigma alone.
        runs: all that were made for this screen so far, in any order.
    """
    course = _Course(terms, design, past, {run.request.key: run for run in runs})
    level, stopped_at = terms.level, 0
    looks = [look for look in design.looks if look < len(design.rows)] if terms.halfway else []
    level /= 1 + len(looks)
    effects, rounds = None, 0
    while len(course.made) < len(course.design.rows):
        until = _next_stop(len(course.made), len(course.design.rows), looks, list(course.probes))
        taken = course.take(course.request_rows(until))
        if isinstance(taken, Step):
            return taken
        course.made += taken
        course.drop_what_crashes()
        if len(course.made) in looks and not course.lost:
            effects = course.estimate(level)
            if effects is not None and is_clear(effects):
                stopped_at = len(course.made)
                break
        if len(course.made) == len(course.design.rows) and course.replace_lost(rounds):
            rounds += 1
    if not stopped_at:
        effects = course.estimate(level)
    decision = ScreenDecision(
        terms=terms,
        design=course.design,
        verdict=Outcome.CANNOT_BE_JUDGED,
        runs=tuple(course.made),
        effects=effects,
        dropped=tuple(course.dropped),
        clashing=tuple(course.clashing),
        stopped_at=stopped_at,
        notes=tuple(course.notes),
    )
    if effects is None or not effects.df or all(effect.gain != effect.gain for effect in effects.effects):
        reason = f"{len(course.made) - len(course.lost)} of its {len(course.made)} runs have a value"
        return end_without_verdict(terms, course.design, course.made, f"{reason}, which tell no effect apart")
    chosen = tuple(effect.level for effect in effects.effects if effect.chosen)
    if not chosen:
        return _finish(replace(decision, verdict=Outcome.DISCARD))
    return _prove(course, replace(decision, chosen=chosen))


def _next_stop(made: int, rows: int, looks: Sequence[int], probes: Sequence[int]) -> int:
    """The number of rows after which something is looked at next: crashes, or the effects halfway."""
    if ahead := [row for row in probes if row >= made]:
        return max(ahead) + 1
    stop = FIRST_LOOK_AT_CRASHES
    while stop <= made:
        stop *= 2
    return min([stop, rows, *(look for look in looks if look > made)])


def is_clear(effects: ScreenEffects) -> bool:
    """Whether what was chosen is clear of the rest: no other level may still gain as much as the least of them."""
    least = min((effect.gain for effect in effects.effects if effect.chosen), default=float("-inf"))
    return all(effect.selected or effect.high < least for effect in effects.effects)


def _prove(course: _Course, decision: ScreenDecision) -> Step | ScreenDecision:
    """Run the set and the baseline with fresh seeds, and each level's set without it where that is asked for."""
    terms, settings = course.terms, {factor.name: factor.levels[0] for factor in course.design.factors}
    chosen, seeds = settings | dict(decision.chosen), _count_seeds(course)
    own = [
        Request(settings=arm, seed=next(seeds), part=FRESH)
        for _ in range(terms.fresh_runs)
        for arm in (settings, chosen)
    ]
    taken = course.take(own)
    if isinstance(taken, Step):
        return taken
    values = [
        [run.run.value for run in taken[arm::2] if run.run.has_value and run.run.value is not None] for arm in (0, 1)
    ]
    decision = replace(decision, runs=(*decision.runs, *taken))
    if len(values[0]) < 2:
        return withhold(decision, "fewer than two fresh runs of the baseline have a value")
    if len(values[1]) < 2:
        return _finish(replace(decision, verdict=Outcome.UNDECIDED))
    difference = compare_means(*values, higher=terms.higher)
    verdict = Outcome.KEEP if difference.p <= terms.alpha and difference.gain > 0 else Outcome.DISCARD
    decision = replace(decision, verdict=verdict, confirmation=difference)
    if not terms.leave_one_out or len(decision.chosen) < 2:
        return _finish(decision)
    without = [
        Request(settings=chosen | {name: settings[name]}, seed=next(seeds), part=LEFT_OUT)
        for _ in range(terms.fresh_runs)
        for name, _ in decision.chosen
    ]
    taken = course.take(without)
    if isinstance(taken, Step):
        return taken
    left_out = []
    for place, level in enumerate(decision.chosen):
        own_runs = [run.run.value for run in taken[place :: len(decision.chosen)] if run.run.has_value]
        finite = [value for value in own_runs if value is not None]
        if len(finite) > 1:
            left_out.append(LeftOut(level=level, difference=compare_means(finite, values[1], higher=terms.higher)))
    return _finish(replace(decision, runs=(*decision.runs, *taken), left_out=tuple(left_out)))


def _count_seeds(course: _Course) -> Iterator[int]:
    seed = course.terms.first_seed + len(course.design.rows)
    while True:
        yield seed
        seed += 1


def _finish(decision: ScreenDecision) -> ScreenDecision:
    assert decision.effects is not None  # as `advance` has made sure
    ideas = all(factor.levels[1:] == (WITH,) for factor in decision.design.factors)
    sentence = screen_sentences.write_sentence(
        decision.terms,
        decision.effects,
        decision.chosen,
        decision.confirmation,
        decision.verdict,
        rows=sum(run.request.part == DESIGN for run in decision.runs),
        noun="idea" if ideas else "level",
    )
    return replace(decision, sentence=sentence)


def withhold(decision: ScreenDecision, reason: str) -> ScreenDecision:
    """Withhold a verdict for a reason; what was estimated stays on the page."""
    named = name_some([name_level(level) for level in decision.chosen]) if decision.chosen else "the screen"
    sentence = f"Whether {named} gains cannot be judged: {reason.rstrip('.')}."
    return replace(decision, verdict=Outcome.CANNOT_BE_JUDGED, sentence=sentence)


def end_without_verdict(
    terms: ScreenTerms, design: ScreenDesign, runs: Sequence[ScreenRun], reason: str
) -> ScreenDecision:
    """End a screen of which nothing can be judged."""
    decision = ScreenDecision(terms=terms, design=design, verdict=Outcome.CANNOT_BE_JUDGED, runs=tuple(runs))
    return withhold(decision, reason)
