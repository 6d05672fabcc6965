"""The page of tables, the command line that makes it, and whether what is promised is kept on it."""

from __future__ import annotations

import argparse
import math
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

import numpy as np
from machine_description import describe
from tabulate import tabulate

from plumbline.core.files import atomic_write_text

#: Above a promise by more standard errors than this: exceeded. Of some 150 figures one has 3 by chance.
SURE = 3.5
#: What it is, the value, its error, the promise, and the world it was found in.
Figure = tuple[str, float, float, float, str]


@dataclass
class RatesPage:
    """The tables, and every share that was promised, to be compared with its promise at the end."""

    worlds: int
    parts: list[str] = field(default_factory=list)
    promised: list[Figure] = field(default_factory=list)
    beyond: list[Figure] = field(default_factory=list)

    def table(self, title: str, text: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        grid = tabulate(rows, headers=head, tablefmt="pipe", disable_numparse=True)
        self.parts.append(f"## {title}\n\n{text}\n\n{grid}")

    def share(self, hits: np.ndarray, promise: float | None = None, label: str = "", world: str = "normal") -> str:
        """A share with its error; where a promise is given it is noted next to it, by the world it was found in."""
        if promise is not None:
            self.note(label, float(np.mean(hits)), share_error(hits), promise, world)
        return f"{np.mean(hits):.3f} ± {share_error(hits):.3f}"

    def note(self, label: str, value: float, error: float, promise: float, world: str = "normal") -> None:
        """Hold a figure against what is promised, which is so of normal worlds alone."""
        (self.promised if world == "normal" else self.beyond).append((label, value, error, promise, world))


def make_page(
    script: str,
    sections: Sequence[Callable[[RatesPage], None]],
    *,
    title: str,
    text: str,
    flag: str,
    worlds: int,
    draws: Callable[[int], str] = lambda worlds: "",
) -> None:
    """Run a script's sections as its command line asks, and write their page.

    Args:
        script: the script's file; the page lies next to it, unless `--out` names another place.
        title, text: the page's head, and what is said below it.
        flag: the option that says how many worlds each row has, by default so many `worlds`.
        draws: what was drawn, by the number of worlds; the CPU time is stated with it.
    """
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument(flag, dest="worlds", type=int, default=worlds, help=f"of each row (default {worlds})")
    parser.add_argument("--out", type=Path, default=Path(script).with_suffix(".md"))
    options = parser.parse_args()
    page, start = RatesPage(options.worlds), time.process_time()
    for section in sections:
        began = time.process_time()
        section(page)
        print(f"{section.__name__}: {time.process_time() - began:.0f} s", flush=True)
    effort = draws(options.worlds)
    spent = f"{effort}, {time.process_time() - start:.0f} s of CPU time. " if effort else ""
    about = f"{describe(with_torch=False)}. {spent}`python benchmarks/{Path(script).name}`"
    head = "\n\n".join(filter(None, (f"# {title}", about, text)))
    atomic_write_text(options.out, "\n\n".join([head, *page.parts]) + "\n")


def share_error(hits: np.ndarray) -> float:
    """Standard error of a share; of one in all worlds where it is 0 or 1."""
    worlds = len(hits)
    value = min(max(float(np.mean(hits)), 1 / worlds), 1 - 1 / worlds)
    return math.sqrt(value * (1 - value) / worlds)


def rng_of(*names: object) -> np.random.Generator:
    """A stream of its own for every row, the same in every run."""
    return np.random.default_rng([zlib.crc32(str(name).encode()) for name in names])


def promises(page: RatesPage) -> None:
    broken = [row for row in page.promised if excess(row) > SURE]
    nearest = max(page.promised, key=excess)
    count = f"{len(broken)} of them lie" if broken else "None of them lies"
    summary = (
        f"{len(page.promised)} shares of this page are promised: errors of single candidates and of sessions, either "
        f"side of the intervals, false shares of keeps. {count} above its "
        f"promise by more than {SURE} standard errors. The "
        f"nearest to it: {nearest[0]}, {nearest[1]:.4f} ± {nearest[2]:.4f} where {nearest[3]:g} is promised."
    )
    lines = [f"- exceeded: {row[0]}: {row[1]:.4f} ± {row[2]:.4f}, promised {row[3]:g}" for row in broken]
    page.parts.append("\n".join(["## Are the promises kept?", "", summary, *lines]))
    rows = []
    for world, its in groupby(sorted(page.beyond, key=lambda row: row[4]), key=lambda row: row[4]):
        every = list(its)
        over = sorted((row for row in every if excess(row) > SURE), key=lambda row: row[3] - row[1])
        for row in over[:4]:
            rows.append((world, f"{len(over)} of {len(every)}", row[0], f"{row[1]:.3f} ± {row[2]:.3f}", f"{row[3]:g}"))
    page.table(
        "Where nothing is promised, by how much is the level exceeded?",
        "Of the figures of this page with another law of noise: how many lie above the "
        f"level that normal runs have by more than {SURE} standard errors, and up to four of them, the worst first.",
        ["world", "above the level", "the worst", "found", "level"],
        rows,
    )


def excess(row: Figure) -> float:
    """By how many standard errors a share lies above its promise."""
    return (row[1] - row[3]) / row[2]
