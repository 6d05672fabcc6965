"""Carries out the sections of one call in their order, each with its seconds, whatever becomes of those before."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.gpu_check import measured_rows, section_worker
from benchmarks.gpu_check.measured_rows import CUT_OFF, FAILED
from plumbline.core.command_line import EXIT_RUN_AGAIN
from plumbline.model.allocator import GPU_ALLOCATOR

TABLE = "benchmarks.gpu_check.sections"
FINISHED, OUT_OF_TIME = "finished", "out of time; the next call continues"
#: Seconds that a process may go beyond its time to finish its row, and then to end when it is told to.
GRACE = 12.0


def run_sections(
    names: list[str], path: Path, device: str, seconds: float, *, table: str = TABLE, grace: float = GRACE
) -> bool:
    """Go through the sections, at most `seconds` long (beyond that `grace` for the row at hand).

    A section has the seconds that its table states, and more where those before it, or finished ones, leave some over.

    Returns:
        Whether every row of every section has its end.
    """
    end, sections = time.time() + seconds, importlib.import_module(table).SECTIONS
    state = measured_rows.read(path)
    unfinished = [name for name in names if state.section(name).missing != []]
    reserved = sum(sections[name].seconds + grace for name in unfinished)
    for name in unfinished:
        reserved -= sections[name].seconds + grace
        until = min(end, max(time.time() + sections[name].seconds, end - reserved))
        ended = _run_section(name, table, path, device, until, grace) if time.time() < end else OUT_OF_TIME
        measured_rows.end(path, name, ended)
        print(f"{name}: {ended}", flush=True)
    return all(measured_rows.read(path).section(name).missing == [] for name in names)


def _run_section(name: str, table: str, path: Path, device: str, until: float, grace: float) -> str:
    """Run processes for one section until it is done or its time is out; how it ended."""
    while True:
        code = _run_process(name, table, path, device, until, grace)
        missing = measured_rows.read(path).section(name).missing
        died = code not in (None, 0, EXIT_RUN_AGAIN)
        # A process takes the missing rows in their order: the first of them is the one at hand.
        if missing and died:
            reason = f"its process ended with {code}, see the log"
            measured_rows.record(path, name, missing.pop(0), FAILED, reason=reason)
        elif missing and code is None:
            measured_rows.record(path, name, missing[0], CUT_OFF, reason="its section's time was out")
        if missing == []:
            return FINISHED
        if died and missing is None:
            return f"failed: its process ended with {code}, see the log"
        if time.time() >= until or code is None:
            return OUT_OF_TIME


def _run_process(name: str, table: str, path: Path, device: str, until: float, grace: float) -> int | None:
    """Run the worker, whose output goes into a log next to the state; its exit code, or None if it had to be ended."""
    command = [sys.executable, "-m", section_worker.__name__, name, table, str(path), device, str(until)]
    with path.with_suffix(".log").open("a", encoding="utf-8") as log:
        print(f"== {name}", file=log, flush=True)
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=GPU_ALLOCATOR | os.environ)
        try:
            return process.wait(max(until - time.time(), 0) + grace)
        except subprocess.TimeoutExpired:
            process.terminate()
            return None
        finally:
            try:
                process.wait(grace)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
