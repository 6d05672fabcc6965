"""A JSON file that is nested deeper than Python's parser goes is a damaged file like any other: named, no traceback."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from plumbline.core import run_files
from plumbline.core.errors import PlumblineError
from plumbline.core.files import read_json, sha256_file
from plumbline.data import jsonl, manifest
from plumbline.evaluate import item_fields, items
from plumbline.operate.console import job_log
from plumbline.results.runs.expected_runs import ExpectedRun, list_expected_runs
from plumbline.results.runs.finished_runs import load
from plumbline.results.tables import provenance, trace_cell
from plumbline.specs import study_config, suites, tasks
from plumbline.train.checkpoint import checkpoint_folders, state_records

DEEP = "[" * 100_000


def _outcome(folder: Path) -> None:
    path = folder / "runs/transfer/base/baseline/s42/outcome.json"
    path.parent.mkdir(parents=True)
    path.write_text(DEEP)
    load([ExpectedRun(key="transfer/base/baseline/s42", run_id="a" * 16)], folder)


def _list_found(folder: Path) -> None:
    study = study_config.load("transfer", "smoke")
    path = folder / "runs/transfer/base/baseline/s42/outcome.json"
    path.parent.mkdir(parents=True)
    path.write_text(DEEP)
    list_expected_runs("found", study, ["base"], folder)


def _provenance(folder: Path) -> None:
    (folder / "table2.csv").write_text("method\n")
    (folder / "table2.provenance.json").write_text(DEEP)
    provenance.read(folder / "table2.csv")


def _points(folder: Path) -> None:
    (folder / run_files.POINTS).mkdir()
    (folder / run_files.POINTS / run_files.POINTS_INDEX).write_text(DEEP)
    run_files.read_points_index(folder)


def _write_then(name: str, read: Callable[[Path], object]) -> Callable[[Path], None]:
    def reader(folder: Path) -> None:
        (folder / name).write_text(DEEP)
        read(folder / name)

    return reader


@pytest.mark.parametrize(
    "reader",
    [
        _outcome,
        _list_found,
        _provenance,
        _points,
        _write_then("manifest.json", manifest.read_pack),
        _write_then(items.INDEX, lambda path: items.read_index(path.parent, suites.suite("piqa"))),
        _write_then("piqa.jsonl", lambda path: item_fields.read(tasks.task("piqa"), path)),
        _write_then("texts.jsonl", lambda path: list(jsonl.read(path))),
    ],
)
def test_it_is_named(reader: Callable[[Path], None], tmp_path: Path) -> None:
    with pytest.raises(PlumblineError, match="nested too deeply"):
        reader(tmp_path)


def test_a_checkpoint_whose_metadata_is_such_a_file_is_damaged(tmp_path: Path) -> None:
    (tmp_path / checkpoint_folders.METADATA).write_text(DEEP)
    assert "nested too deeply" in (checkpoint_folders.damage(tmp_path) or "")


def test_a_state_sets_it_aside(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "starts.json").write_text(DEEP)
    assert read_json(tmp_path / "starts.json") is None
    assert state_records.read_or_set_aside(tmp_path / "starts.json") is None
    assert "starts.json is damaged (nested" in capsys.readouterr().err
    assert (tmp_path / "starts.json.damaged").read_text() == DEEP
    (tmp_path / job_log.PROGRESS_FILE).write_text(f'{DEEP[:30_000]}\n{{"event": "step"}}\n')
    assert job_log.read_events(tmp_path) == [{"event": "step"}]


def test_a_trace_shows_what_the_table_recorded(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(DEEP)
    facts = {"run_id": "a" * 16, "outcome": "completed", "spec_sha256": "b" * 64} | {
        "manifest": str(tmp_path / "manifest.json"),
        "device": "cpu",
    }
    key, table = "transfer/base/baseline/s42", tmp_path / "table.csv"
    table.write_text("method,loss\nbaseline,5.0\n")
    content = {"study": "transfer", "table": "table", "preset": "smoke", "key": "method", "columns": []}
    content |= {"why_empty": {}, "cells": {"baseline": {"loss": [key]}}, "sources": {}, "runs": {key: facts}}
    content |= {"csv_sha256": sha256_file(table)}
    provenance.provenance_path(table).write_text(json.dumps(content))
    assert "DAMAGED: the manifest is unreadable (nested too deeply" in trace_cell.trace_cell(table, "baseline", "loss")
