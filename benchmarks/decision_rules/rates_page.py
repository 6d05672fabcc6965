"""The page of tables, and whether what is promised is kept on it."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np
from tabulate import tabulate

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

    def table(self, title: str, words: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        grid = tabulate(rows, headers=head, tablefmt="pipe", disable_numparse=True)
        self.parts.append(f"## {title}\n\n{words}\n\n{grid}")

    def share(self, hits: np.ndarray, promise: float | None = None, label: str = "", world: str = "normal") -> str:
        """A share with its error; where a promise is given it is noted next to it, by the world it was found in."""
        if promise is not None:
            self.note(label, float(np.mean(hits)), share_error(hits), promise, world)
        return f"{np.mean(hits):.3f} ± {share_error(hits):.3f}"

    def note(self, label: str, value: float, error: float, promise: float, world: str = "normal") -> None:
        """Hold a figure against what is promised, which is so of normal worlds alone."""
        (self.promised if world == "normal" else self.beyond).append((label, value, error, promise, world))


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
