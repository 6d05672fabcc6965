"""`python -m plumbline.report.rulegraph --out docs/rulegraph.svg`: the rules and what flows between them, as a picture.

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

#: Rules that stand for nothing but a list of targets.
HIDDEN = {"all", "smoke"}


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


def draw(graph: nx.DiGraph, path: Path) -> None:
    """Draw the graph from left to right, one column a generation."""
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "plumbline"
    from matplotlib import pyplot as plt

    columns = list(nx.topological_generations(graph))
    position = {
        name: (column, (len(names) - 1) / 2 - row)
        for column, names in enumerate(columns)
        for row, name in enumerate(sorted(names))
    }
    figure, axes = plt.subplots(figsize=(1.55 * len(columns), 2.2), layout="constrained")
    for before, after in graph.edges:
        axes.annotate(
            "",
            xy=position[after],
            xytext=position[before],
            arrowprops={"arrowstyle": "-|>", "color": "0.55", "shrinkA": 26, "shrinkB": 28, "lw": 1.1},
        )
    for name, (x, y) in position.items():
        box = {"boxstyle": "round,pad=0.45", "facecolor": "#e8f0f7", "edgecolor": "#30597c"}
        axes.text(x, y, name.replace("_", " "), ha="center", va="center", fontsize=10, bbox=box)
    heights = [y for _, y in position.values()]
    axes.set_xlim(-0.5, len(columns) - 0.5)
    axes.set_ylim(min(heights) - 0.6, max(heights) + 0.6)
    axes.set_axis_off()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    plt.close(figure)


def main() -> None:
    """Draw the rule graph of a target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", default="results/table2.csv")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    draw(read(arguments.target), arguments.out)


if __name__ == "__main__":
    run(main)
