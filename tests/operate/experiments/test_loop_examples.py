"""What `examples/loop` gives to loops: its script, its hooks, its stand-in for autoresearch's trainer, as they are."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.try_by_exit_codes import DrivenSession, set_up
from plumbline.verdict.outcome import Outcome

#: The summary that autoresearch's train.py ends with, and what its program.md reads of it.
BLOCK = [
    *("val_bpb", "training_seconds", "total_seconds", "peak_vram_mb", "mfu_percent", "total_tokens_M", "num_steps"),
    *("num_params_M", "depth"),
]
Done = subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def loop(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Loop:
    return Loop(repository, tmp_path_factory.mktemp("loop"))


class Loop:
    """A repository with the stand-in trainer, as the page instructs to set it up, and commands as a loop gives them."""

    def __init__(self, repository: Path, root: Path) -> None:
        self.folder, self.files = root / "there", repository / "examples/loop"
        self.environment = set_up(self.folder, "[decide]\nbaseline_runs = 2\nmax_runs = 4\n")

    def call(self, command: str, stdin: str = "") -> Done:
        setup = {"cwd": self.folder, "env": self.environment, "capture_output": True, "text": True}
        return subprocess.run(["sh", "-c", command], input=stdin, **setup)  # type: ignore[call-overload,no-any-return]

    def change(self, entry: str) -> None:
        script = self.folder / "train.py"
        script.write_text(script.read_text().replace("CHANGES = [", f"CHANGES = [{entry}, "))


def test_a_loop_is_driven_by_exit_codes_and_keeps_what_is_real(loop: Loop) -> None:
    decide = f"sh {loop.files}/decide.sh"
    loop.change("0.2")
    process = loop.call(f"{decide} 'much better' --trust")
    assert process.returncode == Outcome.KEEP.exit_code, process.stderr
    assert "CHANGES = [0.2, ]" in loop.call("git show HEAD:train.py").stdout
    loop.change("-0.2")
    assert loop.call(f"{decide} 'much worse'").returncode == Outcome.DISCARD.exit_code
    loop.change("1 / 0")
    assert loop.call(f"{decide} 'a slip'").returncode == Outcome.CRASHED.exit_code
    assert loop.call("git diff HEAD -- train.py").stdout == ""  # both were taken back
    assert loop.call(f"{decide} 'no change'").returncode == 1
    head, *rows = [line.split("\t") for line in (loop.folder / "results.tsv").read_text().splitlines()]
    assert head[:5] == ["commit", "val_bpb", "memory_gb", "status", "description"]
    assert [row[3:5] for row in rows] == [
        ["keep", "baseline"],
        ["keep", "much better"],
        ["discard", "much worse"],
        ["crash", "a slip"],
    ]


def test_what_is_taken_back_is_of_the_whole_repository(repository: Path, tmp_path: Path) -> None:
    for name in ("common/model.py", "proj/train.py", "bin/plumbline"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("#!/bin/sh\nexit $CODE\n")
    (tmp_path / "bin/plumbline").chmod(0o755)
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b")
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "start"]):
        subprocess.run([*git, *words], cwd=tmp_path, check=True)
    for code in (0, 10, 11, 12, 14, 1):
        for name in ("common/model.py", "proj/train.py"):
            (tmp_path / name).write_text("a change")
        subprocess.run(["git", "add", "common"], cwd=tmp_path, check=True)
        environment = {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "CODE": str(code)}
        decide = ["sh", repository / "examples/loop/decide.sh", "a change"]
        assert subprocess.run(decide, cwd=tmp_path / "proj", env=environment, check=False).returncode == code
        changed = subprocess.run(["git", "status", "--short"], cwd=tmp_path, capture_output=True, check=True).stdout
        assert bool(changed) == (code not in (10, 11, 12)), changed


def test_hooks_of_pi_autoresearch_block_an_undecided_keep(loop: Loop) -> None:
    (loop.folder / ".auto").mkdir()
    (loop.folder / ".gitignore").write_text(".auto/\n")
    loop.change("-0.2")
    measured = loop.call(f"sh {loop.files}/pi/measure.sh --trust")
    assert measured.returncode == 0 and re.search(r"^METRIC val_bpb=\d\.\d+$", measured.stdout, re.M), measured.stderr
    checked = loop.call(f"sh {loop.files}/pi/checks.sh")
    assert checked.returncode == 1 and checked.stderr.startswith("discard: ")
    entry = {"run": 6, "status": "keep", "metric": 1.0, "description": "x", "asi": {}}
    event = json.dumps({"event": "after", "cwd": str(loop.folder), "run_entry": entry, "session": {}})
    assert loop.call(f"sh {loop.files}/pi/after.sh", event).stdout.startswith("Logged otherwise than decided")
    (loop.folder / "plumbline.toml").write_text("[run]\n")
    failed = loop.call(f"sh {loop.files}/pi/measure.sh")
    assert failed.returncode == 13 and not failed.stdout and "nothing is known" in failed.stderr
    assert "no decision" in loop.call(f"sh {loop.files}/pi/after.sh", event).stderr
    loop.call("git checkout -- .")


def test_the_benchmark_writes_as_it_goes(tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(repository / "benchmarks")
    loop_rules = importlib.import_module("loop_rules")
    monkeypatch.setattr(loop_rules.LoopTables, "world", lambda tables, *world: tables.parts.append(f"world {world}"))

    def drive_one(*_: object) -> Iterator[DrivenSession]:
        yield DrivenSession(codes=[0], changes=[0.02], runs=7, seconds=1.0)
        raise KeyboardInterrupt

    monkeypatch.setattr(loop_rules, "drive", drive_one)
    monkeypatch.setattr(sys, "argv", ["loop_rules.py", "--out", str(tmp_path / "out.md")])
    with pytest.raises(KeyboardInterrupt):
        loop_rules.main()
    text = (tmp_path / "out.md").read_text()
    assert text.count("world (") == 4 and "1 of 60 proposals, not finished" in text


def test_sixty_ideas_are_drawn_by_three_rules(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(repository / "examples/loop")
    side_by_side = importlib.import_module("side_by_side")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["side_by_side.py", "--gain", "3", "--sessions", "1"])
    side_by_side.main()
    rows = {cells[1].strip(): cells for line in capsys.readouterr().out.splitlines() if (cells := line.split("|"))}
    greedy, screen = ([float(cell) for cell in rows[name][2:6]] for name in ("greedy", "screen"))
    assert greedy[0] == 61 and screen[0] == 64 + 5 + 10
    assert screen[2:] == [6, 18] and greedy[3] <= 18, "what is real of that gain is in the set"
    assert "<svg" in (tmp_path / "side_by_side.svg").read_text()


def test_the_stand_in_prints_the_block_that_autoresearch_reads(loop: Loop) -> None:
    printed = loop.call("python train.py").stdout
    assert [line.partition(":")[0] for line in printed.partition("---\n")[2].splitlines()] == BLOCK


def test_each_page_says_what_to_do_on_every_exit_code(repository: Path) -> None:
    for name in ("program.md", "SKILL.md"):
        rows = re.findall(r"^(?:\| |- )(\d.*?)(?:\||:)", (repository / "examples/loop" / name).read_text(), re.M)
        codes = {int(code) for row in rows for code in re.findall(r"\b\d+\b", row)}
        assert codes == {*(outcome.exit_code for outcome in Outcome), 1, 2, 75, 130}, name
