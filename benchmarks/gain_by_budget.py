"""How often does `plumbline try --at` say each word, where the truth is known; and what does it say of a real trainer?

    python benchmarks/gain_by_budget.py                         # five minutes on two cores; gain_by_budget.md
    python benchmarks/gain_by_budget.py --sessions 200 --skip-trainer --out /tmp/quick.md

Sessions are drawn, with a fixed seed. Gains are in sigma, the spread of one run at 1x. The real trainer is
`short_runs_trainer.py`, with a higher peak of its schedule, which helps short runs.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from decision_rules.rates_page import RatesPage, rng_of
from machine_description import describe
from scipy import special

from plumbline.core.files import atomic_write_text
from plumbline.stats.gain_by_budget import GainCourse, measure_gains, weigh_slope
from plumbline.verdict.decision.experiment import MOST

ALPHA, DOUBLINGS = 0.05, (0.0, 1.0, 2.0)
TRAINER = Path(__file__).with_name("short_runs_trainer.py")
SETTINGS = """\
[run]
command = "python train.py {flags}"
budget = "--steps {250}"
size = "one hidden layer of 96, 250 steps"
[metric]
pattern = 'val_loss (\\S+)'
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class World:
    """Gains at 1x, 2x and 4x, and the spread of a run of each arm there, all in sigma."""

    name: str
    gains: tuple[float, float, float]
    baseline: tuple[float, float, float] = (1.0, 1.0, 1.0)
    candidate: tuple[float, float, float] = (1.0, 1.0, 1.0)

    @property
    def true_words(self) -> set[GainCourse]:
        """The words that are true of it: of a gain that falls slowly two are, and then *holds* is told first."""
        first, last = self.gains[0], self.gains[-1]
        slope = float(weigh_slope(DOUBLINGS) @ np.array(self.gains))
        answers = {GainCourse.HOLDS} if min(last, last + slope) > 0 else set()
        answers |= {GainCourse.SHRINKS} if first > 0 > slope else set()
        return answers | ({GainCourse.TURNS} if first > 0 > last else set())


ALIKE, WIDER, NARROWER, TWICE = (1.0, 1.0, 1.0), (1.0, 1.41, 2.0), (1.0, 0.71, 0.5), (2.0, 2.0, 2.0)
WORLDS = (
    World(name="2 sigma at each", gains=(2, 2, 2)),
    World(name="2 sigma at each, noise grows", gains=(2, 2, 2), baseline=WIDER, candidate=WIDER),
    World(name="2 sigma at each, noise falls", gains=(2, 2, 2), baseline=NARROWER, candidate=NARROWER),
    World(name="comes with the budget", gains=(0, 1, 2)),
    World(name="halves with each doubling", gains=(2, 1, 0.5)),
    World(name="halves, noise falls", gains=(2, 1, 0.5), baseline=NARROWER, candidate=NARROWER),
    World(name="turns", gains=(2, 0, -2)),
    World(name="does nothing", gains=(0, 0, 0)),
    World(name="does nothing, noise grows", gains=(0, 0, 0), baseline=WIDER, candidate=WIDER),
    World(name="does nothing, twice as wide", gains=(0, 0, 0), candidate=TWICE),
    World(name="does nothing, wider with the budget", gains=(0, 0, 0), candidate=(1.0, 1.5, 3.0)),
    World(name="gone at twice the largest", gains=(6, 4, 2)),
    World(name="none at the largest, rising", gains=(-4, -2, 0)),
    World(name="large at each", gains=(20, 20, 20), candidate=(1.0, 1.5, 3.0)),
    World(name="none at the largest, falling", gains=(8, 4, 0)),
)


