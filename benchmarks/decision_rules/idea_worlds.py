"""Worlds of ideas whose truth is known, and sessions of them by greedy, by `plumbline try` and by `plumbline screen`.

Shapes: S sessions, N ideas, R runs, B runs of the baseline, K of a proposal. More is better; one run spreads by 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from decision_rules.proposal_sessions import RunningSessions, fresh_values, stopping
from decision_rules.rates_page import rng_of
from decision_rules.rules_and_noise_laws import Law, design, normal

from plumbline.stats.factor_effects import fit_effects, p_of_gains, pool_residuals
from plumbline.stats.fresh_runs import FRESH_LEVEL, p_of_fresh_runs
from plumbline.stats.multiplicity import adjust
from plumbline.stats.sentinel import EVERY
from plumbline.verdict.decision.experiment import CRASHED, DIVERGED, ArmRun
from plumbline.verdict.screen.screen_course import ScreenRun, Step, advance
from plumbline.verdict.screen.screen_design import WITH, Factor, ScreenDesign, make_design
from plumbline.verdict.screen.screen_terms import ScreenTerms

#: Runs of the baseline before anything, and fresh runs of each arm.
BANK, CONFIRMING = 5, 5
#: A screen's false discovery rate, and the level of its one test.
SHARE, ALPHA = 0.10, 0.025
#: Designs that the sessions of a row share.
DESIGNS = 20


@dataclass(frozen=True, kw_only=True)
class IdeaWorld:
    """What is true of the ideas of a session.

    Attributes:
        ideas, runs: how many there are, and runs of the design.
        gain: of a tenth of them; `worse`: the share of the others that lose 1.
        pairs: two-factor interactions, each as far from 0 as a normal of this standard deviation: `spread`.
        wide: ideas that do nothing but add the variance of a run to every run that has them.
        drift: by how much each run is better than the one before it.
        crash: share of runs that crash, whatever they have.
        diverge: ideas that do nothing, and make every run with them diverge.
        halfway: whether the effects are looked at after half of the design too.
    """

    name: str
    ideas: int = 60
    runs: int = 64
    gain: float = 2.0
    worse: float = 0.0
    spread: float = 0.0
    wide: int = 0
    law: Law = normal
    drift: float = 0.0
    crash: float = 0.0
    diverge: int = 0
    halfway: bool = False

    @property
    def needs_course(self) -> bool:
        """Whether what is run next depends on how runs ended."""
        return bool(self.crash or self.diverge or self.halfway)

    def draw(self, sessions: int) -> IdeaSessions:
        """Draw the truth of sessions."""
        real, rng = self.ideas // 10, rng_of("truth", self.name)
        order_SN = rng.permuted(np.tile(np.arange(self.ideas), (sessions, 1)), axis=1)
        places_SN = np.argsort(order_SN, axis=1)  # idea -> its place in the list below
        gains_N, wide_N, diverges_N = np.zeros(self.ideas), np.zeros(self.ideas), np.zeros(self.ideas)
        gains_N[:real] = self.gain
        gains_N[real : real + round(self.worse * (self.ideas - real))] = -1.0
        wide_N[real : real + self.wide] = 1.0
        diverges_N[self.ideas - self.diverge :] = 1.0
        twos_SNN = np.zeros((sessions, self.ideas, self.ideas)) if self.spread else None
        if twos_SNN is not None:
            every = np.array([(one, two) for one in range(self.ideas) for two in range(one + 1, self.ideas)])
            for session in range(sessions):
                pairs = every[rng.choice(len(every), self.ideas, replace=False)]
                twos_SNN[session, pairs[:, 0], pairs[:, 1]] = self.spread * rng.standard_normal(self.ideas)
        return IdeaSessions(self, gains_N[places_SN], wide_N[places_SN], diverges_N[places_SN] > 0, twos_SNN)


@dataclass(frozen=True)
class IdeaSessions:
    """The truth of S sessions: gains, added variances, what diverges, and what two gain beyond their sum."""

    world: IdeaWorld
    gains_SN: np.ndarray
    wide_SN: np.ndarray
    diverges_SN: np.ndarray
    twos_SNN: np.ndarray | None

    def level(self, has_SN: np.ndarray) -> np.ndarray:
        """The true gain of each session's set of ideas."""
        has_SN = has_SN.astype(float)
        level_S = np.einsum("sn,sn->s", has_SN, self.gains_SN)
        if self.twos_SNN is not None:
            level_S = level_S + np.einsum("sn,snm,sm->s", has_SN, self.twos_SNN, has_SN)
        return level_S

    def values(self, rng: np.random.Generator, has_SN: np.ndarray, times_SR: np.ndarray) -> np.ndarray:
        """Values (S, R) of runs of each session's set, made as the so many-th runs of the session."""
        width_S = np.sqrt(1 + np.einsum("sn,sn->s", has_SN.astype(float), self.wide_SN))
        noise_SR = self.world.law(rng, times_SR.shape) * width_S[:, None]
        return self.level(has_SN)[:, None] + self.world.drift * times_SR + noise_SR

    def part(self, rows: slice) -> IdeaSessions:
        """Some of the sessions."""
        twos = None if self.twos_SNN is None else self.twos_SNN[rows]
        return IdeaSessions(self.world, self.gains_SN[rows], self.wide_SN[rows], self.diverges_SN[rows], twos)


