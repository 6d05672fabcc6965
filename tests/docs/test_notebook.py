"""The notebook of examples/ prints what it holds, cell by cell, and is small."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

NOTEBOOK = Path("examples/read_a_record.ipynb")
RUN = "examples/run_notebook.py"


def run(repository: Path, *arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(repository / RUN), *map(str, arguments)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.run(command, cwd=cwd or repository, env=environment, capture_output=True, text=True, timeout=300)


def test_its_cells_print_what_it_holds(repository: Path) -> None:
    process = run(repository, NOTEBOOK)
    assert process.returncode == 0, process.stderr
    assert not process.stderr and not process.stdout


def test_it_is_a_notebook_with_one_small_picture(repository: Path) -> None:
    notebook = nbformat.read(repository / NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 1
    assert (repository / NOTEBOOK).stat().st_size < 100_000
    assert f"../{NOTEBOOK}" in (repository / "docs/python.md").read_text()


@pytest.mark.parametrize(
    ("source", "output", "message"),
    [
        ("print(1 + 1)", "2\n", ""),
        ("print(1 + 1)", "3\n", "cell 1 holds\n3\nand now it prints\n2\n"),
        ("print(1)\nraise ValueError('no')", "1\n", "ValueError: no"),
    ],
)
def test_a_cell_that_prints_otherwise(repository: Path, tmp_path: Path, source: str, output: str, message: str) -> None:
    stream = {"output_type": "stream", "name": "stdout", "text": [output]}
    cells = [{"cell_type": "code", "source": [source], "outputs": [stream]}]
    (tmp_path / "one.ipynb").write_text(json.dumps({"cells": cells}))
    process = run(repository, "one.ipynb", cwd=tmp_path)
    assert (process.returncode == 0) == (not message) and message in process.stderr
    if not message:
        return
    run(repository, "one.ipynb", "--write", cwd=tmp_path)
    again = run(repository, "one.ipynb", cwd=tmp_path)
    assert (again.returncode == 0) == ("raise" not in source), "what is written is what it prints"