def draw_words(world: World, runs: int, sessions: int) -> Counter[GainCourse]:
    """Draw sessions of a world, and count what is said of them."""
    rng = rng_of("gain by budget", world.name, runs)
    base_SBN, own_SBN = rng.standard_normal((2, sessions, len(DOUBLINGS), runs))
    base_SBN = base_SBN * np.array(world.baseline)[:, None]
    own_SBN = own_SBN * np.array(world.candidate)[:, None] + np.array(world.gains)[:, None]
    counts = Counter[GainCourse]()
    for base_BN, own_BN in zip(base_SBN, own_SBN):
        arms = {at: (base_BN[place].tolist(), own_BN[place].tolist()) for place, at in enumerate(DOUBLINGS)}
        counts[measure_gains(arms, higher=True).find_course(ALPHA)] += 1
    return counts


def each_word(page: RatesPage, sessions: int) -> None:
    """How often each word is told in each world, and the words that are not true of it."""
    rows = []
    for world in WORLDS:
        words, true = draw_words(world, MOST, sessions), world.true_words
        cells = []
        for word in (GainCourse.HOLDS, GainCourse.SHRINKS, GainCourse.TURNS):
            share = words[word] / sessions
            cells.append(f"{share:.3f}" if word in true else f"{share:.3f} (wrong)")
            if word not in true:
                error = math.sqrt(max(share * (1 - share), 1 / sessions) / sessions)
                page.note(f"*{word}* of `{world.name}`", share, error, ALPHA)
        gains = ", ".join(f"{gain:g}" for gain in world.gains)
        rows.append((world.name, gains, *cells, f"{words[GainCourse.NOT_DECIDED] / sessions:.3f}"))
    page.table(
        "How often each word is told",
        f"{sessions:,} sessions a row, normal noise, {MOST} runs of each arm at each of 1x, 2x and 4x, each part at "
        f"{ALPHA:g}, one-sided; the standard error of a share is at most {0.5 / math.sqrt(sessions):.3f}. A word that "
        "is not true of a world is marked. The last four worlds put words to their edges: a gain ends at exactly 0, by "
        "the slope or at the largest budget, and a large one keeps its size while the candidate spreads wider.",
        ["world", "gains at 1x, 2x, 4x", "holds", "shrinks", "turns", "not decided"],
        rows,
    )


def number_of_runs(page: RatesPage, sessions: int) -> None:
    """How often the true word is told with other numbers of runs."""
    rows = []
    by_name = {world.name: world for world in WORLDS}
    right = (
        ("2 sigma at each", GainCourse.HOLDS),
        ("halves with each doubling", GainCourse.SHRINKS),
        ("turns", GainCourse.TURNS),
    )
    for runs in (3, 5, MOST, 12):
        shares = [draw_words(by_name[name], runs, sessions)[word] / sessions for name, word in right]
        rows.append((str(runs), f"{2 * runs * 7}", *(f"{share:.3f}" for share in shares)))
    page.table(
        "How many runs",
        "How often the true word is told by so many runs of each arm at each budget (--max-runs); the cost of 1x, 2x "
        "and 4x is counted in runs of 1x.",
        ["runs", "cost", *(f"{name}: {word}" for name, word in right)],
        rows,
    )


