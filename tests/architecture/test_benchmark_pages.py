"""Pages of benchmarks that several machines measure, and sides of a benchmark that are not there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def _benchmarks_by_name(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(repository / "benchmarks")


def test_a_machine_replaces_its_own_section(tmp_path: Path) -> None:
    from machine_description import write_section

    page = tmp_path / "page.md"
    page.write_text(
        "# Page\n\nWhat it says.\n\n## Maker A, 2026-01-02\n\n| 1 |\n\n## Maker B, with AMX, 2026-01-03\n\n| 2 |\n"
    )
    write_section(page, ["# New"], "Maker A", ["| 3 |"])
    text = page.read_text()
    assert (
        text.startswith("# Page\n\nWhat it says.\n\n## Maker A, 2") and "2026-01-02" not in text and "| 1 |" not in text
    )
    assert text.index("| 3 |") < text.index("## Maker B, with AMX, 2026-01-03\n\n| 2 |\n")
    write_section(page, ["# New"], "Maker B, with AMX", ["| 4 |"])
    text = page.read_text()
    assert "| 2 |" not in text and "| 3 |" in text and "| 4 |" in text and text.count("## ") == 2
    write_section(tmp_path / "new.md", ["# New"], "Maker A", ["| 5 |"])
    assert (tmp_path / "new.md").read_text().startswith("# New\n\n## Maker A, 2")


class _Pipe:
    def __init__(self) -> None:
        self.sent: list[Any] = []

    def send(self, value: Any) -> None:
        self.sent.append(value)

    def recv(self) -> str:
        return ""


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (ModuleNotFoundError("no litgpt", name="litgpt"), "not installed (litgpt)"),
        (RuntimeError("no such\noperator"), "fails (no such)"),
    ],
)
def test_a_side_that_cannot_be_built_says_why(error: Exception, answer: str) -> None:
    from timed_programs import _work

    def build(shape: dict[str, int]) -> Any:
        raise error

    pipe = _Pipe()
    _work(pipe, build, ({},), False)
    assert pipe.sent == [answer]
