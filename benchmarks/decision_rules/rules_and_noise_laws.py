"""Laws of noise, and rules that keep a change or do not: ours and those in use.

Shapes: W worlds, B runs of the baseline, K of the candidate. More is better, and one run spreads by 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from scipy import special

from plumbline.stats.sequential import SequentialDesign
from plumbline.stats.sequential.boundary import integrate_paths
from plumbline.stats.sequential.simulation import find_ends, simulate_paths

Law = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]
#: Kept, and candidate runs that were made, of every world.
Ends = tuple[np.ndarray, np.ndarray]


def normal(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.standard_normal(shape)


def heavy(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """t with 3 degrees of freedom."""
    return rng.standard_t(3, shape) / math.sqrt(3)


def outliers(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """One run in twenty is off by 5 more, up or down."""
    off = 5 * rng.choice([-1, 1], shape) * (rng.random(shape) < 0.05)
    return (rng.standard_normal(shape) + off) / math.sqrt(1 + 0.05 * 25)


def spoilt(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """One run in twenty is worse by 5."""
    off = -5.0 * (rng.random(shape) < 0.05)
    return (rng.standard_normal(shape) + off) / math.sqrt(1 + 0.05 * 0.95 * 25)


@dataclass(frozen=True, kw_only=True)
class NoiseLaw:
    """How runs spread.

    Attributes:
        law: of both arms.
        candidate: how much wider the candidate's runs spread.
        shared: share of the variance that runs of one seed have in common.
    """

    law: Law = normal
    candidate: float = 1.0
    shared: float = 0.0

    def arms(self, rng: np.random.Generator, worlds: int, runs: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        """Runs of the baseline and of a candidate without a gain; the first ones of both have the same seeds."""
        baseline_WB, candidate_WK = (self.law(rng, (worlds, count)) for count in runs)
        if self.shared:
            common = self.law(rng, (worlds, max(runs))) * math.sqrt(self.shared)
            own = math.sqrt(1 - self.shared)
            baseline_WB = own * baseline_WB + common[:, : runs[0]]
            candidate_WK = own * candidate_WK + common[:, : runs[1]]
        return baseline_WB, self.candidate * candidate_WK


WORLDS = {
    "normal": NoiseLaw(),
    "t3": NoiseLaw(law=heavy),
    "5 % outliers": NoiseLaw(law=outliers),
    "5 % of runs spoilt": NoiseLaw(law=spoilt),
    "candidate 2x as wide": NoiseLaw(candidate=2.0),
    "candidate half as wide": NoiseLaw(candidate=0.5),
}


@dataclass(frozen=True, kw_only=True)
class DecisionRule:
    """A way to decide on one candidate.

    Attributes:
        name: as the page has it.
        promise: the most nulls that it says it keeps; None: it says nothing, or nothing that it could hold.
        design: runs of both arms.
        decide: rule, T of every look (W, K), runs of both arms -> ends.
    """

    name: str
    promise: float | None
    design: SequentialDesign
    decide: Callable[[DecisionRule, np.ndarray, np.ndarray, np.ndarray], Ends]

    def run(self, rng: np.random.Generator, world: NoiseLaw, worlds: int, gain: float = 0.0) -> Ends:
        """Draw worlds and decide in each. In pairs a difference spreads as sqrt(2) runs do."""
        own = self.design
        baseline_WB, candidate_WK = world.arms(rng, worlds, (own.baseline_runs(own.most), own.most))
        t_WK = simulate_paths(own, baseline_WB, candidate_WK + gain)
        return self.decide(self, t_WK, baseline_WB, candidate_WK + gain)

    def session(self, rng: np.random.Generator, sessions: int, candidates: int) -> np.ndarray:
        """How many of a session's candidates are kept that do nothing, all against the same runs of the baseline."""
        own, world, keeps = self.design, NoiseLaw(), np.zeros(sessions)
        baseline_WB, _ = world.arms(rng, sessions, (own.baseline_runs(own.most), own.most))
        for _ in range(candidates):
            _, candidate_WK = world.arms(rng, sessions, (1, own.most))
            keeps += self.decide(self, simulate_paths(own, baseline_WB, candidate_WK), baseline_WB, candidate_WK)[0]
        return keeps


def stopping(rule: DecisionRule, t_WK: np.ndarray, *_: np.ndarray) -> Ends:
    is_kept, _, runs = find_ends(integrate_paths(rule.design)[0], t_WK)
    return is_kept, runs


