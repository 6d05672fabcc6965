"""What the tutorial shows of commands that train nothing is what they print; its other commands are tried elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from plumbline.cli import new


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


def test_what_quick_printed_is_what_the_readme_shows(page: str, repository: Path) -> None:
    readme = (repository / "README.md").read_text(encoding="utf-8")
    assert read_output(page, "make quick METHOD=softpick") in readme
