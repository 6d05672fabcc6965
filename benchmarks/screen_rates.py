"""Sixty ideas in one design, where the truth is known, next to a greedy loop and `plumbline try` at as many runs.

    python benchmarks/screen_rates.py                    # two minutes of one quiet core; screen_rates.md
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
#: A look after the first half of the design, at half of the level each.
HALFWAY = (
    IdeaWorld(name="1 sigma, 60 ideas, up to 128 runs", gain=1.0, runs=128, halfway=True),
    IdeaWorld(name="2 sigma, 60 ideas, up to 128 runs", runs=128, halfway=True),
)
#: Sessions of a row that go through the course itself, run by run.
MOST_COURSES = 200
HEAD = ["world", "chosen: real / nothing / worse", "false share", "confirmed", "true gain", "runs", "a run"]
HEAD += ["greedy: true gain", "its keeps", "a run", "`try`: true gain", "its keeps", "a run"]


def plain(page: RatesPage) -> None:
    write_worlds(page, "Independent ideas", PLAIN, "Ideas add up, and runs are normal and spread alike.")


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


def halfway(page: RatesPage) -> None:
    text = (
        "A look after the first half, which is a design by itself, and one after all runs; each has half of the level. "
        "The first ends the design where something is chosen and no other effect may still be as large."
    )
    write_worlds(page, "A look halfway", HALFWAY, text)


def computed(page: RatesPage) -> None:
    page.parts.append(f"## How it is computed\n\n{COMPUTED}")


def write_worlds(page: RatesPage, title: str, worlds: tuple[IdeaWorld, ...], text: str) -> None:
    rows = []
    for world in worlds:
        truth = world.draw(min(page.worlds, MOST_COURSES) if world.needs_course else page.worlds)
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
        (plain, endless, other, interacting, halfway, computed),
        title="Many ideas in one design, where the truth is known",
        text=WORDS,
        flag="--sessions",
        worlds=2000,
        draws=lambda sessions: f"{sessions:,} sessions a row, {MOST_COURSES} where runs crash or end early",
    )


WORDS = """\
The same ideas, with the same truth, are judged three ways. `plumbline screen`: five runs of the baseline, a design in
which each run has about half of the ideas, Benjamini and Hochberg at .10, then what was chosen against the baseline,
five fresh runs each, one t test at .025. Greedy: keep what looks better than the best run so far, going through the
ideas again and again, up to as many runs as the screen took. `try`: `plumbline try`, session `each`, one idea after the
other, up to as many runs. A tenth of the ideas gain; the others do nothing, unless it is said. Chosen: how many that
gain by themselves, do nothing, or harm. False share: of what was chosen, those that do nothing or harm, on average over
sessions, 0 where nothing was. Confirmed: sessions whose set passes its fresh runs. True gain: of the confirmed set, 0
where it is not confirmed; of greedy and `try`, of what the session has kept by then, confirmed or not. A run: true gain
by run.

**What they say.** With independent ideas a screen ends with more confirmed true gain than greedy has in truth, at every
size and number of ideas: 4.3 sigma against 1.6 (ideas of 1 sigma, 78 runs), 11.9 against 8.1 (2 sigma), 18.0 against
16.7 (3 sigma), 24.0 against 14.8 (120 ideas). What it keeps for nothing stays below the promised tenth, where greedy
keeps two or more that do nothing for each that is real. `try` needs more runs than it has here: of 60 ideas it reaches
some twenty.

**Where it does worse.** Where ideas are free and never run out, and gain 3 sigma, greedy makes more of a run (.26
against .23, below; at 2 sigma .12 against .15): it has a new idea for every run, and a screen has none left. The false
share is above the tenth where residuals are not the noise of a run: where single ideas widen their runs (.21), where
every run is better than the one before by a twentieth of sigma (.16; by a fiftieth it holds), and where ideas do not
add up: .25 to .49, since an effect is then an average over the others that half of each interaction is part of, and a
design that is not folded over has the other interactions fall on it too. Folding over takes that second part away (.42
to .27 with 20 ideas). What is confirmed holds all the same: the set gains, if not each of it by itself
(`--leave-one-out` says which). Greedy, which finds what gains next to what it has, ends higher where 20 ideas interact
strongly (6.1 against 4.5 in truth) and where it has 128 runs for 60 (16.2 against 14.0); in 64 runs the screen does
(13.8 against 11.5). Where nothing gains by itself and pairs do, a quarter to two fifths of screens confirm a set, and
that is true of it. Where runs crash by chance the screen makes them again (86 runs instead of 79); three ideas of sixty
that always diverge make seven of eight runs crash, are found by runs of their own, and cost 30 runs.

