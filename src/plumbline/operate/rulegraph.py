"""`python -m plumbline.operate.rulegraph --out docs/rulegraph.svg`: the rules, as a picture.

Snakemake says what the graph is; networkx and matplotlib draw it, so that no other program is needed.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

import matplotlib
import networkx as nx

from plumbline.cli import PlumblineError, run

#: Rules that stand for a list of targets or a copy of one, and the rule that makes this picture.
HIDDEN = {"all", "smoke", "main_table", "main_figure", "rulegraph"}


def read(target: str) -> nx.DiGraph:
    """The rule graph of a target, as Snakemake prints it."""
    command = [sys.executable, "-m", "snakemake", target, "--rulegraph", "dot", "--quiet", "all", "--forceall"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise PlumblineError(f"snakemake --rulegraph failed: {done.stderr.strip()[-800:]}")
    names = dict(re.findall(r'^\s*(\d+)\[label = "([^"\\]+)', done.stdout, flags=re.M))
    graph = nx.DiGraph()
    graph.add_nodes_from(name for name in names.values() if name not in HIDDEN)
    for before, after in re.findall(r"^\s*(\d+) -> (\d+)", done.stdout, flags=re.M):
        if names[before] not in HIDDEN and names[after] not in HIDDEN:
            graph.add_edge(names[before], names[after])
    if not graph:
        raise PlumblineError("snakemake printed no rule graph")
    return nx.transitive_reduction(graph)


def columns(graph: nx.DiGraph) -> dict[str, int]:
    """Column of each rule: as late as what it feeds allows, so that arrows are short."""
    late: dict[str, int] = {}
    for name in reversed(list(nx.topological_sort(graph))):
        late[name] = min((late[after] - 1 for after in graph.successors(name)), default=0)
    first = min(late.values())
    return {name: column - first for name, column in late.items()}


def draw(graph: nx.DiGraph, path: Path) -> None:
    """Draw the graph from left to right; an arrow over several columns bends around what lies between."""
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "plumbline"
    from matplotlib import pyplot as plt
    from matplotlib.patches import FancyArrowPatch

    column = columns(graph)
    names_in = {index: sorted(name for name in column if column[name] == index) for index in set(column.values())}
    position = {
        name: (index, (len(names) - 1) / 2 - row) for index, names in names_in.items() for row, name in enumerate(names)
    }
    heights = [y for _, y in position.values()]
    size = (1.6 * len(names_in), 0.75 * (max(heights) - min(heights)) + 1.5)
    figure, axes = plt.subplots(figsize=size, layout="constrained")
    axes.set_xlim(-0.5, len(names_in) - 0.5)
    axes.set_ylim(min(heights) - 0.8, max(heights) + 0.8)
    axes.set_axis_off()
    box = {"boxstyle": "round,pad=0.45", "facecolor": "#e8f0f7", "edgecolor": "#30597c"}
    texts = {
        name: axes.text(x, y, name.replace("_", " "), ha="center", va="center", fontsize=10, bbox=box, zorder=3)
        for name, (x, y) in position.items()
    }
    figure.canvas.draw()
    for before, after in graph.edges:
        far = column[after] - column[before] > 1
        arrow = FancyArrowPatch(
            position[before],
            position[after],
            arrowstyle="-|>",
            mutation_scale=11,
            color="0.5",
            connectionstyle="arc3,rad=-0.28" if far else "arc3",
            patchA=texts[before].get_bbox_patch(),
            patchB=texts[after].get_bbox_patch(),
            shrinkA=2,
            shrinkB=2,
        )
        axes.add_patch(arrow)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    plt.close(figure)


def main() -> None:
    """Draw the rule graph of a target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", default="all")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    draw(read(arguments.target), arguments.out)


if __name__ == "__main__":
    run(main)
