"""What the pages on verdicts show is what the command prints about the numbers that they show."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from plumbline.verdict import __main__ as verdict
from tests import run_in_process


@pytest.mark.parametrize(("page", "count"), [("verdict", 2), ("printed-numbers", 1)])
def test_numbers_have_the_verdict_of_the_page(repository: Path, tmp_path: Path, page: str, count: int) -> None:
    text = (repository / f"docs/{page}.md").read_text(encoding="utf-8")
    examples = re.findall(
        r"```text\n(method,.*?)```\n\n```console\n\$ plumbline verdict (\S+) ([^\n]*)\n(.*?)```", text, re.DOTALL
    )
    assert len(examples) == count
    for place, (numbers, file, arguments, printed) in enumerate(examples):
        folder = tmp_path / str(place)  # one folder a question
        folder.mkdir()
        (folder / file).write_text(numbers)
        done = run_in_process.run(verdict.main, file, *arguments.split(), cwd=folder)
        assert (done.returncode, done.stdout.strip()) == (0, printed.strip()), done.stderr