**A look halfway** costs half of the level: at 2 sigma it ends five of six designs of 128 runs after 64 (90 runs in all,
.133 of a sigma a run, for .084 without), at 1 sigma hardly any."""

COMPUTED = """\
**Design.** N runs of F ideas, each with or without; a run is a row of 0 and 1, one for each idea, with a 1 before it
for the baseline. Where two levels are all there is and no pair is forbidden, the rows are a full factorial, a fraction
in which no two interactions share a column, a design of Plackett and Burman followed by its mirror (every 0 a 1 and the
reverse), or a design of Plackett and Burman alone: the first that is clear of interactions at efficiency .95 or more,
else the most efficient; below .985 a D-optimal one is tried as well. The efficiency is the share of its runs that an
orthogonal design would need. Which idea has which column, which of its levels is 1, and the order of the runs are
drawn. Rows beyond such a design, and everything with more levels or with forbidden pairs, are chosen to make the
determinant of the information (the rows' matrix, transposed, times itself) as large as changes of one level in one run
can (D-optimal).

**Effects.** Values are taken so that up is better. The effects are the numbers, one for the baseline and one for each
level but a factor's first, by which the squares of what is left of the values sum to the least. In an orthogonal design
an effect is the mean of the runs with the idea less that of those without. A run without a value (crashed means without
a value) is left out of all sums; an effect that the runs do not tell apart is not given. The standard error of an
effect is sigma times the root of its place on the diagonal of the inverse information: 2 over the root of N in an
orthogonal design. Its 90 % interval is two-sided, by Student's t with sigma's degrees of freedom.

**Sigma.** The residual variance is the sum of squares over its degrees of freedom: the number of runs with values less
that of the parameters which these tell (the rank of their rows). The baseline's five runs have a variance of their own,
with four. Sigma squared is the mean of the two, weighted by their degrees of freedom, which add up; unless the ratio of
the residual variance to the baseline's has a p of .01 or less by the F law of these two numbers, when it is the
residual variance alone. Where no degree of freedom is left it is the baseline's alone.

**Choice.** An effect over its standard error is compared with Student's t with sigma's degrees of freedom, to one side:
p is the chance of as large a ratio or larger. Benjamini and Hochberg: sort the p-values of all m effects; the i-th
smallest times m over i, but never more than that of any larger p, is the corrected p; an idea is selected if it is at
most .10. Bonferroni: p times m. An effect that the runs do not tell apart is one of the m, with p = 1. Of a factor's
selected levels, and of a forbidden pair, the one with the largest effect is chosen; a level that was dropped never is.

**Proof.** Five runs of all chosen ideas together and five of the baseline, in turn, all with new seeds. The difference
of the two means over its standard error (the pooled variance of both, eight degrees of freedom, times a fifth plus a
fifth) is compared with Student's t; the set is confirmed if p, to one side, is at most .025. No run of the design is
in it. Where k runs of the set have no value, the k worst of the baseline's are left out too, and p is at most .025 over
1 + k: else an idea that crashes where it is bad is confirmed in 6 to 12 % of cases, by the luck of what is left.

**Halfway.** After the first half, the same with half of the level, by the runs that have a value. The design ends there
if something is chosen and the upper end of the interval of every other effect is below the smallest effect that is
chosen. Effects that are selected too and lose to another level of their factor, or to the other of a forbidden pair, do
not hinder that, nor does a level that was dropped; where any other effect is not told, the design goes on. Else the
whole design is judged with the other half of the level.

**Crashes.** After 16 runs, 32, 64 and so on, and at the end. A pair of levels that is in every crashed run, and whose
every run crashed, is forbidden, if it is the only such pair and Fisher's exact p of that times the number of pairs is
at most .03. Else, for each level, Fisher's exact p that so many of the crashes or more fall on its runs; the smallest,
times the number of levels, drops the level if it is at most .03. The runs of what was named are set aside, and the rest
is tested again, a pair first; so are at the next test the runs of all that is known. They are set aside for this test
only: what has a value stays in the sums. A factor's first levels do not count, neither as what is tested nor in the
number of levels or pairs, which stays the same after a drop. If more than half of all runs crashed and nothing is
named, every level that no finished run has is run alone, provided that these are at most half of all or that every row
is made: those that crash then are dropped. Rows to come, and lost rows again, are made with the baseline's level in the
place of a dropped one, or of the one or the other of a pair in turn. Other lost runs, unless they are most of all, are
made again, as D-optimal additions, up to three times over and up to twice the design's runs in all.

**Interactions.** For each pair of levels of different factors, the product of their columns less what the effects
explain of it. The slope of the residuals on that is what both gain beyond their sum; its error is from the residual sum
of squares less what it explains, with one degree of freedom less. Two-sided p, times the number of distinct directions
that are left once the effects are taken out (pairs of one direction, of either sign, count once); at most .05 is told.

**Half-normal plot.** Effects over their unit errors, by size; the i-th of m is drawn over the normal quantile of one
half plus (i less one half) over 2 m. Lenth's pseudo error is 1.5 times the median size of those below 2.5 times (1.5
times the median of all). His margin is Student's t at .975 with m over 3 degrees of freedom times that, the
simultaneous one t at one half of 1 + .95 to the power of one over m. Neither decides."""

if __name__ == "__main__":
    main()