def running_on(rule: DecisionRule, t_WK: np.ndarray, *_: np.ndarray) -> Ends:
    """Discards are not heeded."""
    edges = integrate_paths(rule.design)[0]
    is_kept, _, runs = find_ends(replace(edges, discard=(math.nan,) * rule.design.most), t_WK)
    return is_kept, runs


def some_looks(*looks: int) -> Callable[..., Ends]:
    """Of the announced looks only these are taken."""

    def decide(rule: DecisionRule, t_WK: np.ndarray, *_: np.ndarray) -> Ends:
        hidden = np.full_like(t_WK, math.nan)
        columns = np.array(looks) - 1
        hidden[:, columns] = t_WK[:, columns]
        return stopping(rule, hidden)

    return decide


def prolong(announced: SequentialDesign) -> Callable[..., Ends]:
    """Who is not kept goes on beyond the last look that was announced, with its boundary."""

    def decide(_: DecisionRule, t_WK: np.ndarray, *__: np.ndarray) -> Ends:
        keep = np.array(integrate_paths(announced)[0].keep)
        return first_of(t_WK >= np.concatenate([keep, np.full(t_WK.shape[1] - len(keep), keep[-1])]))

    return decide


def first_of(keep_WK: np.ndarray) -> Ends:
    """Kept at the first look that keeps."""
    is_kept = keep_WK.any(axis=1)
    return is_kept, np.where(is_kept, keep_WK.argmax(axis=1) + 1, keep_WK.shape[1])


def test_after_last_run(rule: DecisionRule, t_WK: np.ndarray, *_: np.ndarray) -> Ends:
    """One t test after the last run."""
    critical = -special.stdtrit(rule.design.df(rule.design.most), rule.design.alpha)
    return t_WK[:, -1] >= critical, np.full(len(t_WK), rule.design.most)


def test_after_each_run(rule: DecisionRule, t_WK: np.ndarray, *_: np.ndarray) -> Ends:
    """The same test after every run from the second on, and a keep where one is significant."""
    df = np.array([rule.design.df(look) for look in range(1, rule.design.most + 1)])
    critical = -special.stdtrit(np.maximum(df, 1), rule.design.alpha)
    critical[0] = math.inf
    return first_of(t_WK >= critical)


def design(bank: int = 5, most: int = 8, **others: object) -> SequentialDesign:
    return SequentialDesign(bank=bank, most=most, **others)  # type: ignore[arg-type]


#: True gains in sigma, candidates of a session, and the default design.
GAINS, CANDIDATES = (0.0, 1.0, 2.0, 3.0), 40
DEFAULT = design()


def ours() -> list[DecisionRule]:
    """The stopping rule in its forms, and what stands next to it."""
    rows = (
        ("stopping rule", DEFAULT, stopping),
        ("the same, discards not heeded", DEFAULT, running_on),
        ("interleaved", design(plan="interleaved"), stopping),
        ("pairs", design(0, 8, plan="paired"), stopping),
        ("fixed n, 5 against 5", design(5, 5), test_after_last_run),
        ("fixed n, 8 against 5", DEFAULT, test_after_last_run),
        ("a keep allowed at look 1", design(first_keep=1), stopping),
        ("`make quick`: bank 3, at most 3", design(3, 3), stopping),
    )
    rules = [DecisionRule(name=name, promise=0.05, design=terms, decide=decide) for name, terms, decide in rows]
    claim = design(5, 5, alpha=0.025)
    return [
        *rules,
        DecisionRule(name="`confirm`: 5 against 5 at 0.025", promise=0.025, design=claim, decide=test_after_last_run),
    ]


def list_unannounced_looks() -> list[DecisionRule]:
    """Looks other than those that were announced."""
    eight, sixteen, many = DEFAULT, design(5, 16), design(5, 64)
    return [
        DecisionRule(
            name="stopping rule, of its 8 looks only 2, 5, 8", promise=0.05, design=eight, decide=some_looks(2, 5, 8)
        ),
        DecisionRule(name="stopping rule, run on after discards", promise=0.05, design=eight, decide=running_on),
        DecisionRule(name="stopping rule of 8 looks, then 8 more", promise=None, design=sixteen, decide=prolong(eight)),
        DecisionRule(
            name="t test at 0.05 after each of 2 to 8 runs", promise=None, design=eight, decide=test_after_each_run
        ),
        DecisionRule(
            name="t test at 0.05 after each of 2 to 64 runs", promise=None, design=many, decide=test_after_each_run
        ),
    ]


