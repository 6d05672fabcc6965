"""Draws the rules of the workflow and what flows between them, as docs/targets.md shows it.

python docs/_site/rules_picture.py      # writes docs/_assets/rules.svg, the same on every machine
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import networkx as nx

from plumbline.operate.console.rule_names import HIDDEN

ROOT = Path(__file__).resolve().parents[2]
PICTURE = ROOT / "docs" / "_assets" / "rules.svg"
#: A rule's box, and the distance from one to the next, in pixels.
BOX, STEP = (114, 36), (142, 50)
#: Readable on a white page and on a black one, since a site's own switch does not reach into a picture.
FILL, TEXT, LINE = "#3f51b5", "#ffffff", "#808895"


def read_rules() -> nx.DiGraph:
    """The rules that `all` needs, as Snakemake prints them, without arrows that follow from others."""
    command = [sys.executable, "-m", "snakemake", "all", "--rulegraph", "dot", "--quiet", "all", "--forceall"]
    printed = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    names = dict(re.findall(r'^\s*(\d+)\[label = "([^"\\]+)', printed, flags=re.M))
    graph = nx.DiGraph()
    graph.add_nodes_from(names.values())
    graph.add_edges_from((names[a], names[b]) for a, b in re.findall(r"^\s*(\d+) -> (\d+)", printed, flags=re.M))
    graph.remove_nodes_from(HIDDEN)
    return nx.transitive_reduction(graph)


def columns(graph: nx.DiGraph) -> list[list[str]]:
    """Each rule one column before the first that needs it, in the order of the alphabet, those without arrows last."""
    to_the_end: dict[str, int] = {}
    for name in reversed(list(nx.lexicographical_topological_sort(graph))):
        to_the_end[name] = max((to_the_end[after] + 1 for after in graph.successors(name)), default=0)
    ordered = sorted(to_the_end, key=lambda name: (graph.degree(name) == 0, name))
    return [
        [name for name in ordered if to_the_end[name] == steps] for steps in range(max(to_the_end.values()), -1, -1)
    ]


def draw(graph: nx.DiGraph) -> str:
    """The graph from left to right: a box for each rule, an arrow for what it gives to another."""
    (wide, high), (right, down), placed = BOX, STEP, columns(graph)
    rows = max(map(len, placed))
    # What is alone in its column stands in the middle of the picture.
    left_top = {
        name: (n * right + 2, (rows - len(column)) * down // 2 + row * down + 2)
        for n, column in enumerate(placed)
        for row, name in enumerate(column)
    }
    arrows = sorted(graph.edges)
    flow = "; ".join(f"{before} to {after}" for before, after in arrows)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {(len(placed) - 1) * right + wide + 4} '
        f'{(rows - 1) * down + high + 4}" role="img" font-family="system-ui, sans-serif" font-size="14">',
        f"<title>The rules of the workflow</title><desc>{flow}</desc>",
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 0 8 4 0 8z" fill="{LINE}"/></marker></defs>',
    ]
    for before, after in arrows:
        x, y = left_top[before][0] + wide, left_top[before][1] + high // 2
        end, level = left_top[after][0], left_top[after][1] + high // 2
        turn = x + right - wide  # to the height of where it leads between two columns, so that it crosses no box
        curve = f"M{x} {y}C{(x + turn) // 2} {y} {(x + turn) // 2} {level} {turn} {level}H{end}"
        lines.append(f'<path d="{curve}" fill="none" stroke="{LINE}" stroke-width="1.5" marker-end="url(#head)"/>')
    for name, (x, y) in sorted(left_top.items()):
        lines.append(f'<rect x="{x}" y="{y}" width="{wide}" height="{high}" rx="5" fill="{FILL}"/>')
        middle = f'x="{x + wide // 2}" y="{y + high // 2}"'
        lines.append(f'<text {middle} fill="{TEXT}" text-anchor="middle" dominant-baseline="central">{name}</text>')
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(draw(read_rules()), encoding="utf-8")
