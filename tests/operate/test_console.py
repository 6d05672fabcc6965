"""What a person sees of a workflow, in a terminal and without one; the stand-in's jobs take no time."""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from snakemake.settings.types import OutputSettings
from snakemake_interface_logger_plugins.common import LogEvent

from plumbline.operate.console import job_display
from snakemake_logger_plugin_plumbline import LogHandler
from tests import warm_processes
from tests.operate import fake_terminal

SNAKEMAKE = [sys.executable, "-m", "snakemake", "--cores", "1"]


@pytest.fixture
def folder(tmp_path: Path, repository: Path) -> Path:
    """A copy of the stand-in."""
    return Path(shutil.copytree(repository / "tests/operate/standin", tmp_path / "standin"))


@pytest.fixture(scope="module")
def environment(repository: Path) -> dict[str, str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return os.environ | {"PATH": path, "PYTHONPATH": str(repository / "src")}


@pytest.fixture
def snakemake(folder: Path, environment: dict[str, str]) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs Snakemake on the stand-in, without a terminal."""

    def run(*args: str, logger: str | None = "plumbline") -> subprocess.CompletedProcess[str]:
        chosen = ["--logger", logger] if logger else []
        return warm_processes.module(
            "snakemake",
            ("--cores", "1", "--latency-wait", "1", *args, *chosen),
            folder,
            environment,
            timeout=300,
            together=False,
        )

    return run


def mask_times(text: str) -> str:
    """Times and file names of the day masked."""
    text = re.sub(r"\d{4}-\d\d-\d\dT\S+", "NOW", text)
    return re.sub(r"\d+:\d\d:\d\d( passed)?|; about \d+ \w+ left", "", text)


def test_without_a_terminal_there_is_one_line_a_finished_run(snakemake, folder: Path) -> None:
    process = snakemake("--keep-going")
    assert process.returncode == 1 and process.stdout == ""
    lines = mask_times(process.stderr).splitlines()
    assert lines[:2] == ["To do: fetch 2, corpus 1, train 6 runs, evaluate 6, tables 1.", "That takes about 13 min."]
    slow, *others = (f"train transfer/base/{name}/s42" for name in ("slow", "baseline", "softpick"))
    at = lines.index(f"{slow}: asked to stop; its state is saved at step 3")
    assert lines[at + 1] == f"{slow}: continues (attempt 2)"
    ends = {line.split(" (")[0] for line in lines if line.endswith(" of 6)") and line.startswith("train")}
    assert ends == {f"{run} completed, validation loss 7.1235" for run in (slow, *others)} | {
        "train transfer/base/diverging/s42 diverged at step 4 of 6: the loss is not finite"
    }
    assert [line[-8:] for line in lines if line.startswith("evaluate ")] == [f"({n} of 6)" for n in range(1, 5)]
    at = lines.index("failed: train transfer/base/broken/s42")
    assert lines[at + 1 : at + 3] == [
        "  error: shard-00001.bin of base.json is truncated",
        "  log: logs/pretrain/transfer.base.broken.s42.log",
    ]
    at = lines.index("failed: train transfer/base/empty/s42")
    assert lines[at + 1].endswith(" did not make runs/transfer/base/empty/s42/outcome.json")
    assert "fetch 2 done" in lines and "corpus 1 done" in lines
    assert lines[-3:] == [
        "2 jobs failed (see above), 11 of 16 are done; .",
        lines[-2],
        "Snakemake's own log: .snakemake/log/NOW",
    ]
    assert lines[-2].startswith("The same command ") and len(lines) == 31, "and nothing else"
    (account,) = (folder / ".snakemake/log").glob("*.log")
    text = account.read_text()
    assert len(re.findall(r"^localrule pretrain:$", text, re.M)) == 9, "six runs, three of them twice"
    assert "Job stats:" in text and "Error in rule pretrain:" in text
    assert "take: about 13" in text
    # What is left is made without those that fail. A Snakemake within a job says nothing, and the end is told.
    process = snakemake("--config", "without=[broken,empty]", "load=10000")
    assert mask_times(process.stderr).splitlines() == [
        "To do: tables 1.",
        f"That takes about 4 s. The machine is busy (load 10000 on {os.cpu_count()} cores): longer.",
        "tables 1 done",
        "All done: 1 job in .",
        "Snakemake's own log: .snakemake/log/NOW",
    ]
    again = snakemake("--config", "without=[broken,empty]")
    assert again.stderr.startswith("Nothing to be done (") and again.stderr.count("\n") == 1


def test_a_terminal_has_a_bar_for_each_stage(folder: Path, environment: dict[str, str]) -> None:
    command = [*SNAKEMAKE, "--keep-going", "--latency-wait", "1", "--logger", "plumbline"]
    written, code = fake_terminal.run(command, folder, environment)
    screens = fake_terminal.screens(written)
    assert code == 1
    assert max(len(line) for screen in screens for line in screen.splitlines()) <= 80
    at_work = [screen for screen in screens if "train transfer/base/baseline/s42  step" in screen]
    assert at_work, "the run at work is never shown"
    lines = at_work[-1].splitlines()
    bars = [re.sub("[━╸╺ ]+", " ", line).strip() for line in lines if "━" in line]
    assert [bar.split()[0] for bar in bars] == ["fetch", "corpus", "train", "evaluate", "tables"]
    assert bars[0] == "fetch 2/2" and re.fullmatch(r"train \d/6 1 running(, \d failed)?", bars[2])
    assert re.fullmatch(r"  train transfer/base/baseline/s42  step \d/6  loss 7\.\d{4}", lines[-2])
    assert re.fullmatch(r"0:00:0\d passed, about \d+ (s|min) left", lines[-1])
    last = mask_times(screens[-1]).splitlines()
    assert not any("━" in line for line in last), "the bars are taken away at the end"
    assert "failed: train transfer/base/broken/s42" in last
    assert "  error: shard-00001.bin of base.json is truncated" in last
    diverged = "train transfer/base/diverging/s42 diverged at step 4 of 6: the loss is not finite"
    assert diverged in " ".join(line.strip() for line in last)
    assert not any("completed" in line for line in last), "that is what the bars are for"
    assert written.count("\x1b[?25l") == written.count("\x1b[?25h"), "the cursor is given back"


def own_words(done: subprocess.CompletedProcess[str]) -> tuple[int, list[str], list[str]]:
    """Lines of both streams, sorted, since jobs are reported in any order; what changes from call to call left out."""
    changing = re.compile(r".*(Assuming unrestricted|Workflow ID|Command:|Date:)|\[|    jobid:|    reason:")
    lines = [
        sorted(line for line in text.splitlines() if not changing.match(line)) for text in (done.stdout, done.stderr)
    ]
    return done.returncode, *lines


@pytest.mark.parametrize("args", [("--dry-run",), ("--lint",), ("--quiet", "all")], ids=" ".join)
def test_snakemakes_own_output_can_be_asked_for(snakemake, folder: Path, args) -> None:
    with_console = own_words(snakemake(*args))
    if args == ("--dry-run",):
        assert {"Job stats:", "fetch             2", "total            18"} <= set(with_console[1])
    for name in ("packages", ".snakemake", "runs", "state", "scores", "logs", "documents.jsonl"):
        shutil.rmtree(folder / name) if (folder / name).is_dir() else (folder / name).unlink(missing_ok=True)
    assert with_console == own_words(snakemake(*args, logger=None))


def test_verbose_brings_the_whole_account(snakemake) -> None:
    stderr = snakemake("--verbose", "packages/one.whl").stderr
    assert "rule fetch:" in stderr and "Finished jobid" in stderr and "To do" not in stderr
    stderr = snakemake("no_such_target").stderr
    assert stderr.startswith("MissingRuleException:\nNo rule to produce no_such_target") and "SNAKEMAKE" not in stderr


def test_a_fault_ends_no_workflow(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("no bars today")

    monkeypatch.setattr(job_display.JobDisplay, "note_plan", broken)
    handler = LogHandler(OutputSettings(), None)
    for event, text in ((LogEvent.WORKFLOW_STARTED, "begun"), (LogEvent.RUN_INFO, "Job stats"), (None, "more")):
        record = logging.LogRecord("snakemake", logging.INFO, "", 0, text, None, None)
        vars(record).update({"event": event, "stats": {}} if event else {})
        handler.handle(record)
    handler.close()
    stderr = capsys.readouterr().err
    assert stderr == "warning: no more short messages: RuntimeError: no bars today\nJob stats\nmore\n"


def test_names_lose_their_beginning_at_a_slash() -> None:
    name = "transfer/large/attention_residuals.original/s42"
    assert job_display.shorten_name(name, 80) == name
    assert job_display.shorten_name(name, 40) == "…/large/attention_residuals.original/s42"
    assert job_display.shorten_name(name, 10) == "…/attention_residuals.original/s42"
