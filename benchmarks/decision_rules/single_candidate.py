"""One candidate at a time: by all rules, under all laws of noise, and by the rules that are in use."""

from __future__ import annotations

import math
from dataclasses import replace

from decision_rules.rates_page import RatesPage, rng_of
from decision_rules.rules_and_noise_laws import (
    CANDIDATES,
    DEFAULT,
    GAINS,
    WORLDS,
    DecisionRule,
    NoiseLaw,
    draw_greedy_keeps,
    green,
    in_use,
    list_unannounced_looks,
    ours,
    stopping,
)


def one_candidate(page: RatesPage) -> None:
    for title, text, rules in (
        (
            "One candidate, normal noise",
            "Five runs of the baseline and eight of the candidate at most, one-sided level 0.05, unless said. Kept is "
            "the share of candidates of that true gain; runs are the candidate's, on average.",
            ours(),
        ),
        ("Looks that were not announced", "As above.", list_unannounced_looks()),
    ):
        rows = []
        for rule in rules:
            ends = [rule.run(rng_of(rule.name, gain), NoiseLaw(), page.worlds, gain) for gain in GAINS]
            shares = [page.share(ends[0][0], rule.promise, rule.name)]
            shares += [page.share(kept_W) for kept_W, _ in ends[1:]]
            promise = "none" if rule.promise is None else f"{rule.promise:g}"
            rows.append((rule.name, promise, *shares, " / ".join(f"{runs.mean():.1f}" for _, runs in ends)))
        page.table(
            title, text, ["rule", "promise", *(f"{gain:g} sigma kept" for gain in GAINS), "runs at 0 / 1 / 2 / 3"], rows
        )
    rows = []
    for rule in ours():
        if rule.name in ("stopping rule", "pairs"):
            for shared in (0.0, 0.5, 0.9):
                shares = [
                    page.share(rule.run(rng_of(rule.name, shared, gain), NoiseLaw(shared=shared), page.worlds, gain)[0])
                    for gain in GAINS
                ]
                rows.append((rule.name, f"{shared:g}", *shares))
    page.table(
        "Arms that share their seed's noise",
        "The share of a run's variance that both arms have in common at one seed. Pairs are worth their price where "
        "it is large. Without pairs the same seeds in both arms make the rule blunter than it says.",
        ["rule", "shared", *(f"{gain:g} sigma kept" for gain in GAINS)],
        rows,
    )


def other_noise(page: RatesPage) -> None:
    rows = []
    for rule in [*ours(), *list_unannounced_looks()[:2]]:
        row = []
        for name, world in WORLDS.items():
            if name != "normal":
                is_kept, _ = rule.run(rng_of(rule.name, name), world, page.worlds)
                row.append(page.share(is_kept, rule.promise, rule.name, name))
        rows.append((rule.name, f"{rule.promise:g}", *row))
    page.table(
        "Noise of other shapes: nulls kept",
        "The promise is for normal runs of one spread. All laws are scaled to a spread of 1. Outliers lie 5 off, up or "
        "down; spoilt runs 5 below. A candidate twice as wide spreads by 2.",
        ["rule", "promise", *(name for name in WORLDS if name != "normal")],
        rows,
    )


def rules_in_use(page: RatesPage) -> None:
    sessions = max(2000, page.worlds // 10)
    rows = []
    for rule in [
        *in_use(),
        *(rule for rule in ours() if rule.name in ("stopping rule", "`make quick`: bank 3, at most 3")),
    ]:
        ends = [rule.run(rng_of("use", rule.name, gain), NoiseLaw(), page.worlds, gain) for gain in GAINS]
        many = rule.session(rng_of("session", rule.name), sessions, CANDIDATES)
        rows.append(
            (
                rule.name,
                *(page.share(keeps) for keeps, _ in ends),
                f"{ends[0][1].mean():.1f}",
                page.share(many > 0),
                f"{many.mean():.2f}",
            )
        )
    split = replace(DEFAULT, alpha=0.05 / CANDIDATES)
    rule = DecisionRule(name="stopping rule, `fwer` over 40", promise=0.05, design=split, decide=stopping)
    ends = [rule.run(rng_of("use", rule.name, gain), NoiseLaw(), page.worlds, gain) for gain in GAINS]
    many = rule.session(rng_of("session", rule.name), sessions, CANDIDATES)
    rows.append(
        (
            rule.name,
            *(page.share(keeps) for keeps, _ in ends),
            f"{ends[0][1].mean():.1f}",
            page.share(many > 0, 0.05, "fwer over 40, one bank"),
            f"{many.mean():.2f}",
        )
    )
    page.table(
        "Rules in use, beside ours",
        f"Normal noise. A session is {CANDIDATES} candidates that do nothing, all against the same runs of the "
        "baseline; the baseline does not move.",
        [
            "rule",
            *(f"{gain:g} sigma kept" for gain in GAINS),
            "runs at 0",
            "session keeps one",
            "nulls kept in a session",
        ],
        rows,
    )
    keeps, gains = draw_greedy_keeps(rng_of("greedy"), 50, sessions)
    after = [f"{page.share(green(rng_of('green', tries), tries, sessions))} after {tries}" for tries in (3, 10, 50)]
    page.parts.append(
        f"A loop that keeps what is better than the best so far: of 50 nulls it keeps {keeps.mean():.2f} ± "
        f"{keeps.std() / math.sqrt(sessions):.2f}, and shows a gain of {gains.mean():.2f} sigma. A best gain of two "
        f"median distances or more (pi-autoresearch) is there in {', '.join(after)} nulls."
    )
