"""The picture of the rules is the same wherever it is made, and the one that is shown is of the rules of today."""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import networkx as nx
import pytest

from plumbline.operate import rulegraph
from tests import run_in_process

EDGES = [("tokenize", "pack"), ("documents", "tokenize"), ("fetch", "documents"), ("documents", "items")]


def graph(edges: list[tuple[str, str]]) -> nx.DiGraph:
    found = nx.DiGraph()
    found.add_node("audit")
    found.add_edges_from(edges)
    return found


def test_it_does_not_depend_on_the_order_in_which_snakemake_names_rules() -> None:
    assert rulegraph.picture(graph(EDGES)) == rulegraph.picture(graph(EDGES[::-1]))


def test_every_rule_stands_before_what_needs_it_and_those_without_arrows_last() -> None:
    assert rulegraph.columns(graph(EDGES)) == [["fetch"], ["documents"], ["tokenize"], ["items", "pack", "audit"]]


def test_it_has_a_box_for_each_rule_an_arrow_for_each_edge_and_says_them_in_words() -> None:
    root = ET.fromstring(rulegraph.picture(graph(EDGES)))
    name = {"svg": "http://www.w3.org/2000/svg"}
    assert {text.text for text in root.findall("svg:text", name)} == {name for edge in EDGES for name in edge} | {
        "audit"
    }
    assert len(root.findall("svg:path", name)) == len(EDGES)
    said = root.findtext("svg:desc", namespaces=name) or ""
    assert {tuple(one.split(" to ")) for one in said.split("; ")} == set(EDGES)


def test_no_arrow_crosses_a_box_of_the_rules_of_today(repository: Path) -> None:
    """An arrow over several columns goes at the height of where it leads: nothing else stands there."""
    root = ET.fromstring((repository / "docs/_assets/rules.svg").read_text())
    name = {"svg": "http://www.w3.org/2000/svg"}
    boxes = [
        tuple(int(box.attrib[key]) for key in ("x", "y", "width", "height")) for box in root.findall("svg:rect", name)
    ]
    for arrow in root.findall("svg:path", name):
        *_, start, level, end = map(int, re.findall(r"\d+", arrow.attrib["d"]))
        assert not [box for box in boxes if start < box[0] < end and box[1] < level < box[1] + box[3]]


def test_it_is_written_to_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rulegraph, "read", lambda target: graph(EDGES))
    monkeypatch.setattr(sys, "argv", ["rulegraph", "--out", str(tmp_path / "rules.svg")])
    rulegraph.main()
    assert (tmp_path / "rules.svg").read_text() == rulegraph.picture(graph(EDGES))


def test_the_page_on_targets_shows_the_rules_of_today(repository: Path) -> None:
    """To mend: python -m plumbline.operate.rulegraph --out docs/_assets/rules.svg."""
    done = run_in_process.run(rulegraph.main, cwd=repository)
    assert (repository / "docs/_assets/rules.svg").read_text() == done.stdout
    assert "](_assets/rules.svg)" in (repository / "docs/targets.md").read_text()
