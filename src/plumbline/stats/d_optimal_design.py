"""Makes D-optimal designs of factors with any numbers of levels, forbidden pairs of levels and any number of runs.

Coordinate exchange (Meyer and Nachtsheim, Technometrics 1995): the levels of one run after another are changed, a
factor at a time, to what raises the determinant of the information most, until no change does. Factors that share a
forbidden pair are changed together too, since the way from one to the other may lead through what is forbidden. A
small multiple of the identity keeps the determinant above 0 while too few runs tell the factors apart (DuMouchel and
Jones 1994).

Shapes: N runs, F factors, P parameters (the baseline's mean, and each level but a factor's first), C candidate runs.
Levels are counted from 0, the baseline's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from plumbline.core.errors import PlumblineError

#: A factor's place, and one of its levels.
PlacedLevel = tuple[int, int]
#: What is added to the information, in runs; how often all runs are gone through at most.
RIDGE, PASSES = 1e-5, 40
#: Steps of the search for one run without a forbidden pair, after which there is taken to be none.
STEPS = 20_000


@dataclass(frozen=True)
class FactorSpace:
    """The factors of a design: how many levels each has, and which pairs of levels are never in one run.

    Attributes:
        sizes: levels of each factor, two or more.
        forbidden: pairs of levels of two factors.
    """

    sizes: tuple[int, ...]
    forbidden: tuple[tuple[PlacedLevel, PlacedLevel], ...] = ()
    _column_factors: np.ndarray = field(init=False, repr=False, compare=False)
    _column_levels: np.ndarray = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Require levels that exist.

        Raises:
            PlumblineError: a factor of one level, or a pair of what no factor has.
        """
        if not self.sizes or min(self.sizes) < 2:
            raise PlumblineError(f"a design needs factors of two levels or more, not {self.sizes}")
        for pair in self.forbidden:
            (first, first_level), (second, second_level) = pair
            if first == second or not all(
                0 <= factor < len(self.sizes) and 0 <= level < self.sizes[factor] for factor, level in pair
            ):
                raise PlumblineError(
                    f"the forbidden pair {(first, first_level), (second, second_level)} is not of two factors"
                )
        columns = [(factor, level) for factor, size in enumerate(self.sizes) for level in range(1, size)]
        object.__setattr__(self, "_column_factors", np.array([factor for factor, _ in columns]))
        object.__setattr__(self, "_column_levels", np.array([level for _, level in columns]))

    @property
    def parameters(self) -> int:
        """How many numbers a design estimates."""
        return 1 + len(self._column_factors)

    @property
    def columns(self) -> list[PlacedLevel]:
        """The level that each column of the model matrix but its first stands for."""
        return list(zip(self._column_factors.tolist(), self._column_levels.tolist()))

    def model_matrix(self, levels_NF: np.ndarray) -> np.ndarray:
        """Write runs as (N, P): a column of ones, and for each level but a factor's first whether a run has it."""
        levels_NF = np.asarray(levels_NF, dtype=int).reshape(-1, len(self.sizes))
        has_NQ = levels_NF[:, self._column_factors] == self._column_levels
        return np.concatenate([np.ones((len(levels_NF), 1)), has_NQ], axis=1)

    def allows(self, levels_NF: np.ndarray) -> np.ndarray:
        """Return for each of N runs whether it has no forbidden pair."""
        allowed_N = np.ones(len(levels_NF), dtype=bool)
        for (first, first_level), (second, second_level) in self.forbidden:
            allowed_N &= (levels_NF[:, first] != first_level) | (levels_NF[:, second] != second_level)
        return allowed_N

    def draw_row(
        self, rng: np.random.Generator, fixed: Sequence[PlacedLevel] = (), most: dict[int, set[int]] | None = None
    ) -> np.ndarray | None:
        """Draw a run without a forbidden pair that has these levels; None if there is none.

        `most`: the only levels that some factors may have.
        """
        chosen = dict(fixed)
        if any(chosen[factor] != level for factor, level in fixed) or self._clashes(chosen):
            return None
        order = [factor for factor in rng.permutation(len(self.sizes)).tolist() if factor not in chosen]
        # Factors in forbidden pairs first, so that a dead end shows early.
        tied = {factor for pair in self.forbidden for factor, _ in pair}
        order.sort(key=lambda factor: factor not in tied)
        choices: list[list[int]] = []
        for _ in range(STEPS):
            place = len(choices)
            if place == len(order):
                return np.array([chosen[factor] for factor in range(len(self.sizes))])
            levels = rng.permutation(self.sizes[order[place]]).tolist()
            choices.append([level for level in levels if most is None or level in most.get(order[place], {level})])
            while choices:
                factor = order[len(choices) - 1]
                chosen.pop(factor, None)
                while choices[-1] and factor not in chosen:
                    chosen[factor] = choices[-1].pop()
                    if self._clashes(chosen):
                        del chosen[factor]
                if factor in chosen:
                    break
                choices.pop()
            if not choices:
                return None
        return None

    def _clashes(self, chosen: dict[int, int]) -> bool:
        return any(
            chosen.get(first) == first_level and chosen.get(second) == second_level
            for (first, first_level), (second, second_level) in self.forbidden
        )

    def list_moves(self) -> np.ndarray:
        """List the changes of a run as (C, F): -1 for what stays; one factor, or two that share a forbidden pair."""
        moves = [{factor: level} for factor, size in enumerate(self.sizes) for level in range(size)]
        tied = dict.fromkeys(tuple(sorted((first, second))) for (first, _), (second, _) in self.forbidden)
        for first, second in tied:
            levels = product(range(self.sizes[first]), range(self.sizes[second]))
            moves += [{first: first_level, second: second_level} for first_level, second_level in levels]
        moves_CF = np.full((len(moves), len(self.sizes)), -1)
        for number, move in enumerate(moves):
            for factor, level in move.items():
                moves_CF[number, factor] = level
        return moves_CF