def weights(page: RatesPage) -> None:
    """The error of the test of the slope, by weights that are fixed and by weights that are estimated."""
    rows, x = [], np.array(DOUBLINGS)
    for world in (WORLDS[0], WORLDS[1], WORLDS[2], World(name="", gains=(2, 2, 2), candidate=TWICE)):
        cells = []
        for runs in (5, MOST):
            rng = rng_of("weights", world.name, runs)
            draws = rng.standard_normal((2, page.worlds, 3, runs))
            base_WBN, own_WBN = (
                draws[0] * np.array(world.baseline)[:, None],
                draws[1] * np.array(world.candidate)[:, None],
            )
            gain_WB = own_WBN.mean(axis=2) - base_WBN.mean(axis=2)
            both_WBA = np.stack([base_WBN.var(axis=2, ddof=1), own_WBN.var(axis=2, ddof=1)], axis=2) / runs
            weight_WB = 1 / both_WBA.sum(axis=2)
            centred_WB = x - ((weight_WB * x).sum(axis=1) / weight_WB.sum(axis=1))[:, None]
            estimated_WB = weight_WB * centred_WB
            estimated_WB /= (estimated_WB * centred_WB).sum(axis=1)[:, None]
            for used_WB in (np.broadcast_to(weigh_slope(DOUBLINGS), gain_WB.shape), estimated_WB):
                parts_WBA = used_WB[:, :, None] ** 2 * both_WBA
                variance_W = parts_WBA.sum(axis=(1, 2))
                df_W = variance_W**2 / ((parts_WBA**2).sum(axis=(1, 2)) / (runs - 1))
                p_W = special.stdtr(df_W, (used_WB * gain_WB).sum(axis=1) / np.sqrt(variance_W))
                cells.append(page.share(p_W <= ALPHA))
        rows.append((world.name.partition(", ")[2] or ("arms of 1 and 2 sigma" if not world.name else "alike"), *cells))
    page.table(
        "Why the weights of the slope are fixed",
        f"{page.worlds:,} tests a cell of a slope that is 0, at {ALPHA:g}, one-sided: by least squares, whose weights "
        "are fixed, and by weights from the estimated variances, with Satterthwaite's degrees of freedom both.",
        ["noise", "fixed, 5 runs", "estimated, 5 runs", f"fixed, {MOST} runs", f"estimated, {MOST} runs"],
        rows,
    )


def real_trainer(page: RatesPage) -> None:
    """`plumbline try --at` of a higher peak of the schedule, with a trainer of seconds."""
    command = ["plumbline", "try", "-m", "twice the peak", "--at", "1x,4x,16x", "--", "--lr", "0.016"]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "trainer"
        folder.mkdir()
        shutil.copy(TRAINER, folder / "train.py")
        (folder / "plumbline.toml").write_text(SETTINGS)
        for line in (
            ["init", "-q"],
            ["add", "train.py"],
            ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"],
        ):
            subprocess.run(["git", *line], cwd=folder, check=True)
        program = [sys.executable, "-m", "plumbline", *command[1:2], "--trust", *command[2:]]
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # so that `python` is this one
        environment = os.environ | {"XDG_STATE_HOME": place, "PATH": path, "OMP_NUM_THREADS": "1"}
        began = time.perf_counter()
        done = subprocess.run(program, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)
        minutes = (time.perf_counter() - began) / 60
    output = done.stdout.strip().rpartition("\n")[0].replace("\u2500", "-")  # without the path of its page
    command_line = " ".join(f"'{word}'" if " " in word else word for word in command)
    page.parts.append(
        f'## A real trainer\n\n`{TRAINER.name}` with `budget = "--steps {{250}}"`, and the peak of its learning rate '
        f"doubled: {minutes:.1f} minutes, exit code {done.returncode}.\n\n```console\n$ {command_line}\n{output}\n```"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Simulates tries at several budgets, and makes one")
    parser.add_argument("--sessions", type=int, default=2000)
    parser.add_argument("--worlds", type=int, default=40_000)
    parser.add_argument("--skip-trainer", action="store_true")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    arguments = parser.parse_args()
    page = RatesPage(arguments.worlds)
    each_word(page, arguments.sessions)
    number_of_runs(page, arguments.sessions)
    weights(page)
    if not arguments.skip_trainer:
        real_trainer(page)
    worst = max(page.promised, key=lambda figure: figure[1])
    about = f"{describe(with_torch=False)}. `python benchmarks/gain_by_budget.py`"
    promise = (
        f"The wrong word that is told most often: {worst[0]}, {worst[1]:.3f} ± {worst[2]:.3f}; {ALPHA:g} is promised."
    )
    head = f"# A gain at other budgets, where the truth is known\n\n{about}\n\n{promise}"
    atomic_write_text(arguments.out, "\n\n".join([head, *page.parts]) + "\n")
    print(arguments.out)


if __name__ == "__main__":
    np.seterr(all="raise", under="ignore")
    main()
