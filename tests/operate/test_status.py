"""The table of runs shows from files alone what each of them is doing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from plumbline.core import process_record
from plumbline.core.files import atomic_write_json
from plumbline.operate import status
from plumbline.train.checkpoint import run_lock
from tests.model_specs import run_spec
from tests.train import small_runs


def state_of(work: Path, method: str, **overrides: Any) -> Path:
    """A state directory as the trainer leaves it."""
    state = work / "demo/state/transfer/base" / method / "s42"
    atomic_write_json(
        state / "run.json",
        {"run_id": f"id-{method}", "key": f"transfer/base/{method}/s42", "preset": "demo", "steps": 50} | overrides,
    )
    starts = [{"step": 0, "host": "node1"}, {"step": 20, "host": "node2", "slurm_job_id": "17"}]
    atomic_write_json(state / "starts.json", starts)
    line = {"event": "step", "step": 30, "loss": 6.5, "tokens_per_second": 4000.0, "eta_seconds": 60.0}
    (state / "progress.jsonl").write_text(json.dumps(line | {"time": time.time() - 10}) + '\n{"event": "st')
    (state / "step-0000028").mkdir()
    (state / "step-0000028/metadata.json").touch()
    return state


def test_each_state_is_told_from_the_files(tmp_path: Path) -> None:
    running = state_of(tmp_path, "running")
    atomic_write_json(running / run_lock.NAME, process_record.identity() | {"limit": 120.0})
    stale = state_of(tmp_path, "stale")
    atomic_write_json(stale / run_lock.NAME, process_record.identity() | {"process_started": "1", "since": 0})
    atomic_write_json(state_of(tmp_path, "fault") / "fault.json", {"reason": "out of memory"})
    state_of(tmp_path, "waiting")
    for method, outcome in (("finished", "completed"), ("diverged", "diverged"), ("forgotten", "completed")):
        if method != "forgotten":
            state_of(tmp_path, method)
        content = {"run_id": f"id-{method}", "preset": "demo", "outcome": outcome, "step": 50, "steps": 50,
                   "last_finite_loss": 5.0, "reason": None}  # fmt: skip
        atomic_write_json(tmp_path / "demo/runs/transfer/base" / method / "s42/outcome.json", content)
    (tmp_path / "demo/state/transfer/base/waiting/s42.set-aside-1").mkdir()
    (tmp_path / "demo/state/transfer/base/waiting/s42.set-aside-1/run.json").write_text("{}")
    rows = {row["run"].split("/")[2]: row for row in status.list_runs(tmp_path)}
    assert {method: row["state"] for method, row in rows.items()} == {
        method: "finished" if method == "forgotten" else method for method in rows
    }
    assert list(rows) == ["running", "stale", "fault", "waiting", "diverged", "finished", "forgotten"]
    row = rows["running"]
    assert (row["step"], row["steps"], row["loss"], row["tokens_per_second"]) == (30, 50, 6.5, 4000.0)
    assert 45 <= row["eta_seconds"] <= 50.1 and 0 <= row["checkpoint_age_seconds"] < 60
    assert (row["restarts"], row["host"], row["slurm_job_id"]) == (1, "node2", "17")
    assert rows["fault"]["reason"] == "out of memory" and "no sign of process" in rows["stale"]["reason"]
    assert rows["waiting"]["tokens_per_second"] is None and rows["finished"]["loss"] == 5.0


def test_a_silent_holder_elsewhere_is_stale(tmp_path: Path) -> None:
    path = state_of(tmp_path, "remote") / run_lock.NAME
    atomic_write_json(path, {"host": "node17", "machine": "elsewhere", "pid": 1, "limit": 1e6})
    assert status.list_runs(tmp_path)[0]["state"] == "running"
    os.utime(path, (1, 1))
    assert status.list_runs(tmp_path)[0]["state"] == "stale"


@pytest.mark.parametrize("content", ["[]", "3", '{"pid": 1}', '{"host": 1, "machine": [], "pid": "x", "limit": NaN}'])
def test_a_broken_lock_goes_by_its_age_and_is_named(tmp_path: Path, content: str) -> None:
    path = state_of(tmp_path, "broken") / run_lock.NAME
    path.write_text(content)
    assert status.list_runs(tmp_path)[0]["state"] == "running"
    os.utime(path, (1, 1))
    [row] = status.list_runs(tmp_path)
    assert row["state"] == "stale" and f"({path} " in row["reason"]


def test_an_outcome_of_another_spec_is_not_this_runs(tmp_path: Path) -> None:
    state_of(tmp_path, "changed")
    content = {"run_id": "older", "preset": "demo", "outcome": "completed"}
    atomic_write_json(tmp_path / "demo/runs/transfer/base/changed/s42/outcome.json", content)
    assert [row["state"] for row in status.list_runs(tmp_path)] == ["waiting"]


def test_a_trained_run_is_finished(packs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path("transfer/base/baseline/s42")
    chosen = small_runs.settings(
        packs, tmp_path, state=tmp_path / "smoke/state" / folder, out=tmp_path / "smoke/runs" / folder
    )
    assert small_runs.train(run_spec(), chosen) == 0
    (row,) = status.list_runs(tmp_path)
    assert (row["state"], row["step"], row["run"], row["restarts"]) == ("finished", 12, str(folder), 0)


def test_the_command_prints_a_table_and_json(tmp_path: Path) -> None:
    state_of(tmp_path, "waiting")
    command = [sys.executable, "-X", "importtime", "-m", "plumbline.operate.status", "--work", str(tmp_path)]
    process = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True)
    assert json.loads(process.stdout)[0]["run"] == "transfer/base/waiting/s42"
    assert " torch\n" not in process.stderr and " pandas\n" not in process.stderr
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "1 waiting" in process.stdout and "30/50" in process.stdout


def test_everything_fits_80_columns_and_names_stay_whole(tmp_path: Path) -> None:
    """Also with a terminal of more: one layout is enough."""
    long = "attention_residuals.as_the_authors_have_it"
    paper = {"preset": "paper", "steps": 238418, "key": f"transfer/large/{long}/s42"}
    running = state_of(tmp_path, long, **paper)
    atomic_write_json(running / run_lock.NAME, process_record.identity() | {"limit": 120.0})
    reason = "the loss was not a number three times at step 30 after resuming from step 28; look at the data first"
    fault = state_of(tmp_path, "value_residual")
    atomic_write_json(fault / "fault.json", {"reason": reason})
    peak = {"peak_memory_bytes": 514_390_016, "peak_memory_of": "resident, beside its packages"}
    atomic_write_json(fault / "starts.json", [{"step": 0} | peak, {"step": 20}])
    lines = status.render_rows(status.list_runs(tmp_path)).plain.splitlines()
    assert max(map(len, lines)) <= 80
    at = lines.index(f"  {long}/s42")
    assert lines[at - 1] == "running: paper/transfer/large"
    assert lines[at + 1].split()[:2] == ["30/238418", "6.5000"]
    assert lines[at + 2] == "    4,000 tokens/s; on node2 (SLURM job 17); started 2 times"
    at = lines.index("fault: demo/transfer/base")
    assert lines[at + 1].split()[:3] == ["value_residual/s42", "30/50", "6.5000"]
    assert " ".join(line.strip() for line in lines[at + 2 :]) == (
        f"started 2 times; at most 514 MB resident, beside its packages; {reason}"
    )