@dataclass
class IdeaEnds:
    """How sessions ended: the ideas that were kept, whether that was confirmed, the runs that it took."""

    sessions: IdeaSessions
    kept_SN: np.ndarray
    confirmed_S: np.ndarray
    runs_S: np.ndarray

    @property
    def true_S(self) -> np.ndarray:
        """The true gain of each session that is claimed: that of the set where it is confirmed."""
        return self.sessions.level(self.kept_SN) * self.confirmed_S

    @property
    def false_S(self) -> np.ndarray:
        """The share of each session's keeps that does nothing, or harm, by itself; 0 without any."""
        return (self.kept_SN & (self.sessions.gains_SN <= 0)).sum(axis=1) / np.maximum(1, self.kept_SN.sum(axis=1))

    def count(self) -> tuple[float, float, float]:
        """How many of the kept ones gain by themselves, do nothing, and lose, on average."""
        gains = self.sessions.gains_SN
        return tuple(float((self.kept_SN & kind).sum(axis=1).mean()) for kind in (gains > 0, gains == 0, gains < 0))


def run_greedy(sessions: IdeaSessions, runs_S: np.ndarray) -> IdeaEnds:
    """Keep what looks better than the best run so far; go through the ideas again and again, up to so many runs."""
    world, count = sessions.world, len(sessions.gains_SN)
    rng, rows = rng_of("greedy", world.name), np.arange(count)
    kept_SN, place_S = np.zeros((count, world.ideas), dtype=bool), np.zeros(count, dtype=int)
    time_S = np.zeros(count)
    best_S = sessions.values(rng, kept_SN, time_S[:, None])[:, 0]
    most_S = runs_S * (1 - world.crash)  # what crashed by chance is run again
    for number in range(1, int(np.ceil(most_S.max()))):
        for _ in range(world.ideas):
            stuck_S = kept_SN[rows, place_S]
            if not stuck_S.any():
                break
            place_S = np.where(stuck_S, (place_S + 1) % world.ideas, place_S)
        own_SN = kept_SN.copy()
        own_SN[rows, place_S] = True
        value_S = sessions.values(rng, own_SN, np.full((count, 1), float(number)))[:, 0]
        better_S = (value_S > best_S) & ~sessions.diverges_SN[rows, place_S] & (number < most_S)
        kept_SN[better_S] = own_SN[better_S]
        best_S = np.where(better_S, value_S, best_S)
        place_S = (place_S + 1) % world.ideas
    return IdeaEnds(sessions, kept_SN, np.ones(count, dtype=bool), runs_S)


