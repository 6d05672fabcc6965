"""Table 2 at `mini` on this device, as far as the time goes: a Snakemake, stopped as a person would stop it.

SIGTERM to Snakemake and its jobs: trainers save and end (exit code 75), Snakemake begins nothing more. The next call
goes on from there. Packs are carried here, or made first (docs/gpu-box.md).
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.gpu_check.call_settings import SectionCall
from benchmarks.gpu_check.measured_rows import GOES_ON, MEASURED, MeasuredRows, MissingOnThisMachine
from benchmarks.gpu_check.results_page import table
from plumbline.core.errors import PlumblineError

TITLE = "Table 2 at mini"
SHARE = 1.0

#: Seconds before the end at which Snakemake is told to stop; trainers save in less.
STOPPING = 30.0
LOG = Path("benchmarks/runs/gpu_check_table2.log")


def target(setting: SectionCall) -> str:
    """Not the file under results/ itself, which is that of the preset that was asked for last."""
    return f"results/{setting.size.mini}/transfer/table2.csv"


def command(setting: SectionCall) -> list[str]:
    """As docs/gpu-box.md has it, of this interpreter."""
    arguments = [sys.executable, "-m", "snakemake", target(setting)]
    if setting.size.profile:
        arguments += ["--profile", setting.size.profile]
        return [*arguments, "--config", f"preset={setting.size.mini}", "machine=one_h100"]
    return [*arguments, "--cores", "2", "--config", f"preset={setting.size.mini}"]


def rows(setting: SectionCall) -> dict[str, Callable[[], dict[str, Any]]]:
    """One row, which goes on from call to call.

    Raises:
        MissingHere: there is no Snakemake.
    """
    if importlib.util.find_spec("snakemake") is None:
        raise MissingOnThisMachine(
            "Snakemake is not installed here, which makes the table; the other sections do without"
        )
    return {target(setting): lambda: _make(setting)}


def _make(setting: SectionCall) -> dict[str, Any]:
    stopping = min(STOPPING, max(setting.until - time.time(), 0) / 3)
    began = time.monotonic()
    LOG.parent.mkdir(parents=True, exist_ok=True)
    with LOG.open("w", encoding="utf-8") as log:
        process = subprocess.Popen(command(setting), stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            code = process.wait(max(setting.until - time.time() - stopping, 1.0))
            stopped = False
        except subprocess.TimeoutExpired:
            code, stopped = stop(process), True
        finally:
            stop(process)  # also where this process is itself told to end
    output = LOG.read_text(encoding="utf-8", errors="replace")
    if code and not stopped:
        last = [line.strip() for line in output.splitlines() if "rror" in line] or [f"exit code {code}"]
        raise PlumblineError(f"snakemake: {last[0]} (see {LOG})")
    outcomes = list(Path("work", setting.size.mini, "runs", "transfer").glob("*/*/*/outcome.json"))
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return {
        "status": GOES_ON if code else MEASURED,
        "reason": "stopped; the next call goes on",
        "seconds": round(time.monotonic() - began, 1),
        "runs_finished": len(outcomes),
        "to_do": next((line.removeprefix("To do: ") for line in lines if line.startswith("To do: ")), None),
        "done": next((line for line in reversed(lines) if " done" in line), None),
    }


def stop(process: subprocess.Popen[bytes]) -> int:
    """Tell it and its jobs to save and end; its exit code. What has not ended after STOPPING seconds is killed, and
    loses what it did since its last checkpoint."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
                os.killpg(process.pid, number)
                process.wait(STOPPING)
    return process.wait()


def page(state: MeasuredRows) -> list[str]:
    """How far it is; the table itself lies where its own page says."""
    rows = state.rows("table2_at_mini") | state.rows("table2_at_mini", GOES_ON)
    return table(
        ("target", "status", "seconds of the last call", "it had to do", "and did", "runs finished"),
        (
            (key, row["status"], row.get("seconds"), row.get("to_do"), row.get("done"), row.get("runs_finished"))
            for key, row in rows.items()
        ),
    )
