"""What the tutorial shows of commands that train nothing is what they print; its other commands are tried elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from plumbline.cli import new
from plumbline.verdict import __main__ as verdict
from tests import run_in_process


@pytest.fixture(scope="module")
def page(repository: Path) -> str:
    return (repository / "docs/tutorial.md").read_text(encoding="utf-8")


def read_output(page: str, command: str) -> str:
    """What stands below a command on the page."""
    (block,) = re.findall(rf"```console\n\$ {re.escape(command)}[^\n]*\n(.*?)```", page, re.DOTALL)
    return str(block)


def test_a_new_method_is_the_files_and_the_code_that_it_shows(page: str, repository: Path) -> None:
    texts = new.render_method("cooler", "mixer", repository, built_in=False)
    printed = [f"wrote {path}" for path in texts] + ["Then:"]
    printed += [f"  {command}" for command in new.method_commands("cooler", built_in=False)]
    assert read_output(page, "plumbline new method cooler").splitlines() == printed
    (component,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert component in texts[Path("my/cooler/src/cooler/mixer.py")]


def test_the_numbers_of_the_page_have_the_verdict_that_it_shows(page: str, tmp_path: Path) -> None:
    (numbers,) = re.findall(r"```text\n(method,.*?)```", page, re.DOTALL)
    (tmp_path / "results.csv").write_text(numbers)
    (arguments,) = re.findall(r"\$ plumbline verdict (.*)", page)
    done = run_in_process.run(verdict.main, *arguments.split(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert read_output(page, "plumbline verdict").strip() == done.stdout.strip()


def test_what_quick_printed_is_what_the_readme_shows(page: str, repository: Path) -> None:
    readme = (repository / "README.md").read_text(encoding="utf-8")
    assert read_output(page, "make quick METHOD=softpick") in readme
