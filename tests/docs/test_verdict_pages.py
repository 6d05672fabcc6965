"""What the page on verdicts shows is what the command prints about the numbers that it shows."""

from __future__ import annotations

import re
from pathlib import Path

from plumbline.verdict import __main__ as verdict
from tests import run_in_process


def test_numbers_have_the_verdict_of_the_page(repository: Path, tmp_path: Path) -> None:
    text = (repository / "docs/verdict.md").read_text(encoding="utf-8")
    examples = re.findall(
        r"```text\n(method,.*?)```\n\n```console\n\$ plumbline verdict (\S+) ([^\n]*)\n(.*?)```", text, re.DOTALL
    )
    assert len(examples) == 2
    for place, (numbers, file, arguments, printed) in enumerate(examples):
        folder = tmp_path / str(place)  # one folder a question
        folder.mkdir()
        (folder / file).write_text(numbers)
        process = run_in_process.run(verdict.main, file, *arguments.split(), cwd=folder)
        assert (process.returncode, process.stdout.strip()) == (0, printed.strip()), process.stderr
