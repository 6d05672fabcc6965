"""Makes up tables of papers: sound ones with what misleads, and the same with one number changed.

A sound table is computed from hidden, unrounded numbers and rounded to what is printed. It has relations (means,
differences, percentages, ratios, ranks, perplexities, p-values, counts), and columns that are named like one and are
none: a mean over tasks that the table does not show, a gain against another paper's baseline, a ratio of other things.
"""

from __future__ import annotations

import csv
import io
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import NormalDist

#: Row and column of a number that belongs to a relation, and by how much its last digit may move unseen.
Bound = tuple[int, int, float]

METHODS = (
    "Baseline", "QK-Norm", "Softpick", "Gated", "HyperNet", "SSMax", "Sandwich", "LayerScale", "GeGLU", "Hybrid",
    "AttnRes", "Sigmoid", "Diff", "Value", "Cap",
)  # fmt: skip
TASKS = ("PIQA", "ARC-e", "ARC-c", "HellaSwag", "WinoG", "BoolQ", "RACE", "MMLU", "LAMBADA", "SIQA")


@dataclass
class MadeUpTable:
    """A table as text, and which of its numbers a fault may be put into."""

    head: list[str]
    rows: list[list[str]]
    bound: list[Bound] = field(default_factory=list)
    marks: list[tuple[int, list[int]]] = field(default_factory=list)

    def text(self) -> str:
        """The table as CSV."""
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows([self.head, *self.rows])
        return out.getvalue()


def sound(draw: random.Random) -> MadeUpTable:
    """A table in which nothing contradicts."""
    kind: Callable[[random.Random], MadeUpTable] = draw.choice([scores, arms, costs, tests, counts, unrelated])
    return kind(draw)


def faulty(draw: random.Random) -> MadeUpTable:
    """A table in which one number of a relation is wrong, by three units of what the relation can show."""
    while True:
        table = sound(draw)
        if table.marks and draw.random() < 0.3:
            column, rows = draw.choice(table.marks)
            there, other = rows[0], draw.choice(rows[1:])
            table.rows[there][column] = table.rows[there][column].strip("*")
            table.rows[other][column] = f"**{table.rows[other][column]}**"
            return table
        if table.bound and len(table.rows) >= 5:
            row, column, least = draw.choice(table.bound)
            cell = table.rows[row][column]
            number = cell.strip("*_%x")
            digits = len(number.partition(".")[2])
            moved = float(number) + draw.choice((-1, 1)) * max(3, draw.randint(3, 30)) * least
            if table.head[column] == "p" and not 0 <= moved <= 1:
                continue
            changed = f"{moved:.{digits}f}"
            table.rows[row][column] = cell.replace(number, changed)
            return table


def rows_of(draw: random.Random, least: int = 3, most: int = 15) -> list[str]:
    return list(METHODS[: draw.randint(least, most)])


