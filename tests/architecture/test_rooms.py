"""The contract on imports holds, fails where it is broken, and the house stays as small as it was counted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture import rooms

#: As the script counts them. Fewer is fine; more is a decision, and is written down here.
#: The 110th arrow: the report shows a paper's tables as printed, which the audit writes.
ROOMS, FLOORS, ARROWS = 23, 9, 110

#: An import of what stands above, in each form that runs or is checked.
UPWARD = {
    "plain": "from plumbline.project import load\n",
    "inside a function": "def later():\n    from plumbline.project import load\n    return load\n",
    "for type checkers": (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from plumbline.project import Project\n"
    ),
    "of the module": "import plumbline.project.project\n",
}


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """The contracts of pyproject.toml compared with the package in `folder`, in which the studies are."""
    command = [Path(sys.executable).parent / "lint-imports", "--config", rooms.ROOT / "pyproject.toml", "--no-cache"]
    environment = {"PYTHONPATH": str(folder), "PATH": ""}
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)


def append_import(path: Path, line: str) -> None:
    """Add a function to a file that imports."""
    path.write_text(f"{path.read_text(encoding='utf-8')}\n\ndef later():\n    {line}\n", encoding="utf-8")


def test_the_contract_holds_and_the_house_has_not_grown(tmp_path: Path) -> None:
    process = lint(rooms.assemble(tmp_path))
    assert process.returncode == 0, process.stdout
    house = rooms.count()
    assert house.up == () and house.up_inside == () and house.circles == ()
    assert house.rooms <= ROOMS and house.floors <= FLOORS and house.arrows <= ARROWS, house


@pytest.mark.parametrize("form", UPWARD)
def test_an_upward_import_breaks_the_contract(form: str, tmp_path: Path) -> None:
    rooms.assemble(tmp_path)
    (tmp_path / "src/plumbline/stats/upward.py").write_text(UPWARD[form], encoding="utf-8")
    process = lint(tmp_path / "src")
    assert process.returncode != 0 and "plumbline.stats.upward -> plumbline.project" in process.stdout


@pytest.mark.parametrize(
    ("file", "line", "arrow"),
    [
        ("data/token_files.py", "from plumbline.data.sources import local", ".token_files -> .sources"),
        ("results/runs/finished_runs.py", "import plumbline.results.tables.table", ".runs -> .tables"),
        ("studies/transfer/headline_runs.py", "from .tables import signals", ".headline_runs -> .tables"),
    ],
    ids=["a file to a folder", "a folder to a folder", "a study"],
)
def test_an_upward_import_inside_a_room_breaks_the_contract(file: str, line: str, arrow: str, tmp_path: Path) -> None:
    rooms.assemble(tmp_path)
    append_import(tmp_path / "src/plumbline" / file, line)
    process = lint(tmp_path / "src")
    assert process.returncode != 0 and arrow in process.stdout


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("project/paths.py", "import plumbline.studies.transfer.audit"),
        ("specs/own_methods_file.py", "from plumbline.studies.transfer import audit"),
        ("studies/quack/run_grid.py", "import plumbline.studies.transfer.audit"),
        ("studies/quack/tables/table1.py", "from ...transfer import audit"),
    ],
    ids=["the engine above", "the engine below", "a study", "a study, relatively"],
)
def test_nobody_imports_a_study(file: str, line: str, tmp_path: Path) -> None:
    rooms.assemble(tmp_path)
    append_import(tmp_path / "src/plumbline" / file, line)
    process = lint(tmp_path / "src")
    assert process.returncode != 0 and "plumbline.studies.transfer.audit" in process.stdout


def test_a_room_that_nobody_placed_breaks_the_contract(tmp_path: Path) -> None:
    rooms.assemble(tmp_path)
    (tmp_path / "src/plumbline/attic.py").write_text("", encoding="utf-8")
    process = lint(tmp_path / "src")
    assert process.returncode != 0 and "attic" in process.stdout


@pytest.mark.parametrize("importer", ["train", "operate"])
def test_import_past_doors_of_checkpoints_breaks_contract(importer: str, tmp_path: Path) -> None:
    rooms.assemble(tmp_path)
    path = tmp_path / f"src/plumbline/{importer}/window.py"
    path.write_text("from plumbline.train.checkpoint import checkpoint_folders\n", encoding="utf-8")
    process = lint(tmp_path / "src")
    assert process.returncode != 0
    assert f"plumbline.{importer}.window -> plumbline.train.checkpoint.checkpoint_folders" in process.stdout
