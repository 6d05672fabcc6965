"""The same 60 made-up ideas by three rules, side by side: what each has truly gained after how many runs.

    python examples/loop/side_by_side.py        # seconds; side_by_side.svg, and a table

Six of the ideas gain, the others do nothing; a run is a drawn number that spreads by 1 sigma, and gains add up. Greedy
keeps what beats the last kept run. `try` each runs an idea until it is decided, and again with fresh seeds. `screen`
runs all ideas in one design, and what it chose again with fresh seeds. Rules and designs are those of the package, and
nothing is trained.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from tabulate import tabulate

from plumbline.stats.fresh_runs import FRESH_LEVEL, p_of_fresh_runs
from plumbline.stats.sequential import SequentialDesign, boundary, statistic
from plumbline.verdict.decision.experiment import ArmRun
from plumbline.verdict.screen.screen_course import advance
from plumbline.verdict.screen.screen_design import WITH, Factor, make_design
from plumbline.verdict.screen.screen_runs import ScreenRun, Step
from plumbline.verdict.screen.screen_terms import ScreenTerms

IDEAS, REAL = 60, 6
#: Runs of the baseline that ideas are compared with, of an idea at most, and fresh ones of what is kept.
BANK, MOST, FRESH = 5, 8, 5
#: Runs of the screen's design.
RUNS = 64


@dataclass
class Session:
    """One rule at work on the ideas.

    Attributes:
        gains: what each idea truly does, in sigma.
        kept: the ideas that what is there now has.
        course: how many runs were made, and what is truly gained, from each change of that on.
    """

    gains: np.ndarray
    rng: np.random.Generator
    runs: int = 0
    kept: list[int] = field(default_factory=list)
    course: list[tuple[int, float]] = field(default_factory=lambda: [(0, 0.0)])

    def run(self, ideas: Sequence[int], times: int = 1) -> np.ndarray:
        """Make runs of what has these ideas; more is better."""
        self.runs += times
        return float(self.gains[list(ideas)].sum()) + self.rng.standard_normal(times)

    def keep(self, ideas: Sequence[int]) -> None:
        """Let what is there now have these ideas too."""
        self.kept += ideas
        self.course.append((self.runs, float(self.gains[self.kept].sum())))


def keep_greedily(session: Session) -> None:
    """Keep an idea where its one run beats the run that was kept last."""
    best = session.run([])[0]
    for idea in range(len(session.gains)):
        value = session.run([*session.kept, idea])[0]
        if value > best:
            best = value
            session.keep([idea])


def try_each(session: Session) -> None:
    """Run each idea until a look decides, and keep it where its fresh runs beat the baseline's fresh ones."""
    bank = session.run([], BANK)
    for idea in range(len(session.gains)):
        edges, values = boundary(SequentialDesign(bank=len(bank), most=MOST)), np.empty(0)
        for look in range(MOST):
            values = np.append(values, session.run([*session.kept, idea]))
            t = statistic(bank.tolist(), values.tolist(), higher=True).t
            if t <= edges.discard[look] or t >= edges.keep[look]:  # no look keeps after one run, whose edge is a NaN
                break
        if not t >= edges.keep[look]:
            continue
        theirs, fresh = session.run(session.kept, FRESH), session.run([*session.kept, idea], FRESH)
        confirmed = p_of_fresh_runs(theirs[None], fresh[None])[0] <= FRESH_LEVEL
        bank = fresh if confirmed else np.append(bank, theirs)
        session.keep([idea] if confirmed else [])


def screen(session: Session) -> None:
    """Run all ideas in one design, and what it chose again with fresh seeds against the baseline."""
    names = [f"idea {number}" for number in range(len(session.gains))]
    seed = int(session.rng.integers(2**31))
    terms = ScreenTerms(name="", baseline="", metric="gain", higher=True, runs=RUNS, fresh_runs=FRESH, first_seed=seed)
    design = make_design(list(map(Factor, names)), runs=RUNS, seed=seed)
    past, runs = session.run([], BANK), list[ScreenRun]()
    while isinstance(step := advance(terms, design, past.tolist(), runs), Step):
        for request in step.requests:
            ideas = [place for place, name in enumerate(names) if request.settings[name] == WITH]
            runs.append(ScreenRun(request, ArmRun(arm="", seed=request.seed, value=session.run(ideas)[0])))
    session.keep([names.index(name) for name, _ in step.chosen] if step.verdict.is_kept else [])


#: Name of a rule -> the rule, and its colour.
RULES: dict[str, tuple[Callable[[Session], None], str]] = {
    "greedy": (keep_greedily, "#E69F00"),
    "try each": (try_each, "#0072B2"),
    "screen": (screen, "#009E73"),
}


def follow(name: str, gain: float, number: int) -> Session:
    """Have a rule work on the ideas of a session, which are the same for each rule."""
    gains = np.zeros(IDEAS)
    gains[:REAL] = gain
    ideas, rng = np.random.default_rng([number, 0]), np.random.default_rng([number, list(RULES).index(name) + 1])
    session = Session(ideas.permutation(gains), rng)
    RULES[name][0](session)
    session.course.append((session.runs, session.course[-1][1]))
    return session


def average(sessions: Sequence[Session], most: int) -> np.ndarray:
    """The mean of what sessions have gained after each number of runs up to the most."""
    curves = []
    for session in sessions:
        runs, gained = np.array(session.course).T
        curves.append(gained[np.searchsorted(runs, np.arange(most + 1), side="right") - 1])
    return np.mean(curves, axis=0)


def draw(sessions: dict[str, list[Session]], gain: float, path: Path) -> None:
    """Draw the mean of each rule's sessions, and each session thinly."""
    most = max(session.runs for each in sessions.values() for session in each)
    with mpl.rc_context({"svg.hashsalt": "side by side", "font.size": 9}):
        figure, axes = plt.subplots(figsize=(7, 3.4), layout="constrained")
        for name, each in sessions.items():
            for session in each:
                axes.step(*np.array(session.course).T, where="post", color=RULES[name][1], linewidth=0.4, alpha=0.35)
            axes.step(np.arange(most + 1), average(each, most), where="post", color=RULES[name][1], label=name)
        axes.set(xlabel="runs", ylabel="true gain (sigma of a run)")
        axes.set_title(f"{IDEAS} ideas, of which {REAL} gain {gain:g} sigma: {len(each)} sessions, and their mean")
        axes.legend(frameon=False)
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)


def main() -> None:
    """Draw, and print how the rules end."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gain", type=float, default=1.0, help="of a real idea, in sigma of a run (default: 1)")
    parser.add_argument("--sessions", type=int, default=20, help="with other seeds each (default: 20)")
    parser.add_argument("--out", type=Path, default=Path("side_by_side.svg"), help="the picture")
    options = parser.parse_args()
    sessions = {name: [follow(name, options.gain, n) for n in range(options.sessions)] for name in RULES}
    draw(sessions, options.gain, options.out)
    rows = []
    for name, each in sessions.items():
        kept = [len(session.kept) for session in each]
        real = [int((session.gains[session.kept] > 0).sum()) for session in each]
        gained, runs = [session.course[-1][1] for session in each], [session.runs for session in each]
        means = [float(np.mean(numbers)) for numbers in (runs, kept, real, gained)]
        rows.append([name, *(f"{mean:.1f}" for mean in means), f"{means[3] / means[0]:.3f}"])
    head = ["rule", "runs", "kept", "of them real", "true gain", "a run"]
    print(tabulate(rows, headers=head, tablefmt="pipe", disable_numparse=True))


if __name__ == "__main__":
    main()