def information_bound(sizes: Sequence[int], runs: int) -> float:
    """Log determinant that no design of these factors exceeds: every factor balanced, and all orthogonal.

    By the inequalities of Hadamard and Fischer; with two levels it is N log N + .. of a Hadamard matrix.
    """
    return math.log(runs) + sum(size * math.log(runs / size) - math.log(runs) for size in sizes)


def d_efficiency(space: FactorSpace, levels_NF: np.ndarray) -> float:
    """The share of an orthogonal balanced design's information for each parameter that a design has: 1 at most.

    (det / bound)^(1/P): a design of efficiency e estimates about as well as an orthogonal one of e N runs. 0 if some
    effects cannot be told apart.
    """
    x_NP = space.model_matrix(levels_NF)
    sign, log_det = np.linalg.slogdet(x_NP.T @ x_NP)
    if sign <= 0 or np.linalg.matrix_rank(x_NP) < space.parameters:
        return 0.0
    return math.exp((log_det - information_bound(space.sizes, len(x_NP))) / space.parameters)


def optimize_rows(
    space: FactorSpace,
    free_NF: np.ndarray,
    *,
    fixed_NF: np.ndarray | None = None,
    most: dict[int, set[int]] | None = None,
) -> np.ndarray:
    """Change runs, none of which has a forbidden pair, until no single exchange raises the determinant.

    Args:
        free_NF: the runs that are changed.
        fixed_NF: runs that count and stay as they are.
        most: the only levels that some factors may have in the runs that are changed.
    """
    levels_NF, exchanges = np.array(free_NF, dtype=int), _Exchanges(space, most or {})
    rows = levels_NF if fixed_NF is None or not len(fixed_NF) else np.concatenate([fixed_NF, levels_NF])
    x_NP = space.model_matrix(rows)
    information_PP = x_NP.T @ x_NP + RIDGE * np.eye(space.parameters)
    for _ in range(PASSES):
        # The inverse of a pass is made anew, so that rounding does not add up over the passes.
        inverse_PP, changed = np.linalg.inv(information_PP), False
        for place, row_F in enumerate(levels_NF):
            new_F, ratio = exchanges.choose(row_F, inverse_PP)
            if ratio <= 1 + 1e-7:
                continue
            changed = True
            old_P, new_P = space.model_matrix(np.stack([row_F, new_F]))
            information_PP += np.outer(new_P, new_P) - np.outer(old_P, old_P)
            inverse_PP = _exchange_in_inverse(inverse_PP, old_P, new_P)
            levels_NF[place] = new_F
        if not changed:
            break
    return levels_NF