def one_run(_: DecisionRule, __: np.ndarray, baseline_WB: np.ndarray, candidate_WK: np.ndarray) -> Ends:
    """autoresearch: keep if better."""
    return candidate_WK[:, 0] > baseline_WB[:, 0], np.ones(len(candidate_WK))


def twice_two_baselines(_: DecisionRule, __: np.ndarray, baseline_WB: np.ndarray, candidate_WK: np.ndarray) -> Ends:
    """autoresearch, pull request 560: better than the first baseline by twice the difference of two."""
    apart = np.abs(baseline_WB[:, 0] - baseline_WB[:, 1])
    return candidate_WK[:, 0] - baseline_WB[:, 0] > 2 * apart, np.ones(len(candidate_WK))


def bootstrap(_: DecisionRule, __: np.ndarray, baseline_WB: np.ndarray, candidate_WK: np.ndarray) -> Ends:
    """autoresearch-mlx: of all pairs of resampled means of three runs, 95 in 100 are better."""
    resamples = np.array(list(product(range(3), repeat=3)))
    base, own = (np.sort(values[:, resamples].mean(axis=2), axis=1) for values in (baseline_WB, candidate_WK))
    better = np.stack([(base < own[:, [column]]).sum(axis=1) for column in range(27)]).sum(axis=0)
    return better / 27**2 >= 0.95, np.full(len(own), 3)


def welch_quarter(_: DecisionRule, __: np.ndarray, baseline_WB: np.ndarray, candidate_WK: np.ndarray) -> Ends:
    """parameter-golf as practised: Welch's p < 0.25, three against three."""
    parts = [values.var(axis=1, ddof=1) / 3 for values in (baseline_WB, candidate_WK)]
    t = (candidate_WK.mean(axis=1) - baseline_WB.mean(axis=1)) / np.sqrt(sum(parts))
    df = sum(parts) ** 2 / sum(part**2 / 2 for part in parts)
    return special.stdtr(df, -t) < 0.25, np.full(len(t), 3)


def two_scales(_: DecisionRule, __: np.ndarray, baseline_WB: np.ndarray, candidate_WK: np.ndarray) -> Ends:
    """Marin's first gate: better at two scales, one run each."""
    return (candidate_WK[:, :2] > baseline_WB[:, :2]).all(axis=1), np.full(len(candidate_WK), 2)


def goal(peeked: bool) -> Callable[..., Ends]:
    """modded-nanogpt, Track 3: z of 20 runs against a fixed value, sigma known, p < 0.001."""

    def decide(_: DecisionRule, __: np.ndarray, ___: np.ndarray, candidate_WK: np.ndarray) -> Ends:
        z = candidate_WK.cumsum(axis=1) / np.sqrt(np.arange(1, candidate_WK.shape[1] + 1))
        keep = z > -special.ndtri(0.001)
        return first_of(keep if peeked else keep[:, -1:])[0], np.full(len(z), 20)

    return decide


def in_use() -> list[DecisionRule]:
    rows = (
        ("autoresearch: keep if better", design(1, 2), one_run),
        ("twice the difference of two baselines (pull request 560)", design(2, 2), twice_two_baselines),
        ("three seeds, bootstrap P >= .95 (autoresearch-mlx)", design(3, 3), bootstrap),
        ("parameter-golf as practised: Welch p < .25, 3 against 3", design(3, 3), welch_quarter),
        ("Marin, gate 1: better at two scales, one run each", design(2, 2), two_scales),
        ("modded-nanogpt Track 3: z of 20 runs, fixed value, p < .001", design(1, 20), goal(peeked=False)),
        ("the same, looked at after each run", design(1, 20), goal(peeked=True)),
    )
    return [DecisionRule(name=name, promise=None, design=terms, decide=decide) for name, terms, decide in rows]


def draw_greedy_keeps(rng: np.random.Generator, tries: int, sessions: int) -> tuple[np.ndarray, np.ndarray]:
    """autoresearch's loop over nulls: keeps, and the gain that it shows at its end, in sigma."""
    best, keeps = rng.standard_normal(sessions), np.zeros(sessions)
    start = best
    for _ in range(tries):
        value = rng.standard_normal(sessions)
        keeps, best = keeps + (value > best), np.maximum(value, best)
    return keeps, best - start


def green(rng: np.random.Generator, tries: int, sessions: int) -> np.ndarray:
    """pi-autoresearch: sessions of nulls whose best gain is two median distances or more."""
    values = rng.standard_normal((sessions, tries + 1))
    away = np.median(np.abs(values - np.median(values, axis=1, keepdims=True)), axis=1)
    return values.max(axis=1) - values[:, 0] >= 2 * away
