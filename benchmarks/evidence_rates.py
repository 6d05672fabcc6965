"""What a try keeps and refuses where runs are not as its arithmetic assumes: other spread, drift, wild candidates.

    python benchmarks/evidence_rates.py                        # 2 minutes of a quiet core; evidence_rates.md
    python benchmarks/evidence_rates.py --sessions 100 --out /tmp/quick.md

Nothing is trained: runs are drawn with a fixed seed, and go through the looks, the fresh runs and the check of the
order of runs by the code that decides. Gains are in sigma, the spread of one run of the baseline.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from decision_rules.rates_page import RatesPage, make_page, rng_of
from decision_rules.rules_and_noise_laws import CANDIDATES, DEFAULT
from decision_rules.watched_sessions import FOLDER, FRESH, TOLD, SessionRates, run_sessions

from plumbline.stats.fresh_runs import FRESH_LEVEL, p_of_fresh_runs
from plumbline.stats.sequential.boundary import integrate_paths
from plumbline.stats.sequential.simulation import find_ends, simulate_paths

WIDTHS, DRIFTS = (0.5, 1.0, 1.5, 2.0, 3.0), (0.0, 0.02, 0.05, 0.1, 0.2)
#: Single candidates are drawn so many times as often as sessions.
MORE = 20
#: Runs of each arm of a claim, and its level.
CLAIM, CLAIM_LEVEL = 5, 0.025
#: What a study's try may keep of nulls: where a candidate alone is up to twice as wide, and wider.
STUDY_BAR, WIDEST_BAR = 0.06, 0.10
#: Candidates of a session that spread by four sigma, and those that gain two; the others do nothing.
WILD, REAL = range(0, CANDIDATES, 5), range(4, CANDIDATES, 5)


def spreads(page: RatesPage) -> None:
    """One candidate that does nothing, where arms are wider or narrower."""
    rows, worlds = [], MORE * page.worlds
    for title, width_of, own_of in (
        ("both arms", lambda width: width, lambda width: 1.0),
        ("the candidate alone", lambda width: 1.0, lambda width: width),
    ):
        for width in WIDTHS:
            rates = run_sessions(worlds, [0.0], width=width_of(width), own_widths=[own_of(width)])
            rng = rng_of("claim", title, width)
            study = _find_study_keeps(rng, worlds, width_of(width), width)
            base, own = (times * rng.standard_normal((worlds, CLAIM)) for times in (width_of(width), width))
            claims = p_of_fresh_runs(base, own) <= CLAIM_LEVEL
            promise = 0.05 if title == "both arms" else None
            label = f"null, {title} {width:g} times as wide"
            looks = page.share(rates.looks[:, 0], promise, label)
            cells = (
                looks,
                page.share(study, STUDY_BAR if width <= 2 else WIDEST_BAR, label),
                page.share(rates.keeps[:, 0], 0.05, label),
            )
            rows.append((title, f"{width:g}", *cells, page.share(rates.refusals[:, 0]), page.share(claims)))
    page.table(
        "Arms of another spread: what is kept of a change that does nothing",
        "Looks: kept by the looks of a folder's try. Study: kept by a study's try, which has no fresh runs: where the "
        "candidate's runs spread more widely, Welch's test counts if it is the stricter one. Kept: of the looks' "
        f"column, {FRESH} fresh runs of each arm, in turn, agree at {FRESH_LEVEL:g}. 0.05 is promised. Claim: "
        f"`confirm`, which promises {CLAIM_LEVEL:g}.",
        ["wider", "times", "looks", "study", "kept", "refused for a trend", "claim"],
        rows,
    )


def _find_study_keeps(rng: np.random.Generator, worlds: int, base_width: float, own_width: float) -> np.ndarray:
    """Whether a study's try keeps a candidate that does nothing, in each of W worlds."""
    design = replace(DEFAULT, allow_wider=True)
    base_WB = base_width * rng.standard_normal((worlds, design.bank))
    own_WK = own_width * rng.standard_normal((worlds, design.most))
    return find_ends(integrate_paths(design)[0], simulate_paths(design, base_WB, own_WK))[0]


