"""The contract on imports holds, fails where it is broken, and the house stays as small as it was counted."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture import rooms

#: As the script counts them. Fewer is fine; more is a decision, and is written down here.
ROOMS, FLOORS, ARROWS = 27, 10, 133

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
    """The contracts of pyproject.toml held against the package in `folder`."""
    command = [Path(sys.executable).parent / "lint-imports", "--config", rooms.ROOT / "pyproject.toml", "--no-cache"]
    environment = {"PYTHONPATH": str(folder), "PATH": ""}
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)


def test_the_contract_holds_and_the_house_has_not_grown() -> None:
    done = lint(rooms.ROOT / "src")
    assert done.returncode == 0, done.stdout
    house = rooms.count()
    assert house.up == () and house.circles == ()
    assert house.rooms <= ROOMS and house.floors <= FLOORS and house.arrows <= ARROWS, house


@pytest.mark.parametrize("form", UPWARD)
def test_an_upward_import_breaks_the_contract(form: str, tmp_path: Path) -> None:
    shutil.copytree(rooms.ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "src/plumbline/stats/upward.py").write_text(UPWARD[form], encoding="utf-8")
    done = lint(tmp_path / "src")
    assert done.returncode != 0 and "plumbline.stats.upward -> plumbline.project" in done.stdout


@pytest.mark.parametrize(
    ("file", "imported"),
    [("project/paths.py", "transfer"), ("studies/quack/grid.py", "transfer")],
    ids=["the engine", "a study"],
)
def test_nobody_imports_a_study(file: str, imported: str, tmp_path: Path) -> None:
    shutil.copytree(rooms.ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    path = tmp_path / "src/plumbline" / file
    line = f"\n\ndef later():\n    import plumbline.studies.{imported}.audit\n"
    path.write_text(path.read_text(encoding="utf-8") + line, encoding="utf-8")
    done = lint(tmp_path / "src")
    assert done.returncode != 0 and f"plumbline.studies.{imported}.audit" in done.stdout


def test_a_room_that_nobody_placed_breaks_the_contract(tmp_path: Path) -> None:
    shutil.copytree(rooms.ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "src/plumbline/attic.py").write_text("", encoding="utf-8")
    done = lint(tmp_path / "src")
    assert done.returncode != 0 and "attic" in done.stdout


@pytest.mark.parametrize("importer", ["train", "operate"])
def test_an_import_past_the_doors_of_checkpoints_breaks_the_contract(importer: str, tmp_path: Path) -> None:
    shutil.copytree(rooms.ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    path = tmp_path / f"src/plumbline/{importer}/window.py"
    path.write_text("from plumbline.train.checkpoint import rolling\n", encoding="utf-8")
    done = lint(tmp_path / "src")
    assert done.returncode != 0 and f"plumbline.{importer}.window -> plumbline.train.checkpoint.rolling" in done.stdout
