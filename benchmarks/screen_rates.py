"""Sixty ideas in one design, where the truth is known, next to a greedy loop and `plumbline try` at as many runs.

    python benchmarks/screen_rates.py                    # screen_rates.md
    python benchmarks/screen_rates.py --sessions 100 --out /tmp/quick.md

Nothing is trained: runs are drawn, with a fixed seed; the same ideas, with the same truth, are judged three ways. Gains
are in sigma, the spread of one run.
"""

from __future__ import annotations

import numpy as np
from decision_rules.idea_worlds import IdeaEnds, IdeaWorld, run_greedy, run_try, screen_ideas
from decision_rules.rates_page import RatesPage, make_page
from decision_rules.rules_and_noise_laws import heavy

#: The table of the design of `plumbline screen`, with further numbers of ideas.
PLAIN = (
    IdeaWorld(name="1 sigma, 60 ideas, 64 runs", gain=1.0),
    IdeaWorld(name="1 sigma, 60 ideas, 128 runs, folded over", gain=1.0, runs=128),
    IdeaWorld(name="2 sigma, 60 ideas, 64 runs"),
    IdeaWorld(name="3 sigma, 60 ideas, 64 runs", gain=3.0),
    IdeaWorld(name="2 sigma, 20 ideas, 32 runs", ideas=20, runs=32),
    IdeaWorld(name="half of the others lose 1 sigma, 60 ideas, 64 runs", worse=0.5),
    IdeaWorld(name="nothing helps, 60 ideas, 64 runs", gain=0.0),
    IdeaWorld(name="1 sigma, 120 ideas, 128 runs", gain=1.0, ideas=120, runs=128),
    IdeaWorld(name="2 sigma, 120 ideas, 128 runs", ideas=120, runs=128),
)
#: Runs that are not as the arithmetic assumes.
OTHER = (
    IdeaWorld(name="six ideas widen their runs", wide=6),
    IdeaWorld(name="t with 3 degrees of freedom", law=heavy),
    IdeaWorld(name="each run is better by .02", drift=0.02),
    IdeaWorld(name="each run is better by .05", drift=0.05),
    IdeaWorld(name="10 % of runs crash", crash=0.1),
    IdeaWorld(name="three ideas diverge", diverge=3),
)
#: Ideas that do not add up.
INTERACTING = (
    IdeaWorld(name="20 ideas, 32 runs, sd .5", ideas=20, runs=32, spread=0.5),
    IdeaWorld(name="20 ideas, 32 runs, sd 1", ideas=20, runs=32, spread=1.0),
    IdeaWorld(name="20 ideas, 40 runs (folded over), sd 1", ideas=20, runs=40, spread=1.0),
    IdeaWorld(name="60 ideas, 64 runs, sd .5", spread=0.5),
    IdeaWorld(name="60 ideas, 64 runs, sd 1", spread=1.0),
    IdeaWorld(name="60 ideas, 128 runs (folded over), sd 1", runs=128, spread=1.0),
    IdeaWorld(name="nothing helps, 20 ideas, 32 runs, sd 1", ideas=20, runs=32, gain=0.0, spread=1.0),
    IdeaWorld(name="nothing helps, 20 ideas, 32 runs, sd 2", ideas=20, runs=32, gain=0.0, spread=2.0),
)
#: Sessions of a row whose runs crash: they go through the course itself, run by run.
MOST_COURSES = 200
HEAD = ["world", "chosen: real / nothing / worse", "false share", "confirmed", "true gain", "runs", "a run"]
HEAD += ["greedy: true gain", "its keeps", "a run", "`try`: true gain", "its keeps", "a run"]


def plain(page: RatesPage) -> None:
    write_worlds(page, "Independent ideas", PLAIN, "")


def other(page: RatesPage) -> None:
    text = "Sixty ideas, six of which gain 2 sigma, in 64 runs."
    write_worlds(page, "Runs that are not as assumed", OTHER, text)


def interacting(page: RatesPage) -> None:
    text = (
        "As many pairs of ideas as there are ideas gain together more or less than their sum, by a normal of this "
        "standard deviation; a tenth gains 2 sigma by itself, unless nothing does. A keep that does nothing by itself "
        "may gain next to others: the true gain is that of the whole set."
    )
    write_worlds(page, "Ideas that do not add up", INTERACTING, text)


def endless(page: RatesPage) -> None:
    rows = []
    for gain, runs in ((1.0, 78), (2.0, 79), (3.0, 79)):
        world = IdeaWorld(name=f"{gain:g} sigma, ideas never run out", gain=gain, ideas=80)
        truth = world.draw(page.worlds)
        greedy = run_greedy(truth, np.full(page.worlds, float(runs)))
        rows.append([world.name, write_gain(greedy), write_keeps(greedy), f"{runs}", write_rate(greedy)])
    text = "A greedy loop that has a new idea for every run, one in ten of them real; what it keeps is not confirmed."
    page.table("Where ideas are free", text, ["world", "true gain", "keeps", "runs", "a run"], rows)


def write_worlds(page: RatesPage, title: str, worlds: tuple[IdeaWorld, ...], text: str) -> None:
    rows = []
    for world in worlds:
        truth = world.draw(min(page.worlds, MOST_COURSES) if world.loses_runs else page.worlds)
        screened = screen_ideas(truth)
        rows.append(write_row(world, screened, run_greedy(truth, screened.runs_S), run_try(truth, screened.runs_S)))
        print(" | ".join(rows[-1]), flush=True)
    page.table(title, text, HEAD, rows)


def write_row(world: IdeaWorld, *ways: IdeaEnds) -> list[str]:
    screened = ways[0]
    share = f"{screened.false_S.mean():.3f}"
    cells = [world.name, write_keeps(screened), share, f"{screened.confirmed_S.mean():.2f}", write_gain(screened)]
    cells += [f"{screened.runs_S.mean():.0f}", write_rate(screened)]
    for ends in ways[1:]:
        cells += [write_gain(ends), write_keeps(ends), write_rate(ends)]
    return cells


def write_keeps(ends: IdeaEnds) -> str:
    return " / ".join(f"{number:.1f}" for number in ends.count())


def write_gain(ends: IdeaEnds) -> str:
    return f"{ends.true_S.mean():.2f} ± {ends.true_S.std() / np.sqrt(len(ends.true_S)):.2f}"


def write_rate(ends: IdeaEnds) -> str:
    return f"{ends.true_S.mean() / ends.runs_S.mean():.3f}"


def main() -> None:
    make_page(
        __file__,
        (plain, endless, other, interacting),
        title="Many ideas in one design, where the truth is known",
        text=WORDS,
        flag="--sessions",
        worlds=2000,
        draws=lambda sessions: f"{sessions:,} sessions a row",
    )


WORDS = """"""

if __name__ == "__main__":
    main()