def run_try(sessions: IdeaSessions, runs_S: np.ndarray) -> IdeaEnds:
    """Try one idea after the other by `plumbline try`, session `each`, up to so many runs."""
    world, count = sessions.world, len(sessions.gains_SN)
    rng, decide = rng_of("try", world.name), stopping(design(BANK, 8))
    kept_SN, none = np.zeros((count, world.ideas), dtype=bool), np.zeros((count, world.ideas), dtype=bool)
    ends_SN, used_S = kept_SN.copy(), np.full(count, float(BANK))
    bank_SB = sessions.values(rng, none, np.tile(np.arange(BANK, dtype=float), (count, 1)))
    loop = RunningSessions(bank_SB, np.full(count, BANK))
    for number in range(world.ideas):
        if (number + 1) % EVERY == 0:
            loop.add(np.arange(count), sessions.values(rng, kept_SN, used_S[:, None]))
            used_S = used_S + 1
        own_SN = kept_SN.copy()
        own_SN[:, number] = True
        values_SK = sessions.values(rng, own_SN, used_S[:, None] + np.arange(8))
        keep_S, made_S = decide(loop, values_SK)
        fails_S = sessions.diverges_SN[:, number]
        keep_S, made_S = keep_S & ~fails_S, np.where(fails_S, 1, made_S)
        used_S = used_S + made_S
        turns = 2 * np.arange(CONFIRMING)
        base_SB = sessions.values(rng, kept_SN, used_S[:, None] + turns)
        fresh_SB = sessions.values(rng, own_SN, used_S[:, None] + turns + 1)
        sure_S = p_of_fresh_runs(base_SB, fresh_SB) <= FRESH_LEVEL
        used_S = used_S + 2 * CONFIRMING * keep_S
        loop.add(np.flatnonzero(keep_S & ~sure_S), base_SB[keep_S & ~sure_S])
        keep_S = keep_S & sure_S
        kept_SN[keep_S] = own_SN[keep_S]
        fresh_values(loop, keep_S, values_SK, fresh_SB)
        in_time_S = used_S <= runs_S * (1 - world.crash)  # what crashed by chance is run again
        ends_SN[in_time_S] = kept_SN[in_time_S]
        if not in_time_S.any():
            break
    return IdeaEnds(sessions, ends_SN, np.ones(count, dtype=bool), runs_S)


