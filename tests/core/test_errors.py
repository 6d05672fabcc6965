"""What a user reads of an error: a sentence, with every letter of a foreign name in it visible."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest

from plumbline.core.errors import PlumblineError, visible
from plumbline.operate import status
from plumbline.operate.console.job_display import JobDisplay


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("file\u202egnp.exe", "file\\u202egnp.exe"),  # reads exe.png
        ("soft\u200bpick", "soft\\u200bpick"),
        ("\x1b[2Jtable\r", "\\x1b[2Jtable\\r"),
        ("one\u2028line", "one\\u2028line"),
        ("\udcff.csv", "\\udcff.csv"),
        ("Läufe, 損失 🙂: Δ\n\tz", "Läufe, 損失 🙂: Δ\n\tz"),
    ],
)
def test_a_foreign_name_is_shown_as_it_is(name: str, expected: str) -> None:
    assert visible(name) == expected
    assert str(PlumblineError(f"there is no {name}")) == f"there is no {expected}"
    console = JobDisplay(io.StringIO())
    console.say(f"failed: {name}")
    assert console.stream.getvalue() == f"failed: {expected}\n"
    assert expected.partition("\n")[0] in status.render_rows(
        [{"preset": "demo", "run": f"x/y/{name}/s1", "state": "waiting", "step": 0, "steps": 1}]
    )


@pytest.mark.parametrize(
    "args", [("init", "/proc/x"), ("audit", "--study", "quack", "--out", "/dev/null/audit.csv")], ids=["init", "audit"]
)
def test_a_folder_that_cannot_be_is_a_sentence(repository: Path, args: tuple[str, ...]) -> None:
    process = subprocess.run([sys.executable, "-m", "plumbline", *args], cwd=repository, capture_output=True, text=True)
    folder = "/proc/x" if args[0] == "init" else "/dev/null"
    assert process.returncode == 1 and process.stderr.startswith(f"error: the folder {folder} cannot be made (")
    assert process.stderr.count("\n") == 1 and process.stdout == ""
