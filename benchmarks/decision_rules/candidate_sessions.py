"""Sessions of many candidates against one bank, of which all or most do nothing; and a baseline that drifts.

Shapes: S sessions, N candidates of each, B runs of the bank, K of a candidate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from decision_rules.rates_page import RatesPage, rng_of
from decision_rules.rules_and_noise_laws import CANDIDATES, DEFAULT, WORLDS, NoiseLaw, ends, paths

from plumbline.stats.fresh_runs import FRESH_LEVEL, p_of_fresh_runs
from plumbline.stats.sentinel import EVERY, measure_drift
from plumbline.stats.sequential import SequentialDesign
from plumbline.stats.sequential.boundary import integrate_paths


@dataclass(frozen=True, kw_only=True)
class SessionControl:
    """How a session is kept honest.

    Attributes:
        design: of each candidate.
        sentinels: whether the bank gains a run with every fifth candidate.
        anew: whether the bank is made anew after each keep.
        fresh: a keep counts only where so many fresh runs confirm it; 0: at once.
    """

    name: str
    design: SequentialDesign = DEFAULT
    sentinels: bool = False
    anew: bool = False
    fresh: int = 0

    def run(self, sessions: int, gains: Sequence[float], world: NoiseLaw = WORLDS["normal"]) -> tuple[np.ndarray, ...]:
        """Which candidates are kept (S, N), and after how many runs."""
        rng, own = rng_of(self.name, gains, world.law.__name__), self.design
        bank_SB, _ = world.arms(rng, sessions, (own.bank + len(gains) // EVERY, 1))
        all_kept, runs, size_S = [], [], np.full(sessions, own.bank)
        for number, gain in enumerate(gains, start=1):
            if self.sentinels and number > 1 and number % EVERY == 1:
                size_S = size_S + 1
            _, values_SK = world.arms(rng, sessions, (1, own.most))
            values_SK = values_SK + gain
            kept_S, runs_S = np.zeros(sessions, dtype=bool), np.zeros(sessions, dtype=int)
            for size in np.unique(size_S):
                here, now = size_S == size, replace(own, bank=int(size))
                t_SK = paths(now, bank_SB[here, :size], values_SK[here])
                kept_S[here], _, runs_S[here] = ends(integrate_paths(now)[0], t_SK)
                if self.fresh and (again := here & kept_S).any():
                    _, fresh_SN = world.arms(rng, int(again.sum()), (1, self.fresh))
                    kept_S[again] = p_of_fresh_runs(bank_SB[again, :size], fresh_SN + gain) <= FRESH_LEVEL
                    runs_S[again] += self.fresh
            if self.anew:
                bank_SB[kept_S], _ = world.arms(rng, int(kept_S.sum()), (bank_SB.shape[1], 1))
                size_S[kept_S] = own.bank
            all_kept.append(kept_S)
            runs.append(runs_S)
        return np.stack(all_kept, axis=1), np.stack(runs, axis=1)


KINDS = (
    SessionControl(name="`each`, bank of 5"),
    SessionControl(name="`each`, sentinels join the bank", sentinels=True),
    SessionControl(name="`each`, the same, the bank anew after a keep (a study's)", sentinels=True, anew=True),
    SessionControl(name="`each`, the same, fresh runs confirm (a folder's)", sentinels=True, anew=True, fresh=5),
    SessionControl(name="`each`, bank of 30", design=replace(DEFAULT, bank=30)),
    SessionControl(name="`fwer`, 40 planned", design=replace(DEFAULT, alpha=0.05 / CANDIDATES)),
    SessionControl(
        name="`fwer`, 40 planned, a keep allowed at look 1",
        design=replace(DEFAULT, alpha=0.05 / CANDIDATES, first_keep=1),
    ),
)


def nulls(page: RatesPage) -> None:
    """Sessions in which no candidate does anything."""
    sessions, rows = max(2000, page.worlds // 10), []
    for world in ("normal", "t3", "5 % outliers"):
        for kind in KINDS:
            kept_SN, runs_SN = kind.run(sessions, [0.0] * CANDIDATES, WORLDS[world])
            false_S = kept_SN.sum(axis=1)
            error = float(false_S.std()) / math.sqrt(sessions)
            any_promise = None
            if kind.name.startswith("`each`"):
                label = f"a null candidate of a session, {kind.name}"
                page.note(label, float(kept_SN.mean()), error / CANDIDATES, 0.05, world)
            else:
                any_promise = 0.05
            low, high = np.quantile(false_S, [0.05, 0.95], method="inverted_cdf")
            any_keep = page.share(false_S > 0, any_promise, f"any keep of a session of nulls, {kind.name}", world)
            four_keeps = page.share(false_S >= 4)
            mean = f"{false_S.mean():.2f} ± {error:.2f}"
            rows.append(
                (kind.name, world, mean, f"{low:.0f} to {high:.0f}", any_keep, four_keeps, f"{runs_SN.mean():.2f}")
            )
    page.table(
        f"Sessions of {CANDIDATES} candidates that do nothing",
        f"{sessions:,} sessions a row, one bank for all candidates of a session. A "
        "bank that is bad by chance makes many keeps at once: the range is of 90 sessions in 100. Sentinels and a bank "
        "of 30 cut that tail little; a bank that is made anew after a keep cuts it to a tenth, for five runs a keep, "
        "and fresh runs that have to confirm a keep cut what is left to a fifth.",
        ["session", "noise", "nulls kept", "range", "one or more", "4 or more", "runs a candidate"],
        rows,
    )


def some_real(page: RatesPage) -> None:
    """Sessions in which every fifth candidate has a gain."""
    sessions, rows = max(2000, page.worlds // 10), []
    for kind in KINDS:
        for gain in (2.0, 3.0):
            gains = [gain * (number % 5 == 2) for number in range(CANDIDATES)]
            kept_SN, runs_SN = kind.run(sessions, gains)
            real_N = np.array(gains) > 0
            wrong_S = kept_SN[:, ~real_N].sum(axis=1) / np.maximum(kept_SN.sum(axis=1), 1)
            error = float(wrong_S.std()) / math.sqrt(sessions)
            real_keeps = f"{kept_SN[:, real_N].sum(axis=1).mean():.2f}"
            runs = [f"{runs_SN[:, of].mean():.2f}" for of in (real_N, ~real_N)]
            rows.append((kind.name, f"8 of {gain:g} sigma", real_keeps, f"{wrong_S.mean():.3f} ± {error:.3f}", *runs))
    page.table(
        f"Sessions of {CANDIDATES} candidates of which 8 are real",
        "The false share is of all keeps of a session, on average (0 where nothing is kept).",
        ["session", "real gains", "of 8 kept", "false share of keeps", "runs of a real one", "of a null"],
        rows,
    )


def drifting(page: RatesPage) -> None:
    """The baseline gets better while a session runs, so that nulls look like gains."""
    sessions, rows = max(2000, page.worlds // 20), []
    for total in (0.0, 0.5, 1.0, 2.0):
        rng = rng_of("drift", total)
        when_B = np.array([0.0] * 5 + list(range(EVERY, CANDIDATES + 1, EVERY)))
        bank_SB = rng.standard_normal((sessions, len(when_B))) + total * when_B / CANDIDATES
        keeps = np.zeros((2, sessions))
        for number in range(CANDIDATES):
            values_SK = rng.standard_normal((sessions, 8)) + total * number / CANDIDATES
            for row, size in enumerate((5, 5 + number // EVERY)):
                now = replace(DEFAULT, bank=size)
                keeps[row] += ends(integrate_paths(now)[0], paths(now, bank_SB[:, :size], values_SK))[0]
        p = [measure_drift(bank_SB[i], when_B).p for i in range(sessions)]
        means = [f"{of.mean():.2f} ± {of.std() / math.sqrt(sessions):.2f}" for of in keeps]
        rows.append((f"{total:g} sigma", *means, page.share(np.array(p) < 0.05)))
    page.table(
        "A baseline that drifts",
        "All runs get better by so much, evenly, over a session of 40 nulls. Told: the slope of the bank and its eight "
        "sentinels has p < 0.05, up or down.",
        ["drift", "nulls kept, bank of 5", "with sentinels in the bank", "told"],
        rows,
    )
