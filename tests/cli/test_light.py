"""What the wheel alone brings judges numbers and audits papers; a verb that needs more says so in one sentence."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from plumbline.cli import VERBS
from plumbline.core.pipeline_packages import INSTALL


def light(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Runs a command as where the extra `[pipeline]` is not installed."""
    here = [sys.executable, "-m", "tests.cli.light", *words]
    return subprocess.run(here, cwd=cwd, capture_output=True, text=True, timeout=120)


def test_the_audit_of_five_papers_is_the_same(repository: Path, tmp_path: Path) -> None:
    pages = {}
    for name, words in (("light", ("tests.cli.light", "plumbline")), ("whole", ("plumbline",))):
        out = tmp_path / f"{name}.csv"
        command = [sys.executable, "-m", *words, "audit", "--out", str(out)]
        done = subprocess.run(command, cwd=repository, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        pages[name] = out.read_bytes(), out.with_suffix(".md").read_bytes()
    assert pages["light"] == pages["whole"] and pages["light"][0].count(b"\n") > 600


@pytest.mark.parametrize("words", [("--help",), ("ls", "studies"), ("status",)], ids=" ".join)
def test_it_starts(repository: Path, words: tuple[str, ...]) -> None:
    done = light("plumbline", *words, cwd=repository)
    assert done.returncode == 0 and done.stdout and not done.stderr


def test_what_needs_more_says_so_in_one_sentence(repository: Path, tmp_path: Path) -> None:
    done = light("plumbline", "train", "transfer/base/qknorm/s42", "--out", str(tmp_path / "run"), cwd=repository)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"error: plumbline train needs torch, which is not installed: {INSTALL}\n"
    done = light("plumbline", "init", str(tmp_path / "project"), cwd=repository)
    assert done.returncode == 0 and f"\n  {INSTALL} " in done.stdout
    done = light("plumbline", "table", "transfer", "table2", cwd=repository)
    assert done.returncode == 1 and done.stderr.startswith("error: plumbline table needs ")
    assert INSTALL in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
def test_no_verb_answers_with_a_traceback(verb: str, repository: Path) -> None:
    done = light("plumbline", verb, "--help", cwd=repository)
    assert "Traceback" not in done.stderr
    assert done.returncode == 0 or done.stderr.startswith(f"error: plumbline {verb} needs ")


def test_python_is_told_too(repository: Path) -> None:
    code = (
        "from tests.cli.light import hide; hide()\n"
        "from plumbline import api; api.load_study('transfer', 'smoke'); api.pretrain"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=repository, capture_output=True, text=True)
    assert f"plumbline.api.pretrain needs torch, which is not installed: {INSTALL}" in done.stderr.splitlines()[-1]
