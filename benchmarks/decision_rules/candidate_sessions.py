"""Sessions of many candidates against one bank, of which all or most do nothing; and a baseline that drifts.

Shapes: S sessions, N candidates of each, B runs of the bank, K of a candidate.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from decision_rules.rates_page import RatesPage, rng_of
from decision_rules.rules_and_noise_laws import CANDIDATES, DEFAULT, WORLDS
from decision_rules.watched_sessions import FOLDER, SessionControl, run_sessions

from plumbline.stats.sentinel import EVERY, measure_drift
from plumbline.stats.sequential.boundary import integrate_paths
from plumbline.stats.sequential.simulation import find_ends, simulate_paths

KINDS = (
    SessionControl(name="`each`, bank of 5"),
    SessionControl(name="`each`, sentinels join the bank", sentinels=True),
    SessionControl(name="`each`, the same, the bank anew after a keep (a study's)", sentinels=True, anew=True),
    replace(FOLDER, name="`each`, the same, fresh runs of both arms confirm (a folder's)", trend="not looked for"),
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
            rates = run_sessions(sessions, [0.0] * CANDIDATES, kind, law=WORLDS[world].law)
            false_S = rates.keeps.sum(axis=1)
            error = float(false_S.std()) / math.sqrt(sessions)
            any_promise = None
            if kind.name.startswith("`each`"):
                label = f"a null candidate of a session, {kind.name}"
                page.note(label, float(rates.keeps.mean()), error / CANDIDATES, 0.05, world)
            else:
                any_promise = 0.05
            low, high = np.quantile(false_S, [0.05, 0.95], method="inverted_cdf")
            any_keep = page.share(false_S > 0, any_promise, f"any keep of a session of nulls, {kind.name}", world)
            four_keeps = page.share(false_S >= 4)
            mean = f"{false_S.mean():.2f} ± {error:.2f}"
            rows.append(
                (kind.name, world, mean, f"{low:.0f} to {high:.0f}", any_keep, four_keeps, f"{rates.runs.mean():.2f}")
            )
    page.table(
        f"Sessions of {CANDIDATES} candidates that do nothing",
        f"{sessions:,} sessions a row, one bank for all candidates of a session. A "
        "bank that is bad by chance makes many keeps at once: the range is of 90 sessions in 100. Sentinels and a bank "
        "of 30 cut that tail little; a bank that is made anew after a keep cuts it to a tenth, for five runs a keep, "
        "and fresh runs of both arms, which have to confirm a keep, leave next to nothing of it. Runs are all that a "
        "candidate takes after the first bank: its own, sentinels, fresh ones of both arms, banks made anew. The order "
        "of runs is not looked at here (`evidence_rates.md`).",
        ["session", "noise", "nulls kept", "range", "one or more", "4 or more", "runs a candidate"],
        rows,
    )


def some_real(page: RatesPage) -> None:
    """Sessions in which every fifth candidate has a gain."""
    sessions, rows = max(2000, page.worlds // 10), []
    for kind in KINDS:
        for gain in (2.0, 3.0):
            gains = [gain * (number % 5 == 2) for number in range(CANDIDATES)]
            rates = run_sessions(sessions, gains, kind)
            kept_SN, runs_SN = rates.keeps, rates.runs
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
                keeps[row] += find_ends(integrate_paths(now)[0], simulate_paths(now, bank_SB[:, :size], values_SK))[0]
        p = [measure_drift(bank_SB[i], when_B).p for i in range(sessions)]
        means = [f"{of.mean():.2f} ± {of.std() / math.sqrt(sessions):.2f}" for of in keeps]
        rows.append((f"{total:g} sigma", *means, page.share(np.array(p) < 0.05)))
    page.table(
        "A baseline that drifts",
        "All runs get better by so much, evenly, over a session of 40 nulls. Told: the slope of the bank and its "
        f"{CANDIDATES // EVERY} sentinels has p < 0.05, up or down.",
        ["drift", "nulls kept, bank of 5", "with sentinels in the bank", "told"],
        rows,
    )
