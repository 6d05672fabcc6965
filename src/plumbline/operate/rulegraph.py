"""Draws the rules and what flows between them as the Mermaid block of the README: text, the same on every machine.

python -m plumbline.operate.rulegraph                    print it
python -m plumbline.operate.rulegraph --replace-in docs/targets.md   replace the file's block
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

import networkx as nx

from plumbline.core.command_line import run
from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic_write_text
from plumbline.operate.console.rule_names import HIDDEN

BLOCK = re.compile(r"```mermaid\n.*?```\n", flags=re.S)


def read(target: str) -> nx.DiGraph:
    """Read the rule graph of a target, as Snakemake prints it, without arrows that follow from others.

    Raises:
        PlumblineError: Snakemake fails.
    """
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


def block(graph: nx.DiGraph) -> str:
    """Write the graph as a block of Markdown: arrows in the order in which the rules run, rules without any at the
    end.
    """
    order = list(nx.lexicographical_topological_sort(graph))
    arrows = [f"{before} --> {after}" for before in order for after in sorted(graph.successors(before))]
    alone = [name for name in order if graph.degree(name) == 0]
    return "\n".join(["```mermaid", "flowchart LR", *(f"    {line}" for line in arrows + alone), "```", ""])


def main() -> None:
    """Print the graph's block, or put it into the file that ``--replace-in`` names."""
    parser = argparse.ArgumentParser(
        prog="python -m plumbline.operate.rulegraph", description="The graph of the rules, as a Mermaid block."
    )
    parser.add_argument("--target", default="all")
    parser.add_argument("--replace-in", type=Path, metavar="FILE", help="replace the block of this file")
    arguments = parser.parse_args()
    text = block(read(arguments.target))
    if arguments.replace_in is None:
        print(text, end="")
        return
    page, found = BLOCK.subn(lambda _: text, arguments.replace_in.read_text(encoding="utf-8"))
    if found != 1:
        raise PlumblineError(f"{arguments.replace_in} has {found} blocks that begin with ```mermaid; one is needed")
    atomic_write_text(arguments.replace_in, page)


if __name__ == "__main__":
    run(main)
