"""What a bundle says of itself, and of the checkout that it is of."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from plumbline.bundle import description
from plumbline.core.errors import PlumblineError


def commit_folder(folder: Path) -> str:
    """A repository of what is in a folder: its one commit."""
    git = ["git", "-C", str(folder), "-c", "user.name=t", "-c", "user.email=t@t"]
    for args in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "one"]):
        subprocess.run([*git, *args], check=True)
    return description.read_checkout(folder)[0] or ""


@pytest.mark.parametrize("origin", [{"commit": None}, {"commit": "ab" * 20, "edited": True}, {"commit": "x; rm -r ."}])
def test_another_format_of_no_commit_has_no_commands(origin: dict[str, Any]) -> None:
    with pytest.raises(PlumblineError, match=r"rebuild it .* no commit$"):
        description.parse_description(json.dumps({"format": "later", **origin}).encode(), "here")


def test_what_says_nothing_of_itself_is_refused() -> None:
    with pytest.raises(PlumblineError, match=r"^here: \S+ .* what is in it"):
        description.parse_description(b'{"format": 2, "and": "nothing"}', "here")


def test_builds_of_one_version_count_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(description.metadata, "version", lambda name: "2.13.0+cu126")
    assert description.read_versions(("torch",)) == {"torch": "2.13.0"}


def test_a_checkout_says_its_commit_and_whether_it_was_edited(tmp_path: Path) -> None:
    assert description.read_checkout(tmp_path) == (None, None, None)
    (tmp_path / "src").mkdir()
    (tmp_path / "src/code.py").write_text("1\n")
    commit_folder(tmp_path)
    commit, date, is_edited = description.read_checkout(tmp_path)
    assert len(commit or "") == 40 and date and is_edited is False
    (tmp_path / "notes.md").write_text("no source")
    assert description.read_checkout(tmp_path)[2] is False
    (tmp_path / "src/more.py").write_text("2\n")
    assert description.read_checkout(tmp_path)[2] is True
