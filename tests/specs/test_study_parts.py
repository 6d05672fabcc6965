"""Parts of a study are found by their names, without running them; a wrong name is answered with the nearest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from plumbline.core.errors import PlumblineError
from plumbline.specs import study_parts


@pytest.fixture
def studies(tmp_path: Path) -> Path:
    """A folder of studies: one of packages, one of plain modules."""
    for name, text in {
        "big/tables/__init__.py": "from elsewhere import borrowed\n\n\ndef inline():\n    pass\n",
        "big/tables/own.py": "import torch_is_not_here\n\n\ndef own():\n    pass\n",
        "big/tables/_shared.py": "def helper():\n    pass\n",
        "big/tables/empty.py": "",
        "big/study.yaml": "",
        "small/study.yaml": "",
        "small/tables.py": "def only():\n    pass\n",
    }.items():
        path = tmp_path / "studies" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "studies"


def test_a_function_is_in_its_module_or_the_part(studies: Path) -> None:
    assert study_parts.file("big", "tables", "own", root=studies.parent) == studies / "big/tables/own.py"
    assert study_parts.file("big", "tables", "inline", root=studies.parent) == study_parts.file(
        "big", "tables", "borrowed", root=studies.parent
    )
    assert study_parts.file("big", "tables", "inline", root=studies.parent) == studies / "big/tables/__init__.py"
    assert study_parts.file("small", "tables", "only", root=studies.parent) == studies / "small/tables.py"
    assert study_parts.targets("big", "tables", root=studies.parent) == ["empty", "inline", "own"]


@pytest.mark.parametrize(
    ("study", "target", "message"),
    [
        (
            "big",
            "onw",
            r"no function 'onw'.*'own'.*\['empty', 'inline'.*'own'",
        ),
        ("big", "empty", "big/tables/empty.py:.*function.*'empty'"),
        ("small", "onyl", "small/tables.py.*no function 'onyl'.*'only'"),
        ("small", "_helper", "function.*'_helper'"),
        ("none", "only", "study.*'none'"),
    ],
)
def test_what_is_not_there_is_answered(studies: Path, study: str, target: str, message: str) -> None:
    with pytest.raises(PlumblineError, match=message):
        study_parts.file(study, "tables", target, root=studies.parent)


def test_parts_that_a_study_has_not(studies: Path) -> None:
    assert study_parts.has("big", "tables", root=studies.parent)
    assert not study_parts.has("big", "figures", root=studies.parent)
    with pytest.raises(PlumblineError, match="'small' has no claims"):
        study_parts.part("small", "claims", root=studies.parent)


def test_one_table_loads_no_other(repository: Path) -> None:
    """So that an edit of one is an edit of one; and Table 4 alone needs torch."""
    code = "import sys; from plumbline.specs import study_parts; study_parts.function('transfer', 'tables', 'table2'); "
    code += "print([n for n in sys.modules if '.transfer.tables.' in n or n in ('torch', 'matplotlib')])"
    process = subprocess.run([sys.executable, "-c", code], cwd=repository, capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "['plumbline.studies.transfer.tables.table2']"
