"""Makes the design of a screen: which levels each run has, so that every change is judged by all runs.

A factor is what can be changed; its first level is the baseline's. An idea is a factor of two levels. Two levels
without forbidden pairs: a standard design (`plumbline.stats.two_level_designs`); all else is D-optimal
(`plumbline.stats.d_optimal_design`). Any number of runs will do that is above the number of effects.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from plumbline.core.errors import PlumblineError
from plumbline.core.formats import format_count, format_percent
from plumbline.stats.d_optimal_design import FactorSpace, d_efficiency, make_d_optimal
from plumbline.stats.factor_effects import invert_model
from plumbline.stats.interactions import make_interactions
from plumbline.stats.two_level_designs import FOLDED, cut_larger_design, list_standard_designs
from plumbline.verdict.formatting import name_some, quote

if TYPE_CHECKING:
    from plumbline.stats.d_optimal_design import PlacedLevel

#: The levels of an idea.
WITHOUT, WITH = "without", "with"
#: A design that is clear of interactions is taken for one that estimates a little better.
CLEAR_IS_WORTH = 0.95
#: A design of this efficiency is not searched any further.
ORTHOGONAL = 0.985
#: Orders of the rows that are tried so that the first half is a design by itself.
ORDERS = 100

#: An interaction is named with the effect on which so much of it falls.
STRONG_LEAN = 0.3

#: A factor's name and one of its levels.
Level = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Factor:
    """What can be changed.

    Attributes:
        name: as a page has it.
        levels: two or more; the first is the baseline's.
    """

    name: str
    levels: tuple[str, ...] = (WITHOUT, WITH)


@dataclass(frozen=True, kw_only=True, slots=True)
class ScreenDesign:
    """The runs of a screen.

    Attributes:
        forbidden: pairs of levels that are never in one run.
        rows: a run each, in the order in which they are made: the level of every factor, in the order of `factors`.
        construction: how the rows were chosen, in words.
        looks: numbers of rows after which effects are looked at; the last is all.
    """

    factors: tuple[Factor, ...]
    forbidden: tuple[tuple[Level, Level], ...]
    rows: tuple[tuple[str, ...], ...]
    construction: str
    looks: tuple[int, ...]

    @property
    def effects(self) -> tuple[Level, ...]:
        """What is estimated: every level but each factor's first, in the order of the model's columns."""
        return tuple((factor.name, level) for factor in self.factors for level in factor.levels[1:])

    @property
    def are_ideas(self) -> bool:
        """Whether every factor is an idea, with or without."""
        return all(factor.levels[1:] == (WITH,) for factor in self.factors)

    @property
    def counted(self) -> str:
        """How many are judged, as text: "13 ideas", or levels of factors."""
        return format_count(len(self.effects), "idea" if self.are_ideas else "level")

    @property
    def space(self) -> FactorSpace:
        """The factors by their numbers of levels, and the forbidden pairs by places."""
        return _make_space(self.factors, self.forbidden)

    @property
    def levels_NF(self) -> np.ndarray:
        """The rows, (N, F), by the places of their levels."""
        places = [{level: place for place, level in enumerate(factor.levels)} for factor in self.factors]
        rows = [[place[level] for place, level in zip(places, row)] for row in self.rows]
        return np.array(rows, dtype=int).reshape(-1, len(self.factors))

    def settings(self, row: int) -> dict[str, str]:
        """The level of every factor in a row."""
        return {factor.name: level for factor, level in zip(self.factors, self.rows[row])}


def count_parameters(factors: Sequence[Factor]) -> int:
    """Count what a design estimates: the baseline's mean, and each level but a factor's first."""
    return 1 + sum(len(factor.levels) - 1 for factor in factors)


def make_design(
    factors: Sequence[Factor], *, forbidden: Sequence[tuple[Level, Level]] = (), runs: int, seed: int
) -> ScreenDesign:
    """Make a design of any number of runs that is not below `count_parameters`; the seed draws its order and columns.

    Raises:
        PlumblineError: factors of one name, fewer runs than effects, a forbidden pair with the
            baseline's level, or effects that the search leaves tied.
    """
    space, rng = _make_space(factors, forbidden), np.random.default_rng(seed)
    if runs < space.parameters:
        raise PlumblineError(
            f"{runs} runs cannot estimate {space.parameters - 1} effects and the baseline's mean; ask for "
            f"{space.parameters} runs or more, or screen fewer"
        )
    two_levels = set(space.sizes) == {2}
    if two_levels and not space.forbidden:
        levels_NF, construction = _choose_standard(space, runs, rng)
    else:
        starts = [(cut_larger_design(len(factors), runs, rng) + 1) // 2] if two_levels else []
        levels_NF, construction = make_d_optimal(space, runs, rng, starts=starts), "D-optimal"
    if tied := _find_tied(space, levels_NF):
        names = name_some([_name_level(factors, level) for level in tied])
        raise PlumblineError(f"no design of {runs} runs was met that tells the effects of {names} apart; ask for more")
    efficiency = d_efficiency(space, levels_NF)
    if efficiency < 1 - 1e-9:
        construction += f"; it estimates as an orthogonal design of {format_percent(efficiency)} of its runs would"
    levels_NF, looks = _order_rows(space, levels_NF, rng, folded=construction.endswith(FOLDED))
    return ScreenDesign(
        factors=tuple(factors),
        forbidden=tuple(forbidden),
        rows=_name_rows(factors, levels_NF),
        construction=construction,
        looks=looks,
    )


def augment_design(
    design: ScreenDesign,
    *,
    dropped: Collection[Level] = (),
    lost_rows: Collection[int] = (),
    runs: int,
    seed: int,
) -> ScreenDesign:
    """Add so many rows that, with those that have values, estimate best; rows that exist stay as they are.

    Args:
        dropped: levels that no new row has.
        lost_rows: those without a value.

    Raises:
        PlumblineError: a baseline's level was dropped.
    """
    space, rng = design.space, np.random.default_rng(seed)
    if not runs:
        return design
    places = {factor.name: place for place, factor in enumerate(design.factors)}
    choices = {place: set(range(size)) for place, size in enumerate(space.sizes)}
    for name, level in dropped:
        levels = design.factors[places[name]].levels
        if level == levels[0]:
            raise PlumblineError(f"the baseline's level {quote(level)} of {quote(name)} cannot be dropped")
        choices[places[name]].discard(levels.index(level))
    levels_NF = design.levels_NF
    there_NF = np.delete(levels_NF, sorted(lost_rows), axis=0)
    starts = [levels_NF[sorted(lost_rows)]] if len(lost_rows) == runs and not dropped else []
    added_NF = make_d_optimal(space, runs, rng, starts=starts, fixed_NF=there_NF, most=choices)
    rows = (*design.rows, *_name_rows(design.factors, rng.permutation(added_NF)))
    looks = tuple(look for look in design.looks if look < len(design.rows))
    return replace(design, rows=rows, looks=(*looks, len(rows)))


def drop_levels(
    design: ScreenDesign,
    *,
    dropped: Collection[Level],
    clashing: Collection[tuple[Level, Level]] = (),
    after: int,
    again: Collection[int],
) -> ScreenDesign:
    """Let levels leave the rows that are still to be made, and repeat rows that were lost without them.

    A row keeps its other levels, so that what was orthogonal stays so; of two that clash it keeps the one or the other
    in turn.

    Args:
        dropped: levels that make their runs crash.
        clashing: pairs that do so together; forbidden from now on.
        after: the number of rows that were made.
        again: rows that were made and lost, which are added again.
    """
    changed = replace(
        design, forbidden=(*design.forbidden, *(pair for pair in clashing if pair not in design.forbidden))
    )
    places = {(f.name, level): (place, p) for place, f in enumerate(design.factors) for p, level in enumerate(f.levels)}
    levels_NF = design.levels_NF
    open_NF = levels_NF[[*range(after, len(levels_NF)), *sorted(again)]]
    for place, number in map(places.__getitem__, dropped):
        open_NF[open_NF[:, place] == number, place] = 0
    for pair in clashing:
        clashing_rows = np.flatnonzero(
            [all(row[f] == level for f, level in map(places.__getitem__, pair)) for row in open_NF]
        )
        for number, row in enumerate(clashing_rows):
            open_NF[row, places[pair[number % 2]][0]] = 0
    rows = (*design.rows[:after], *_name_rows(design.factors, open_NF))
    looks = tuple(look for look in design.looks if look < len(design.rows))
    return replace(changed, rows=rows, looks=(*looks, len(rows)))


def insert_single_levels(design: ScreenDesign, levels: Sequence[Level], *, after: int) -> ScreenDesign:
    """Put in rows that have one of these levels each and are the baseline otherwise; they are made next."""
    rows = [
        tuple(level if factor.name == name else factor.levels[0] for factor in design.factors) for name, level in levels
    ]
    every = (*design.rows[:after], *rows, *design.rows[after:])
    looks = tuple(look for look in design.looks if look <= after)
    return replace(design, rows=every, looks=(*looks, len(every)))


def predict_errors(design: ScreenDesign) -> Mapping[Level, float]:
    """Compute the standard error of each effect, in sigma of a run; NaN of one that the rows do not tell apart."""
    inverse_PP, tied_P, _ = invert_model(design.space.model_matrix(design.levels_NF))
    errors_P = np.where(tied_P, np.nan, np.sqrt(np.diag(inverse_PP)))
    return dict(zip(design.effects, errors_P[1:].tolist()))


def _make_space(factors: Sequence[Factor], forbidden: Sequence[tuple[Level, Level]]) -> FactorSpace:
    """Place names.

    Raises:
        PlumblineError: a name that is there twice, a factor of one level, or a pair of what is not there or is the
            baseline's.
    """
    names = [factor.name for factor in factors]
    if not factors or len(set(names)) < len(names):
        raise PlumblineError(f"a screen needs factors of different names, not {name_some(list(map(quote, names)))}")
    for factor in factors:
        if len(set(factor.levels)) < max(2, len(factor.levels)):
            raise PlumblineError(f"{quote(factor.name)} needs two different levels or more, not {factor.levels}")
    places = {(factor.name, level): (f, p) for f, factor in enumerate(factors) for p, level in enumerate(factor.levels)}
    pairs: list[tuple[PlacedLevel, PlacedLevel]] = []
    for pair in forbidden:
        for level in pair:
            if level not in places:
                raise PlumblineError(f"the forbidden pair {pair} names {level}, which is not a level of this screen")
        if pair[0][0] == pair[1][0]:
            raise PlumblineError(f"the forbidden pair {pair} is of one factor, whose levels are never in one run")
        for name, value in pair:
            if not places[name, value][1]:
                raise PlumblineError(
                    f"the forbidden pair {pair} has the baseline's level {quote(value)} of {quote(name)}, beside which "
                    "every level must run; make one factor of the two, whose levels are what may be run of both"
                )
        pairs.append((places[pair[0]], places[pair[1]]))
    return FactorSpace(tuple(len(factor.levels) for factor in factors), tuple(pairs))


def _name_level(factors: Sequence[Factor], level: PlacedLevel) -> str:
    factor = factors[level[0]]
    return name_level((factor.name, factor.levels[level[1]]))


def name_level(level: Level) -> str:
    """Write a level as a page has it: an idea by its name alone."""
    name, value = level
    return quote(name) if value == WITH else f"{quote(name)} {quote(value)}"


def _choose_standard(space: FactorSpace, runs: int, rng: np.random.Generator) -> tuple[np.ndarray, str]:
    """The first standard design that is clear of interactions and estimates well, else the one that estimates best.

    A standard design of fewer runs is filled up with D-optimal ones.
    """
    factors, top = len(space.sizes), (0.0, np.empty((0, 0), dtype=int), "")
    for standard in list_standard_designs(factors, runs, rng):
        levels_NF, construction = (standard.levels_NF + 1) // 2, standard.construction
        if gap := runs - len(levels_NF):
            levels_NF = np.concatenate([levels_NF, make_d_optimal(space, gap, rng, fixed_NF=levels_NF)])
            construction += f", and {gap} D-optimal {'run' if gap == 1 else 'runs'}"
        efficiency = d_efficiency(space, levels_NF)
        if standard.clear and efficiency >= CLEAR_IS_WORTH:
            return levels_NF, construction
        top = max(top, (efficiency, levels_NF, construction), key=lambda choice: choice[0])
    if top[0] < ORTHOGONAL:
        levels_NF = make_d_optimal(space, runs, rng, starts=[(cut_larger_design(factors, runs, rng) + 1) // 2])
        top = max(top, (d_efficiency(space, levels_NF), levels_NF, "D-optimal"), key=lambda choice: choice[0])
    return top[1], top[2]


def _find_tied(space: FactorSpace, levels_NF: np.ndarray) -> list[PlacedLevel]:
    """Levels whose effects these runs do not tell apart."""
    tied_P = invert_model(space.model_matrix(levels_NF))[1]
    return [level for level, tied in zip(space.columns, tied_P[1:]) if tied]


def _order_rows(
    space: FactorSpace, levels_NF: np.ndarray, rng: np.random.Generator, *, folded: bool
) -> tuple[np.ndarray, tuple[int, ...]]:
    """Draw the order of the rows; where the first half can be a design by itself, it is, and is looked at."""
    runs = len(levels_NF)
    half = runs // 2
    if folded and half > space.parameters:
        order = np.concatenate([rng.permutation(half), half + rng.permutation(half)])
    else:
        tries = ORDERS if half > space.parameters else 1
        orders = [rng.permutation(runs) for _ in range(tries)]
        order = max(orders, key=lambda order: d_efficiency(space, levels_NF[order[:half]])) if tries > 1 else orders[0]
    early = (half,) if half > space.parameters and d_efficiency(space, levels_NF[order[:half]]) > 0.5 else ()
    return levels_NF[order], (*early, runs)


def _name_rows(factors: Sequence[Factor], levels_NF: np.ndarray) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(factor.levels[place] for factor, place in zip(factors, row)) for row in levels_NF.tolist())


def describe_aliases(design: ScreenDesign) -> list[str]:
    """State which two-factor interactions lean on which effects: what two gain together beyond their sum."""
    columns = make_interactions(design.space, design.levels_NF)
    if not len(columns.pairs):
        return []
    names = [name_level(level) for level in design.effects]
    labels = [f"{names[first]} × {names[second]}" for first, second in columns.pairs]
    # Half of an interaction belongs to each of its own two effects; only those of others mislead.
    leans_QI = np.abs(columns.alias_PI[1:])
    leans_QI[columns.pairs.T, np.arange(len(labels))] = 0.0
    peak, groups = float(leans_QI.max()), len(columns.group_equal())
    note = f"Of {len(labels):,} interactions of two, {groups:,} can be tested next to the effects, one at a time."
    if peak < 1e-9:
        return ["Every effect is clear of what any two others gain together beyond their sum.", note]
    lines = [
        f"What two gain together beyond their sum falls on the effect of a third by {peak:.2f} of it at most (.50 is "
        "usual where two levels each cannot be told apart).",
        note,
    ]
    for place, name in enumerate(names):
        pairs = np.flatnonzero(leans_QI[place] >= STRONG_LEAN)
        if len(pairs):
            pairs = pairs[np.argsort(-leans_QI[place, pairs], kind="stable")]
            lines.append(f"{name}: {name_some([labels[pair] for pair in pairs], 3)}")
    return lines
