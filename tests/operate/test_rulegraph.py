"""The picture of the rules is text, and the same wherever it is made."""

from __future__ import annotations

import sys
from pathlib import Path

import networkx as nx
import pytest

from plumbline.core.errors import PlumblineError
from plumbline.operate import rulegraph
from tests import run_in_process

EDGES = [("tokenize", "pack"), ("documents", "tokenize"), ("fetch", "documents"), ("documents", "items")]
BLOCK = """\
```mermaid
flowchart LR
    documents --> items
    documents --> tokenize
    fetch --> documents
    tokenize --> pack
    audit
```
"""


def graph(edges: list[tuple[str, str]]) -> nx.DiGraph:
    found = nx.DiGraph()
    found.add_node("audit")
    found.add_edges_from(edges)
    return found


def test_the_block_does_not_depend_on_the_order_in_which_snakemake_names_rules() -> None:
    assert sorted(rulegraph.block(graph(EDGES)).splitlines()) == sorted(BLOCK.splitlines())
    assert rulegraph.block(graph(EDGES)) == rulegraph.block(graph(EDGES[::-1]))


def test_it_replaces_the_one_block_of_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    monkeypatch.setattr(rulegraph, "read", lambda target: graph(EDGES))
    monkeypatch.setattr(sys, "argv", ["rulegraph", "--replace-in", str(page)])
    page.write_text("Before.\n\n```mermaid\nflowchart LR\n    old\n```\n\nAfter.\n")
    rulegraph.main()
    assert page.read_text() == f"Before.\n\n{rulegraph.block(graph(EDGES))}\nAfter.\n"
    page.write_text("No block.\n")
    with pytest.raises(PlumblineError, match="has 0 blocks"):
        rulegraph.main()


def test_the_page_on_targets_shows_the_rules_of_today(repository: Path) -> None:
    """To mend: python -m plumbline.operate.rulegraph --replace-in docs/targets.md."""
    done = run_in_process.run(rulegraph.main, cwd=repository)
    assert rulegraph.BLOCK.findall((repository / "docs/targets.md").read_text()) == [done.stdout]
