"""Goes through the runs of a design, and changes what is left of it where levels crash and runs are lost."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from plumbline.core.formats import format_count
from plumbline.verdict.screen.screen_design import (
    Level,
    ScreenDesign,
    augment_design,
    drop_levels,
    insert_single_levels,
    name_level,
)
from plumbline.verdict.screen.screen_effects import ScreenEffects, blame_crashes, estimate_effects
from plumbline.verdict.screen.screen_runs import DESIGN, Request, ScreenRun, Step
from plumbline.verdict.screen.screen_terms import ScreenTerms

#: How often runs that were lost by chance are made up for by new ones, and rows at most, in those of the design.
MOST_ROUNDS, MOST_TIMES = 3, 2


@dataclass
class DesignRuns:
    """The runs of a design as they are gone through, and what became of the design.

    Attributes:
        runs_by_key: the runs that exist, by `Request.key`.
        made: those of the design's rows that were gone through, in the order of the rows.
        probes: rows that were put in to find out whether a level crashes by itself.
        replaced_rows: rows without a value for which another one was added.
    """

    terms: ScreenTerms
    design: ScreenDesign
    past: Sequence[float]
    runs_by_key: Mapping[tuple[Any, ...], ScreenRun]
    made: list[ScreenRun] = field(default_factory=list)
    dropped: list[Level] = field(default_factory=list)
    clashing: list[tuple[Level, Level]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    probes: dict[int, Level] = field(default_factory=dict)
    replaced_rows: set[int] = field(default_factory=set)

    def take(self, requests: Sequence[Request]) -> Step | list[ScreenRun]:
        """The runs of these requests; a step where one of them is to be made."""
        missing = tuple(request for request in requests if request.key not in self.runs_by_key)
        if missing:
            return Step(requests=missing, design=self.design, notes=tuple(self.notes))
        return [self.runs_by_key[request.key] for request in requests]

    @property
    def lost_rows(self) -> list[int]:
        """The rows that were made and have no value."""
        return [place for place, run in enumerate(self.made) if not run.run.has_value]

    def explain_too_few_values(self) -> str:
        """State why nothing can be judged where too few runs have a value, and what to do."""
        lost_runs = [self.made[row].run for row in self.lost_rows]
        reason = (
            f"{len(self.made) - len(lost_runs)} of its {len(self.made)} runs have a value, which tell no effect apart"
        )
        if len(self.dropped) == len(self.design.effects):
            reason = "each of them makes its runs crash"
        if not lost_runs:
            return reason
        last = ": ".join(filter(None, (lost_runs[-1].outcome, lost_runs[-1].why)))
        return (
            f"{reason} (the last one: {last}); put right or take out what crashes, or, if none of them is to blame, "
            "begin anew with --first-seed"
        )

    def request_rows(self, until: int) -> list[Request]:
        """The next rows of the design, up to a number of rows."""
        return [
            Request(settings=self.design.settings(row), seed=self.terms.first_seed + row, part=DESIGN)
            for row in range(len(self.made), until)
        ]

    def estimate(self, level: float) -> ScreenEffects | None:
        """Estimate the effects by the rows that were made; None where no run has a value."""
        if len(self.lost_rows) == len(self.made):
            return None
        values = [run.run.value if run.run.has_value else None for run in self.made]
        rows = replace(self.design, rows=self.design.rows[: len(self.made)])
        return estimate_effects(
            rows,
            values,
            higher=self.terms.higher,
            past=self.past,
            rule=self.terms.rule,
            level=level,
            dropped=self.dropped,
        )

    def drop_what_crashes(self) -> None:
        """Let levels whose runs crash leave the rows that are still to be made, and make up for those that did."""
        crashed = [not run.run.has_value for run in self.made]
        levels = [level for row, level in self.probes.items() if row < len(crashed) and crashed[row]]
        levels = [level for level in levels if level not in self.dropped]
        causes = [*((level,) for level in (*self.dropped, *levels)), *self.clashing]
        blamed = blame_crashes(self.design, crashed, causes)
        levels += [each[0] for each in blamed if len(each) == 1]
        pairs = [(each[0], each[1]) for each in blamed if len(each) == 2]
        if levels or pairs:
            self._drop(levels, pairs)
        elif 2 * sum(crashed) > len(crashed):
            self._probe(crashed)

    def _drop(self, levels: Collection[Level], pairs: Collection[tuple[Level, Level]]) -> None:
        for level in levels:
            self.notes.append(
                f"{self._describe_crashes(level)}; it leaves the design, and its rows are made without it"
            )
        for first, second in pairs:
            self.notes.append(
                f"{name_level(first)} and {name_level(second)} crash together, and are in one run no more"
            )
        self.dropped += levels
        self.clashing += pairs
        repeats = [
            row for row in self.lost_rows if row not in self.replaced_rows and self._is_explained(row, levels, pairs)
        ]
        repeats = [row for row in repeats if row not in self.probes]
        self.replaced_rows.update(repeats)
        self.design = drop_levels(
            self.design,
            dropped=self.dropped,
            clashing=self.clashing,
            after=len(self.made),
            again=repeats,
        )

    def _describe_crashes(self, level: Level) -> str:
        """State how many of a level's runs have no value, and the level beside which all have one, if there is one."""
        runs = [run for run in self.made if run.request.settings[level[0]] == level[1]]
        crashes = sum(not run.run.has_value for run in runs)
        partners = [
            partner
            for partner in self.design.effects
            if partner != level
            and all((run.request.settings[partner[0]] == partner[1]) == run.run.has_value for run in runs)
        ]
        if crashes < len(runs) and len(partners) == 1:
            name = name_level(partners[0])
            return (
                f"{name_level(level)} has no value in all {crashes} runs without {name} (if it needs that, make one of "
                "the two)"
            )
        outcomes = " or ".join(sorted({run.run.outcome for run in runs if not run.run.has_value}))
        return f"{name_level(level)}: {crashes} of its {format_count(len(runs), 'run')} {outcomes}"

    def _is_explained(self, row: int, levels: Collection[Level], pairs: Collection[tuple[Level, Level]]) -> bool:
        run = set(self.design.settings(row).items())
        return any(level in run for level in levels) or any(first in run and second in run for first, second in pairs)

    def _probe(self, crashed: Sequence[bool]) -> None:
        """Where most runs crash and no level explains it alone, put in a run of each level that no other run clears; of
        more than half of them only where all rows are made.
        """
        cleared = {
            level
            for row, has_crashed in enumerate(crashed)
            if not has_crashed
            for level in self.design.settings(row).items()
        }
        suspects = [
            level
            for level in self.design.effects
            if level not in cleared and level not in self.dropped and level not in self.probes.values()
        ]
        is_early = len(self.made) < len(self.design.rows)
        if not suspects or (is_early and 2 * len(suspects) > len(self.design.effects)):
            return
        self.notes.append(
            f"most runs crash: {format_count(len(suspects), 'level')} that no finished run has "
            f"{'is' if len(suspects) == 1 else 'are'} run alone"
        )
        self.design = insert_single_levels(self.design, suspects, after=len(self.made))
        self.probes |= {len(self.made) + place: level for place, level in enumerate(suspects)}

    def replace_lost(self, rounds: int) -> bool:
        """Add a run for each that was lost by chance, so that the effects can be told apart as well as before; where
        most were lost, that is no chance.
        """
        rows = [row for row in self.lost_rows if row not in self.replaced_rows and row not in self.probes]
        if 2 * len(rows) > len(self.made):
            return False
        rows = rows[: max(0, MOST_TIMES * self.terms.runs - len(self.design.rows))]
        if not rows or rounds >= MOST_ROUNDS:
            return False
        self.replaced_rows.update(rows)
        self.notes.append(
            f"{format_count(len(rows), 'run')} without a value: {len(rows)} more "
            f"{'is' if len(rows) == 1 else 'are'} made"
        )
        self.design = augment_design(
            self.design,
            dropped=self.dropped,
            lost_rows=self.lost_rows,
            runs=len(rows),
            seed=self.terms.first_seed + len(self.design.rows),
        )
        return True
