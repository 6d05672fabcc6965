"""The names that stay: each is there, each is on the page, and asking for one does not wait for torch."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from plumbline import api


def test_every_name_is_there_and_on_the_page(repository: Path) -> None:
    page = (repository / "docs/python.md").read_text()
    for name in api.__all__:
        assert callable(getattr(api, name)) and f"\n::: plumbline.api.{name}\n" in page, name
    assert set(re.findall(r"\bapi\.(\w+)", page)) <= set(api.__all__)
    with pytest.raises(AttributeError, match=r"no 'jugde' .*judge"):
        _ = api.jugde


def test_a_study_and_a_verdict_wait_for_no_torch(repository: Path) -> None:
    code = (
        "import sys; from plumbline import api; api.load_study, api.judge, api.load_project; "
        "print('torch' in sys.modules)"
    )
    assert subprocess.check_output([sys.executable, "-c", code], cwd=repository, text=True) == "False\n"
