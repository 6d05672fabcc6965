"""docs/audit-a-paper.md and audit-checks.md: files and commands do what they show, and no function is left out."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from plumbline.audit.paper.audit_file import ModelPart, TrainingPart
from plumbline.audit.paper.evaluate import TAKES, format_call


@pytest.fixture(scope="module")
def page(repository: Path) -> str:
    return (repository / "docs/audit-a-paper.md").read_text(encoding="utf-8")


def blocks(page: str, kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", page, flags=re.S)


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    args = shlex.split(command.removeprefix("$ "))
    assert args[0] == "plumbline"
    return subprocess.run([sys.executable, "-m", *args], cwd=folder, capture_output=True, text=True, timeout=60)


def test_the_tutorial_is_what_happens(page: str, tmp_path: Path) -> None:
    first, second = blocks(page, "console")
    (tmp_path / "paper.tex").write_text(blocks(page, "latex")[0])
    command, _, output = first.partition("\n")
    process = run(command, tmp_path)
    assert (process.returncode, process.stdout.strip()) == (10, output.strip())

    (tmp_path / "review/audit.toml").write_text("\n".join(blocks(page, "toml")))
    process = run(second.strip() + " --json", tmp_path)
    report = json.loads(process.stdout)
    assert {row["id"] for row in report["contradictions"]} == {"abstract", "deltas.Gated"}
    assert report["verdicts"]["mismatch"] == 2 and report["checks"] == {"told": 6, "found": 0}


def test_every_function_and_key_is_in_reference(repository: Path) -> None:
    page = (repository / "docs/audit-checks.md").read_text(encoding="utf-8")
    functions = "".join(row.split(" | ")[0] for row in re.findall(r"^\| `.*", page.partition("## Functions")[2], re.M))
    assert re.findall(r"`(\w+\(.*?\))`", functions) == [format_call(name) for name in TAKES]
    assert format_call("welch_p") == "welch_p(t, sd_a, sd_b, n)" and format_call("rank") == "rank(x, others[:])"
    parts = page.partition("## Cells")[0]
    for key in (*ModelPart.__struct_fields__, *TrainingPart.__struct_fields__):
        assert f"`{key}`" in parts, key


def test_a_check_of_the_reference_can_be_made(repository: Path, tmp_path: Path) -> None:
    page = (repository / "docs/audit-checks.md").read_text(encoding="utf-8")
    (tmp_path / "table1.csv").write_text("name,Avg.,Δ\nBaseline,48.3,--\nWide,49.1,+0.8\n")
    (tmp_path / "audit.toml").write_text(blocks(page, "toml")[0])
    process = run(f"$ plumbline audit {tmp_path} --told-only", tmp_path)
    assert process.returncode == 0 and "1 check: 1 told" in process.stdout
