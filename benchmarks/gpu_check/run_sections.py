"""One call: the sections in their order, each with its seconds, whatever becomes of those before."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.gpu_check.call_settings import SectionCall
from benchmarks.gpu_check.measured_rows import FAILED, GOES_ON, MeasuredRows
from benchmarks.gpu_check.section_worker import EXIT_FRESH_PROCESS
from plumbline.core.command_line import EXIT_RUN_AGAIN
from plumbline.model.allocator import GPU_ALLOCATOR

FINISHED, OUT_OF_TIME = "finished", "out of time; the next call goes on"
#: Seconds that a process may go beyond its time to finish its row, and then to end when it is told to.
GRACE = 12.0
#: A row that was cut off so often is given up.
TRIES = 2


def conduct(
    modules: Mapping[str, str],
    stated: Mapping[str, float],
    path: Path,
    setting: SectionCall,
    seconds: float,
    say: Callable[[str], None],
    grace: float = GRACE,
) -> bool:
    """Go through the sections (name -> module), at most `seconds` long (beyond that `grace` for the row at hand).

    A section has the seconds `stated` for it, and more where those after it leave some over.

    Returns:
        Whether every row of every section has its end, except for sections that cannot be carried out here.
    """
    end = time.time() + seconds
    MeasuredRows.read(path).release()
    reserved = sum(stated[name] + grace for name in modules)
    for name, module in modules.items():
        reserved -= stated[name] + grace
        state = MeasuredRows.read(path)
        if state.missing(name) == []:
            say(f"{name}: finished before")
            continue
        # A section that comes late has less, so that a call ends when it should.
        state.end(name, None)
        until = min(end, max(time.time() + stated[name], end - reserved))
        ending = _section(name, module, path, setting.ending(until), grace) if time.time() < end else OUT_OF_TIME
        state = MeasuredRows.read(path)
        state.end(name, ending)
        planned, missing = state.section(name)["planned"], state.missing(name)
        say(f"{name}: {ending}" + (f" ({len(planned) - len(missing)} of {len(planned)} rows)" if missing else ""))
    state = MeasuredRows.read(path)
    return all(state.missing(name) == [] or state.lacking(name) for name in modules)


def _section(name: str, module: str, path: Path, setting: SectionCall, grace: float) -> str:
    """Processes for one section until it is done or its time is out; how it ended, in words."""
    while True:
        code = _process(name, module, path, setting, grace)
        state = MeasuredRows.read(path)
        cut_off = state.begun(name)
        if cut_off is not None:
            _record_cut_off(state, name, cut_off, code)
        elif code == 0:
            return FINISHED
        elif code not in (None, EXIT_RUN_AGAIN, EXIT_FRESH_PROCESS):
            return state.section(name)["ended"] or f"failed: its process ended with {code}, see {log_of(path)}"
        if time.time() >= setting.until or code in (None, EXIT_RUN_AGAIN):
            return OUT_OF_TIME if state.missing(name) else FINISHED


def _record_cut_off(state: MeasuredRows, name: str, key: str, code: int | None) -> None:
    """What a row gets whose process has ended in it: by itself, or because its time was out (no code)."""
    tries = state.section(name)["rows"][key]["tries"]
    if code not in (None, EXIT_RUN_AGAIN):
        state.record(name, key, FAILED, reason=f"its process ended with {code}, see {log_of(state.path)}")
    elif tries >= TRIES:
        state.record(name, key, FAILED, reason=f"not done within its section's time, {tries} times")
    else:
        state.record(name, key, GOES_ON, reason="its section's time was out")


def _process(name: str, module: str, path: Path, setting: SectionCall, grace: float) -> int | None:
    """Run `worker`; its exit code, or None if it had to be ended."""
    command = [sys.executable, "-m", "benchmarks.gpu_check.section_worker", name, module]
    command += ["--state-file", str(path), "--section-call", setting.to_json()]
    log = log_of(path)
    with log.open("a", encoding="utf-8") as output:
        print(f"== {name}", file=output, flush=True)
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=GPU_ALLOCATOR | os.environ)
        try:
            return process.wait(max(setting.until - time.time(), 0) + grace)
        except subprocess.TimeoutExpired:
            process.terminate()
            return None
        finally:
            _wait_or_kill(process, grace)


def _wait_or_kill(process: subprocess.Popen[bytes], grace: float) -> None:
    """Wait for a process that has ended or has been told to; kill it where it does not listen."""
    try:
        process.wait(grace)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def log_of(path: Path) -> Path:
    """Where the processes' own words go, next to the state; git ignores it."""
    return path.with_suffix(".log")