def make_designs(world: IdeaWorld, sessions: int) -> list[tuple[slice, ScreenDesign]]:
    """The designs of a row, and the sessions that have each."""
    size = -(-sessions // DESIGNS)
    factors = [Factor(f"idea-{number}") for number in range(world.ideas)]
    return [
        (slice(start, min(start + size, sessions)), make_design(factors, runs=world.runs, seed=start))
        for start in range(0, sessions, size)
    ]


def run_screen(sessions: IdeaSessions) -> IdeaEnds:
    """Judge all ideas in one design, and confirm what is chosen: the arithmetic of the course, for many sessions."""
    world, count = sessions.world, len(sessions.gains_SN)
    rng, kept_SN = rng_of("screen", world.name), np.zeros((count, world.ideas), dtype=bool)
    for rows, own in make_designs(world, count):
        kept_SN[rows] = choose_ideas(sessions.part(rows), own, rng)
    confirmed_S = confirm_sets(sessions, kept_SN, rng, first=BANK + world.runs)
    runs_S = BANK + world.runs + 2 * CONFIRMING * kept_SN.any(axis=1)
    return IdeaEnds(sessions, kept_SN, confirmed_S, runs_S.astype(float))


def choose_ideas(sessions: IdeaSessions, own: ScreenDesign, rng: np.random.Generator) -> np.ndarray:
    """What the effects of a design choose in each session, (S, N)."""
    count, levels_RN = len(sessions.gains_SN), own.levels_NF
    none_SN = np.zeros((count, levels_RN.shape[1]), dtype=bool)
    past_SB = sessions.values(rng, none_SN, np.tile(np.arange(BANK, dtype=float), (count, 1)))
    values_SR = np.empty((count, len(levels_RN)))
    for run, row_N in enumerate(levels_RN):
        has_SN = np.tile(row_N > 0, (count, 1))
        values_SR[:, run] = sessions.values(rng, has_SN, np.full((count, 1), float(BANK + run)))[:, 0]
    return choose_by_values(own, values_SR, past_SB)


def choose_by_values(own: ScreenDesign, values_SR: np.ndarray, past_SB: np.ndarray) -> np.ndarray:
    """What values of a design's runs choose in each session, (S, N), as `estimate_effects` does."""
    fit = fit_effects(own.space.model_matrix(own.levels_NF), values_SR)
    pooled = pool_residuals(fit.squares_W, fit.df, past_SB)
    errors_SN = pooled.sigma_W[:, None] * fit.unit_errors_P[1:]
    p_SN = p_of_gains(fit.effects_WP[:, 1:], errors_SN, pooled.df_W[:, None])
    return np.array([adjust(p_N, "bh") <= SHARE for p_N in p_SN])


def confirm_sets(sessions: IdeaSessions, kept_SN: np.ndarray, rng: np.random.Generator, first: int) -> np.ndarray:
    """Whether fresh runs confirm each session's set; none is confirmed that is empty."""
    turns = first + 2 * np.arange(CONFIRMING, dtype=float)
    times_SB = np.tile(turns, (len(kept_SN), 1))
    base_SB = sessions.values(rng, np.zeros_like(kept_SN), times_SB)
    own_SB = sessions.values(rng, kept_SN, times_SB + 1)
    return kept_SN.any(axis=1) & (p_of_fresh_runs(base_SB, own_SB) <= ALPHA)


@dataclass
class CourseRuns:
    """Runs of one session, as the course asks for them."""

    sessions: IdeaSessions
    rng: np.random.Generator
    made: list[ScreenRun] = field(default_factory=list)

    def make(self, step: Step) -> None:
        """Make the runs of a step."""
        for request in step.requests:
            has_N = np.array([level == WITH for level in request.settings.values()])
            time = np.array([[float(BANK + len(self.made))]])
            value = float(self.sessions.values(self.rng, has_N[None, :], time)[0, 0])
            outcome = "finished"
            if (has_N & self.sessions.diverges_SN[0]).any():
                outcome = DIVERGED
            elif self.rng.random() < self.sessions.world.crash:
                outcome = CRASHED
            own = None if outcome != "finished" else value
            self.made.append(ScreenRun(request, ArmRun(arm="", seed=request.seed, value=own, outcome=outcome)))


def run_course(sessions: IdeaSessions) -> IdeaEnds:
    """Judge all ideas in one design by the course itself, run by run: where runs crash and diverge."""
    world, count = sessions.world, len(sessions.gains_SN)
    kept_SN, confirmed_S = np.zeros((count, world.ideas), dtype=bool), np.zeros(count, dtype=bool)
    runs_S = np.zeros(count)
    terms = ScreenTerms(
        name="", baseline="", metric="", higher=True, runs=world.runs, first_seed=0, halfway=world.halfway
    )
    none_1B = np.arange(BANK, dtype=float)[None, :]
    for rows, own in make_designs(world, count):
        for session in range(rows.start, rows.stop):
            truth, rng = sessions.part(slice(session, session + 1)), rng_of("course", world.name, session)
            past = truth.values(rng, np.zeros((1, world.ideas), dtype=bool), none_1B)[0].tolist()
            runs = CourseRuns(truth, rng)
            while isinstance(step := advance(terms, own, past, runs.made), Step):
                runs.make(step)
            chosen = set(step.chosen)
            kept_SN[session] = [(factor.name, WITH) in chosen for factor in own.factors]
            confirmed_S[session], runs_S[session] = step.verdict.is_kept, BANK + len(runs.made)
    return IdeaEnds(sessions, kept_SN, confirmed_S, runs_S)


def screen_ideas(sessions: IdeaSessions) -> IdeaEnds:
    """Judge all ideas of each session in one design."""
    return run_course(sessions) if sessions.world.needs_course else run_screen(sessions)
