"""What sources return beside their values: where each stands, what was not read and why, and what is not known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plumbline.verdict.evidence import Evidence, RunEvidence
from plumbline.verdict.sources.lm_eval_items import read_model
from plumbline.verdict.sources.row_files import ColumnNames, read_rows
from plumbline.verdict.sources.run_rows import read_search, read_table
from plumbline.verdict.sources.submissions import read_submissions
from plumbline.verdict.sources.training_log import LogPart, read_log


def write_file(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_table_says_of_each_run_its_line_step_and_end(tmp_path: Path) -> None:
    text = "method,seed,step,loss,state\na,1,5,2.5,finished\na,2,5,,crashed\nb,1,5,,\n"
    path = write_file(tmp_path / "t.csv", text)
    evidence = read_table(read_rows(path), ColumnNames(metric="loss"))
    run, lost = evidence.runs["a"]["1"], evidence.runs["a"]["2"]
    assert (run.value, run.file, run.line, run.step, run.status) == (2.5, path, 2, 5, "finished")
    assert (lost.value, lost.line, lost.status, lost.word) == (None, 3, "crash", "crashed")
    assert (evidence.files, evidence.statuses, evidence.without) == ((path,), ("state",), {"b": (4,)})
    assert run.settings is run.evaluation is evidence.model is None, "what a table does not say is not known"


def submissions(folder: Path) -> Evidence:
    write_file(folder / "a" / "submission.json", json.dumps({"loss": 1.0}))
    write_file(folder / "b" / "submission.json", json.dumps({"other": 1.0}))
    return read_submissions(folder, ColumnNames(metric="loss"))


def search(folder: Path) -> Evidence:
    path = write_file(folder / "log.csv", "commit,loss,status\nc0,2,keep\nc1,,running\n")
    return read_search(read_rows(path), ColumnNames(metric="loss"))


def samples(folder: Path) -> Evidence:
    for day in (1, 2):
        write_file(folder / f"samples_t_2026-01-0{day}T00-00-00.jsonl", '{"doc_id": 0, "acc": 1}\n')
    return read_model(folder, "acc")


@pytest.mark.parametrize(
    ("read", "file"),
    [
        (submissions, "a/submission.json"),
        (search, "log.csv"),
        (samples, "samples_t_2026-01-02T00-00-00.jsonl"),
    ],
)
def test_what_was_read_is_named(tmp_path: Path, read, file: str) -> None:
    assert read(tmp_path).files == (tmp_path / file,)


def test_a_log_has_settings_evaluation_size_and_steps(tmp_path: Path) -> None:
    path = write_file(tmp_path / "log.txt", "lr: 0.1\nval_tokens: 900\nstep:5/10 loss:3\nstep:10/10 loss:nan\n")
    (run,) = read_log(path, LogPart(lines=("step:{step}/{steps} loss:{value}",))).runs
    first, last = (run.evidence(each) for each in run.evaluations)
    assert (first.value, first.step, first.steps, first.planned, first.file) == (3, 5, (5, 10), 10, path)
    assert (first.settings, first.evaluation) == ({"lr": ["0.1"]}, {"val_tokens": ["900"]})
    assert (last.value, last.status, last.word, last.seed) == (None, "crash", "diverged", None)


def test_what_runs_took_and_what_is_not_known(tmp_path: Path) -> None:
    """A run that states nothing does not move a median, and nobody's tokens are no number."""
    took = {"a": (1.0, 3.0, None), "b": (None,)}
    runs = {
        method: {str(seed): RunEvidence(value=1.0, seconds=each, step=0) for seed, each in enumerate(seconds)}
        for method, seconds in took.items()
    }
    medians = Evidence(metric="loss", runs=runs).medians
    assert medians["seconds"] == {"a": 2.0, "b": None} and medians["tokens"] == {"a": None, "b": None}