def power(page: RatesPage) -> None:
    """What is kept of true gains, by the first candidate of a session and after wild ones."""
    rows = []
    for gain in (0.0, 1.0, 2.0, 3.0):
        rates = run_sessions(MORE * page.worlds, [gain])
        rows.append(("first of its session", f"{gain:g}", *_format_rates(rates, np.s_[:, 0])))
    gains = [2.0 if number in REAL else 0.0 for number in range(CANDIDATES)]
    widths = [4.0 if number in WILD else 1.0 for number in range(CANDIDATES)]
    rates = run_sessions(page.worlds, gains, own_widths=widths)
    calm = ~rates.keeps[:, list(WILD)].any(axis=1)
    others = [number for number in range(CANDIDATES) if number not in (*WILD, *REAL)]
    for title, gain, numbers in (("after wild ones", "2", list(REAL)), ("after wild ones", "0", others)):
        rows.append((title, gain, *_format_rates(rates, np.ix_(calm, numbers))))
    rows.append(("a wild one", "0", *_format_rates(rates, np.s_[:, list(WILD)])))
    tame = run_sessions(page.worlds, gains)
    for gain, numbers in (("2", list(REAL)), ("0", others)):
        rows.append(("the same without wild ones", gain, *_format_rates(tame, np.s_[:, numbers])))
    page.table(
        "What is kept of gains",
        f"Sessions of {CANDIDATES}: every fifth candidate is wild (its runs spread by 4 sigma), every fifth gains 2 "
        "sigma over the baseline of the time. Rows after wild ones are of the sessions in which none of those is kept "
        f"({calm.mean():.2f} of them): one that is becomes the baseline, which is then as wide. Without wild ones "
        "later candidates find less than the first as well: a lucky bank stays the baseline for longer. "
        f"Told: p < {TOLD:g}.",
        ["candidate", "gain", "looks", "kept", "refused", "told"],
        rows,
    )


def drifts(page: RatesPage) -> None:
    """Sessions of nulls in which every run is better than the one before by a little."""
    rows = []
    for drift in DRIFTS:
        for watched in (True, False):
            control = FOLDER if watched else replace(FOLDER, trend="told")
            rates = run_sessions(page.worlds, [0.0] * CANDIDATES, control, drift=drift)
            not_refused = ~rates.refusals
            refused_sessions = page.share(
                rates.refusals.any(axis=1), 0.05 if watched and not drift else None, "refused"
            )
            of_judged = f"{rates.keeps.sum() / not_refused.sum():.3f}"
            cells = [_format_mean(each) for each in (rates.looks, rates.keeps)]
            rows.append(
                (
                    f"{drift:g}",
                    "yes" if watched else "no",
                    *cells,
                    of_judged,
                    _format_mean(rates.refusals),
                    refused_sessions,
                    _format_mean(rates.alarms),
                    f"{FOLDER.design.bank + rates.runs.sum(axis=1).mean():.0f}",
                )
            )
    page.table(
        "A drift: sessions of candidates that do nothing",
        f"{page.worlds:,} sessions of {CANDIDATES} candidates; each run is better than the one before by the drift, in "
        "sigma. Kept is of all candidates, and of those that were not refused. Where a trend is refused the baseline's "
        "runs are made anew. Without the refusal fresh runs of both arms in turn alone stand against the drift.",
        [
            "drift a run",
            "trend refused",
            "looks",
            "kept",
            "kept of judged",
            "refused",
            "sessions with one",
            "told",
            "runs",
        ],
        rows,
    )


def _format_rates(rates: SessionRates, index: tuple[np.ndarray, ...]) -> list[str]:
    parts = (rates.looks, rates.keeps, rates.refusals, rates.alarms)
    return [_format_mean(part[index]) for part in parts]


def _format_mean(hits_SN: np.ndarray) -> str:
    """A share over sessions; its error is that of their means, since candidates share a bank."""
    of_session = hits_SN.mean(axis=1) if hits_SN.ndim > 1 else hits_SN.astype(float)
    return f"{of_session.mean():.3f} ± {of_session.std() / np.sqrt(len(of_session)):.3f}"


def main() -> None:
    make_page(
        __file__,
        (spreads, power, drifts),
        title="What a try keeps where runs are not as its arithmetic assumes",
        text="The bank has five runs, a candidate eight at most; every third candidate brings a run of the baseline. "
        "One candidate's level is 0.05. A trend with the order of runs is refused at a level that is spent: "
        "`plumbline.stats.order_trend`.",
        flag="--sessions",
        worlds=1000,
        draws=lambda worlds: f"{worlds:,} sessions a row, {MORE * worlds:,} single candidates a row",
    )


if __name__ == "__main__":
    main()
