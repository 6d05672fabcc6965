"""Cells of the fault matrix: those that fell once, and some more, the same each time. All of them: `make faults`."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.faults import matrix
from tests.faults.project_under_fault import FAULTS, MATRIX, STEPS, Base, carry_out

pytestmark = pytest.mark.workflow
MORE = 2


@pytest.fixture(scope="module")
def base(built: Path, repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Base]:
    """The small project, on top of the finished one, whose corpus it has."""
    root = tmp_path_factory.mktemp("faults") / "base"
    yield Base.make(repository, root, built)
    shutil.rmtree(root)


@pytest.mark.parametrize(("step", "fault"), matrix.sample_cells(MORE, MATRIX["fell_once"]))
def test_a_fault_is_survived(base: Base, step: str, fault: str, tmp_path: Path) -> None:
    carry_out(base, step, fault, tmp_path / "cell")
    shutil.rmtree(tmp_path / "cell")


def test_every_cell_has_a_meaning(repository: Path) -> None:
    """A step that the workflow has not, or a rule that the matrix has not, would be a hole in it."""
    rules = {line.split()[1].rstrip(":") for path in (repository / "workflow/rules").glob("*.smk")
             for line in path.read_text().splitlines() if line.startswith("rule ")}  # fmt: skip
    assert rules - {"unknown", "unknown_run"} == STEPS.keys()
    for row in MATRIX["cells"]:
        assert row["steps"] and set(row["steps"]) <= STEPS.keys() and set(row["faults"]) <= FAULTS.keys()
    assert {row["expected"] for row in (*FAULTS.values(), *MATRIX["cells"])} == {"continues", "refused"}


def test_every_fault_of_a_folder_has_a_test_or_was_tried_by_hand(repository: Path) -> None:
    for row in yaml.safe_load((repository / "tests/faults/folders.yaml").read_text()):
        assert row.keys() - {"test", "by_hand"} == {"fault", "commands", "expected"}, row
        assert row["expected"] in ("continues", "refused") and ("test" in row) != row.get("by_hand", False)
        path, _, name = row.get("test", "").partition("::")
        assert not name or f"\ndef {name}(" in (repository / path).read_text(), row


def test_every_fault_of_slurm_is_carried_out_by_what_is_there(repository: Path) -> None:
    folders = (repository / "tests/cluster", repository / "tests/operate")
    code = "".join(path.read_text() for folder in folders for path in folder.rglob("*.py"))
    for row in MATRIX["slurm"]:
        assert row.keys() == {"fault", "by", "date", "result"}
        assert row["by"] == "by hand" or f"\ndef {row['by']}(" in code, row


def test_the_table_says_nothing_of_what_was_not_run() -> None:
    passed = {"outcome": matrix.PASSED, "seconds": 3600, "why": ""}
    page = matrix.write_table({"pack.kill": passed}, {"pack.kill": passed, "pack.term": passed})
    (row,) = [line for line in page.splitlines() if line.startswith("| pack |")]
    assert row.count(" refused ") == row.count(" (refused) ") == 1 and row.count("not run") == len(FAULTS) - 2
    assert "1.0 hours" in page and f"{matrix.PASSED}: 1" in page