def scores(draw: random.Random) -> MadeUpTable:
    """Methods by tasks, with a mean, a difference to the baseline, a rank, the best in bold."""
    names, tasks, digits = rows_of(draw), list(TASKS)[: draw.randint(3, 9)], draw.choice((1, 2))
    unit = 10.0**-digits
    true = [[draw.uniform(30, 70) for _ in tasks] for _ in names]
    hidden = [[draw.uniform(30, 70) for _ in range(3)] for _ in names]
    honest = draw.random() < 0.75
    means = [
        sum(row + ([] if honest else other)) / (len(row) + (0 if honest else 3)) for row, other in zip(true, hidden)
    ]
    head, columns = ["Method", *tasks], [[f"{row[n]:.{digits}f}" for row in true] for n in range(len(tasks))]
    table = MadeUpTable(head, [])
    if draw.random() < 0.8:
        head.append(draw.choice(("Avg.", "Average", "Mean", "Overall")))
        columns.append([f"{mean:.{digits}f}" for mean in means])
        if honest:
            table.bound += [(n, len(head) - 1, unit) for n in range(len(names))]
        if draw.random() < 0.6:
            head.append(draw.choice(("Δ", "Gain", "Diff. to baseline", "Improvement")))
            base = means[0] if draw.random() < 0.7 else draw.uniform(40, 60)
            columns.append([f"{mean - base:+.{digits}f}" for mean in means])
            if base == means[0]:
                table.bound += [(n, len(head) - 1, unit) for n in range(1, len(names))]
        elif draw.random() < 0.5:
            head.append("Rank")
            # Of the means as printed, which is what a reader can rank.
            printed = [float(text) for text in columns[-1]]
            columns.append([str(1 + sum(other > value for other in printed)) for value in printed])
            if len(set(printed)) == len(printed):
                table.bound += [(n, len(head) - 1, 1) for n in range(len(names))]
    style = draw.random()
    if style < 0.7 and len(names) >= 4:
        chosen = range(len(tasks)) if draw.random() < 0.8 else ()
        ours = draw.randrange(len(names))
        for n in chosen:
            values = [float(text) for text in columns[n]]
            best = values.index(max(values)) if style < 0.55 else ours
            if style < 0.55:
                ranked = sorted(range(len(names)), key=lambda row: -values[row])
                if len(chosen) >= 5 and values[ranked[0]] > values[ranked[1]]:
                    table.marks.append((n + 1, ranked))
            columns[n][best] = f"**{columns[n][best]}**"
    table.rows = [[name, *(column[n] for column in columns)] for n, name in enumerate(names)]
    return table


def arms(draw: random.Random) -> MadeUpTable:
    """Tasks by control and treatment, with differences or percentages; a mean of all at the end."""
    tasks, digits = list(TASKS)[: draw.randint(3, 10)], draw.choice((1, 2, 3))
    unit = 10.0**-digits
    a, b = ([draw.uniform(20, 80) for _ in tasks] for _ in range(2))
    with_mean = draw.random() < 0.6
    if with_mean:
        a, b = [*a, sum(a) / len(a)], [*b, sum(b) / len(b)]
    names = [*tasks, *(["Average"] if with_mean else [])]
    head, columns = ["Task", "Control", "Ours"], [[f"{x:.{digits}f}" for x in a], [f"{x:.{digits}f}" for x in b]]
    kind = draw.choice(("difference", "percent", "ratio", "other"))
    if kind == "difference":
        head.append(draw.choice(("Δ", "Difference", "Change")))
        columns.append([f"{y - x:.{digits}f}" for x, y in zip(a, b)])
    elif kind == "percent":
        head.append(draw.choice(("Improvement (%)", "Rel. change", "Gain %")))
        columns.append([f"{100 * (y / x - 1):.1f}" + draw.choice(("", "%")) for x, y in zip(a, b)])
        unit = 0.1 + 100 * unit / 20
    elif kind == "ratio":
        head.append(draw.choice(("Ratio", "Speedup")))
        columns.append([f"{y / x:.2f}x" for x, y in zip(a, b)])
        unit = 0.01 + 4 * unit / 20
    else:
        head.append(draw.choice(("Gain", "Ratio", "Rel. error (%)")))
        columns.append([f"{draw.uniform(-5, 5):.{digits}f}" for _ in a])
    table = MadeUpTable(head, [[name, *(column[n] for column in columns)] for n, name in enumerate(names)])
    if kind != "other":
        table.bound += [(n, 3, unit) for n in range(len(tasks))]
    return table