class _Exchanges:
    """Every change of a run, by the columns of the model that it takes away and adds; a change has K factors."""

    def __init__(self, space: FactorSpace, most: dict[int, set[int]]) -> None:
        moves_CF = space.list_moves()
        for factor, levels in most.items():
            moves_CF = moves_CF[(moves_CF[:, factor] < 0) | np.isin(moves_CF[:, factor], list(levels))]
        self.space, self.moves_CF = space, moves_CF
        # The column of each level, (F, levels); a factor's first level has none: the place after the last column.
        self.column_FL = np.full((len(space.sizes), max(space.sizes)), space.parameters)
        for column, (factor, level) in enumerate(space.columns, start=1):
            self.column_FL[factor, level] = column
        most_factors = int((moves_CF >= 0).sum(axis=1).max())
        self.factors_CK = np.full((len(moves_CF), most_factors), -1)
        self.added_CK = np.full((len(moves_CF), most_factors), space.parameters)
        for number, move_F in enumerate(moves_CF):
            changed = np.flatnonzero(move_F >= 0)
            self.factors_CK[number, : len(changed)] = changed
            self.added_CK[number, : len(changed)] = self.column_FL[changed, move_F[changed]]
        self.sign_J = np.repeat([1.0, -1.0], most_factors)

    def choose(self, row_F: np.ndarray, inverse_PP: np.ndarray) -> tuple[np.ndarray, float]:
        """The change that raises the determinant most, as the new run, and by which factor."""
        columns_F = self.column_FL[np.arange(len(row_F)), row_F]
        taken_CK = np.where(self.factors_CK < 0, self.space.parameters, columns_F[self.factors_CK])
        columns_CJ = np.concatenate([self.added_CK, taken_CK], axis=1)
        old_P = self.space.model_matrix(row_F)[0]
        times_Q = np.append(inverse_PP @ old_P, 0.0)
        padded_QQ = np.zeros((len(times_Q), len(times_Q)))
        padded_QQ[:-1, :-1] = inverse_PP
        first_C = times_Q[columns_CJ] @ self.sign_J
        quadratic_CJJ = padded_QQ[columns_CJ[:, :, None], columns_CJ[:, None, :]]
        second_C = np.einsum("cij,i,j->c", quadratic_CJJ, self.sign_J, self.sign_J)
        leverage = float(old_P @ times_Q[:-1])
        ratio_C = (1 + leverage + 2 * first_C + second_C) * (1 - leverage) + (leverage + first_C) ** 2
        if self.space.forbidden:
            candidates_CF = np.where(self.moves_CF < 0, row_F, self.moves_CF)
            ratio_C[~self.space.allows(candidates_CF)] = 0.0
        best = int(ratio_C.argmax())
        return np.where(self.moves_CF[best] < 0, row_F, self.moves_CF[best]), float(ratio_C[best])


def _exchange_in_inverse(inverse_PP: np.ndarray, old_P: np.ndarray, new_P: np.ndarray) -> np.ndarray:
    """The inverse of the information after a run was exchanged (Woodbury)."""
    both_P2 = np.stack([new_P, old_P], axis=1)
    times_P2 = inverse_PP @ both_P2
    middle_22 = np.diag([1.0, -1.0]) + both_P2.T @ times_P2
    return np.asarray(inverse_PP - times_P2 @ np.linalg.solve(middle_22, times_P2.T))


def make_d_optimal(
    space: FactorSpace,
    runs: int,
    rng: np.random.Generator,
    *,
    starts: Sequence[np.ndarray] = (),
    fixed_NF: np.ndarray | None = None,
    most: dict[int, set[int]] | None = None,
) -> np.ndarray:
    """Make the best of several designs (N, F) by coordinate exchange, from random starts and from those that are named.

    Args:
        starts: designs of so many runs; runs of theirs that have a forbidden pair are drawn anew.
        fixed_NF: runs that are there already; they count, and are not in what is returned.
        most: the only levels that some factors may have in new runs.

    Raises:
        PlumblineError: no run is without a forbidden pair.
    """
    first = None if fixed_NF is None or not len(fixed_NF) else np.asarray(fixed_NF, dtype=int)
    best_NF, best = np.empty((0, len(space.sizes)), dtype=int), -math.inf
    # Twenty random starts of a small design, one of a large one; what is added to a design starts where it is told to.
    random = min(20, int(300_000 / (runs * space.parameters**2))) if first is None else 0
    random = max(random, 0 if starts else 1)
    for start_NF in [*starts, *_draw_starts(space, runs, rng, most, random)]:
        mended_NF = np.array(start_NF, dtype=int)
        for place in np.flatnonzero(~space.allows(mended_NF)):
            mended_NF[place] = _require_row(space.draw_row(rng, most=most))
        rows_NF = optimize_rows(space, mended_NF, fixed_NF=first, most=most)
        x_NP = space.model_matrix(rows_NF if first is None else np.concatenate([first, rows_NF]))
        log_det = float(np.linalg.slogdet(x_NP.T @ x_NP + RIDGE * np.eye(space.parameters))[1])
        if log_det > best + 1e-9:
            best_NF, best = rows_NF, log_det
    return best_NF


def _draw_starts(
    space: FactorSpace, runs: int, rng: np.random.Generator, most: dict[int, set[int]] | None, number: int
) -> Iterator[np.ndarray]:
    for _ in range(number):
        yield np.array([_require_row(space.draw_row(rng, most=most)) for _ in range(runs)])


def _require_row(row_F: np.ndarray | None) -> np.ndarray:
    if row_F is None:
        raise PlumblineError("no run is without a forbidden pair of levels; forbid fewer pairs")
    return row_F
