"""What docs/gate.md states: its commands run, a rules file has its parts, its exit codes are those of verdicts."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from benchmarks import gate_faults
from plumbline.verdict.board import __main__ as board
from plumbline.verdict.gate import __main__ as gate
from plumbline.verdict.gate.rules import Rules, list_known_rules
from plumbline.verdict.outcome import Outcome
from tests.run_in_process import run

VERBS = {"gate": gate.main, "board": board.main}


@pytest.fixture
def page(repository: Path) -> str:
    return (repository / "docs/gate.md").read_text(encoding="utf-8")


def test_every_command_of_the_page_does_what_it_says(page: str, repository: Path, tmp_path: Path) -> None:
    """In a folder with a board where the page has Track 3's, by the rules of that board, and our own records."""
    rng, folder = np.random.default_rng(3), tmp_path / "records/track_3_optimization"
    folder.mkdir(parents=True)
    runs = gate_faults.make_runs(rng, 5)
    gate_faults.write_table(folder, runs, f"{gate_faults.mean_at(runs, 3000):.4f}", 3000, 5, rng)
    (tmp_path / "track3").write_text(gate_faults.TABLE_RULES)
    own = tmp_path / "records/mine"
    own.mkdir()
    (own / "record.json").write_text((next((repository / "records").glob("*/record.json"))).read_text())
    commands = re.findall(r"^\$ plumbline (.*)$", page, re.MULTILINE)
    assert len(commands) == 5
    for command in commands:
        verb, *options = shlex.split(command)
        process = run(VERBS[verb], *options, cwd=tmp_path)
        assert process.returncode == 0, process.stderr
    assert {path.name for path in (tmp_path / "board").iterdir()} == set(
        re.findall(r"`(index\.html|progress\.svg|card\.svg|board\.json|index\.fingerprint\.json)`", page)
    )


def test_its_parts_are_those_of_a_rules_file_and_its_codes_those_of_verdicts(page: str) -> None:
    parts = set(re.findall(r"`\[(\w+)\]`", page.partition("## The rules file")[2].partition("\n## ")[0]))
    assert parts >= {"table", "log", "same"} and parts <= set(Rules.__struct_fields__)
    exit_codes = {label: int(code) for code, label in re.findall(r"^\| (\d+) \| ([a-z ]+): ", page, re.MULTILINE)}
    of_a_try = (Outcome.IMPLAUSIBLE, Outcome.AS_GOOD, Outcome.HOLDS, Outcome.SHRINKS, Outcome.TURNS)
    assert exit_codes == {outcome: outcome.exit_code for outcome in Outcome if outcome not in of_a_try}
    assert all(f"`{name}`" in page for name in list_known_rules())