def costs(draw: random.Random) -> MadeUpTable:
    """Losses with perplexities; parts with their total; times with a speedup over the baseline's."""
    names = rows_of(draw)
    head, columns = ["Model"], []
    table = MadeUpTable(head, [])
    if draw.random() < 0.7:
        loss = [draw.uniform(2.2, 3.6) for _ in names]
        head += ["Val loss", "PPL"]
        columns += [[f"{x:.4f}" for x in loss], [f"{math.exp(x):.2f}" for x in loss]]
        table.bound += [(n, 2, 0.01 + 0.00005 * 40) for n in range(len(names))]
    if draw.random() < 0.6:
        parts = [[draw.uniform(5, 200) for _ in names] for _ in range(draw.randint(2, 4))]
        honest = draw.random() < 0.7
        rest = [0.0 if honest else draw.uniform(3, 40) for _ in names]
        head += [*("Embedding (M)", "Attention (M)", "FFN (M)", "Norm (M)")[: len(parts)], "Total (M)"]
        columns += [[f"{x:.1f}" for x in part] for part in parts]
        columns.append([f"{sum(part[n] for part in parts) + rest[n]:.1f}" for n in range(len(names))])
        if honest:
            table.bound += [(n, len(head) - 1, 0.1 * (len(parts) + 1)) for n in range(len(names))]
    if not columns or draw.random() < 0.5:
        time = [draw.uniform(50, 500) for _ in names]
        head += ["Time (ms)", "Speedup"]
        columns += [[f"{x:.1f}" for x in time], [f"{time[0] / x:.2f}x" for x in time]]
        table.bound += [(n, len(head) - 1, 0.02 + 0.05 * 0.2) for n in range(1, len(names))]
    head.append("Steps")
    columns.append([str(draw.randrange(1000, 90000)) for _ in names])
    table.rows = [[name, *(column[n] for column in columns)] for n, name in enumerate(names)]
    return table


def tests(draw: random.Random) -> MadeUpTable:
    """z statistics with their p-values."""
    names, kind = rows_of(draw, 4), draw.choice(("two", "bonf", "one", "other"))
    z = [draw.gauss(0.5, 1.5) for _ in names]
    law = NormalDist()
    p = [2 * law.cdf(-abs(x)) for x in z]
    if kind == "bonf":
        p = [min(1.0, value * len(z)) for value in p]
    elif kind == "one":
        p = [law.cdf(-x) for x in z]
    elif kind == "other":
        p = [draw.random() for _ in z]
    head = ["Method", "z", "p"]
    table = MadeUpTable(head, [[name, f"{x:.2f}", f"{y:.4f}"] for name, x, y in zip(names, z, p)])
    if kind != "other":
        table.bound += [(n, 2, 0.01 * len(names) if kind == "bonf" else 0.01) for n in range(len(names)) if p[n] < 0.5]
    return table


def counts(draw: random.Random) -> MadeUpTable:
    """Accuracies of so many items each."""
    names = list(TASKS)[: draw.randint(4, 10)]
    n = [draw.randint(30, 400) for _ in names]
    honest = draw.random() < 0.7
    share = [draw.randint(1, m) / m if honest else draw.random() for m in n]
    table = MadeUpTable(
        ["Task", "n", "Accuracy (%)", "Length"],
        [[name, str(m), f"{100 * x:.2f}", f"{draw.uniform(10, 99):.1f}"] for name, m, x in zip(names, n, share)],
    )
    return table


def unrelated(draw: random.Random) -> MadeUpTable:
    """Numbers that have nothing to do with each other, under names that say they have."""
    names = rows_of(draw, 2)
    heads = draw.sample(
        ["Avg. length", "Gain (dB)", "Total heads", "Rel. error", "Mean age", "Layers", "LR", "Δ loss", "Width",
         "Ratio", "Share %", "Overall rank", "p", "n", "Loss", "Score", "F1", "Time", "Change", "x"], draw.randint(3, 9)
    )  # fmt: skip
    columns = []
    for _ in heads:
        digits, low = draw.choice((0, 0, 1, 2, 3)), draw.choice((-5, 0, 0, 10))
        scale = draw.choice((1, 4, 12, 100, 1000))
        few = [draw.uniform(low, low + scale) for _ in range(draw.choice((2, 3, 100)))]
        columns.append([f"{draw.choice(few):.{digits}f}" for _ in names])
    return MadeUpTable(["Name", *heads], [[name, *(column[n] for column in columns)] for n, name in enumerate(names)])
