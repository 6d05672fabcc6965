"""docs/audit-a-paper.md: its files and commands do what the page shows."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def page(repository: Path) -> str:
    return (repository / "docs/audit-a-paper.md").read_text(encoding="utf-8")


def blocks(page: str, kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", page, flags=re.S)


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    words = shlex.split(command.removeprefix("$ "))
    assert words[0] == "plumbline"
    return subprocess.run([sys.executable, "-m", *words], cwd=folder, capture_output=True, text=True, timeout=60)


def test_the_tutorial_is_what_happens(page: str, repository: Path, tmp_path: Path) -> None:
    first, second, example = blocks(page, "console")
    (tmp_path / "paper.tex").write_text(blocks(page, "latex")[0])
    command, _, shown = first.partition("\n")
    done = run(command, tmp_path)
    assert (done.returncode, done.stdout.strip()) == (10, shown.strip())

    (tmp_path / "review/audit.toml").write_text("\n".join(blocks(page, "toml")))
    done = run(second.strip() + " --json", tmp_path)
    told = json.loads(done.stdout)
    assert {row["id"] for row in told["contradictions"]} == {"abstract", "deltas.Gated"}
    assert told["verdicts"]["mismatch"] == 2 and told["checks"] == {"told": 10, "found": 0}

    (tmp_path / "examples").symlink_to(repository / "examples")
    done = run(example.strip(), tmp_path)
    assert done.returncode == 10 and (tmp_path / "mine/transfer.md").is_file()


def test_it_is_short(page: str) -> None:
    assert len(page.split()) < 1_200
