"""Makes one run: ``python -m plumbline.own_trainer.run_one REQUEST.json``.

The command is run by the shell (bash, or else sh) in a session of its own, in the folder that the request names, with
the PATH and the environment of whoever asked. What it prints goes to a log that is kept. How it ended is written to the
result file, whole or not at all. A stop that was asked for, and a disk that is full, say nothing of the arm: then no
result is written, the reason is in the file beside it, and the exit code is 75, so that the run is made again. Used by
the local pool and by the jobs of a profile alike; imports neither numpy nor scipy.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import math
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
from msgspec import Struct

from plumbline.core import command_line, process_record
from plumbline.core.command_line import EXIT_RUN_AGAIN
from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic_write_json, of_disk, read_json
from plumbline.experiment.decision.outcome import CRASHED, DIVERGED, FINISHED, TIMEOUT
from plumbline.own_trainer import fingerprint, metric
from plumbline.own_trainer.trainer_file import MetricPart

#: The form of requests and results.
SCHEMA = 1
#: The variable by which every process of a run is known, and the one that names where the child reports.
TOKEN, REPORT = "PLUMBLINE_RUN", "PLUMBLINE_REPORT"
#: What goes in front of the child's PYTHONPATH.
CHILD = Path(__file__).parent / "child"
#: Seconds between looks at a running log, and those that a run is given to end when it is asked to.
LOOK, GRACE = 5.0, 20.0
#: What a log says of a disk that is full, and what of memory.
_FULL = re.compile(r"No space left on device|Disk quota exceeded|Errno 28\b", re.IGNORECASE)
_MEMORY = re.compile(r"out of memory|OutOfMemory|std::bad_alloc|\bMemoryError\b|oom-kill", re.IGNORECASE)
_STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Request(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a run is asked to be; all paths are absolute.

    Attributes:
        command: with its seed and flags.
        folder: where it is run: the trainer's folder in the arm's copy.
        top: of the user's own tree, and `copy` of the arm's: modules of the first are looked for in the second.
        result, log, progress: files that are written.
        environment: variables beside those that are there.
        devices: CUDA_VISIBLE_DEVICES of the run; left alone if empty.
        timeout: seconds; None without one.
        fingerprint: parts that are known beforehand (the hash of the data).
    """

    run_id: str
    seed: int
    words: str
    command: str
    folder: str
    top: str
    copy: str
    result: str
    log: str
    progress: str
    metric: MetricPart
    environment: dict[str, str] = {}
    devices: str = ""
    timeout: float | None = None
    fingerprint: dict[str, str] = {}
    schema: int = SCHEMA


class Result(Struct, frozen=True, kw_only=True):
    """How a run ended.

    Attributes:
        text: the metric as the trainer wrote it.
        shifted: how many calls that set seeds were shifted, by function.
        tail: the last lines of the log.
        borrowed: modules that came from the user's tree and not from the arm's copy.
    """

    run_id: str
    seed: int
    outcome: str
    value: float | None = None
    text: str = ""
    others: dict[str, float] = {}
    seconds: float = 0.0
    why: str = ""
    fingerprint: dict[str, str] = {}
    host: str = ""
    at: str = ""
    shifted: dict[str, int] = {}
    memory_gb: float | None = None
    borrowed: list[str] = []
    tail: list[str] = []
    log: str = ""
    exit_code: int | None = None
    schema: int = SCHEMA


def read_result(path: Path) -> Result | None:
    """Read a result; None where there is none.

    Raises:
        PlumblineError: it is of a later Plumbline.
    """
    said = read_json(path)
    if said is None:
        return None
    if not isinstance(said, dict) or said.get("schema", SCHEMA + 1) > SCHEMA:
        raise PlumblineError(f"{path} is of a later Plumbline; update this one")
    return msgspec.convert(said, Result)


def interrupted_file(result: Path) -> Path:
    """The file beside a result that says why a run was not made, where that is no fault of its arm."""
    return result.with_suffix(".again.json")


def make(request: Request) -> int:
    """Make a run, and return the exit code: 0 with a result, 75 without one."""
    return _Run(request).make()


class _Run:
    """A run as it is made."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.log = Path(request.log)
        self.stopped: int | None = None
        self.late = False
        self.token = f"{request.run_id}:{secrets.token_hex(8)}"

    def make(self) -> int:
        for number in _STOPS:
            signal.signal(number, self._stop)
        result, reports = Path(self.request.result), Path(f"{self.request.result}.reports")
        interrupted_file(result).unlink(missing_ok=True)
        shutil.rmtree(reports, ignore_errors=True)
        try:
            reports.mkdir(parents=True)
            self.log.parent.mkdir(parents=True, exist_ok=True)
            found = self._made(reports)
            if isinstance(found, Result):
                atomic_write_json(result, msgspec.to_builtins(found))
                return 0
            why = found
        except OSError as error:
            if of_disk(error) is None:
                raise
            why = f"the disk: {error.strerror} ({error.filename})"
        finally:
            shutil.rmtree(reports, ignore_errors=True)
            Path(self.request.progress).unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            atomic_write_json(interrupted_file(result), {"why": why, "tail": metric.last_lines(self.log)})
        print(f"{self.request.words}, seed {self.request.seed}: {why}", file=sys.stderr)
        return EXIT_RUN_AGAIN

    def _made(self, reports: Path) -> Result | str:
        """The result, or why there is none that says anything of the arm."""
        request, began = self.request, time.monotonic()
        shell = shutil.which("bash") or "/bin/sh"
        with open(self.log, "wb") as log:
            try:
                process = subprocess.Popen(
                    [shell, "-c", request.command],
                    cwd=request.folder,
                    env=self._environment(reports),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    preexec_fn=end_with_parent,
                )
            except FileNotFoundError as error:
                return f"{error.filename} is not there"
            code = self._wait(process, began)
        seconds = time.monotonic() - began
        end(process.pid, self.token, 0.0)  # what it left behind holds the device
        if self.stopped is not None:
            return f"it was asked to stop ({signal.Signals(self.stopped).name})"
        if self.late:
            told = f"it was not finished after {request.timeout:g} s, and was stopped"
            return self._result(reports, TIMEOUT, seconds, code, why=told)
        tail = metric.last_lines(self.log)
        said = "\n".join(tail)
        if code and _FULL.search(said):
            return f"the disk is full ({tail[-1]})"
        if code in (-signal.SIGTERM, -signal.SIGINT, -signal.SIGHUP, 143, 130, 129):
            return "something stopped its command by a signal"
        try:
            read = metric.read(request.metric, self.log, Path(request.folder))
        except PlumblineError as error:
            return self._result(reports, CRASHED, seconds, code, why=str(error))
        known = read.value is not None
        if known and not math.isfinite(read.value or 0.0):
            why = f"{request.metric.called} is {read.text}"
            return self._result(reports, DIVERGED, seconds, code, read=read, why=why)
        last = tail[-1] if tail else "it printed nothing"
        if code:
            kind = "out of memory" if _MEMORY.search(said) or code in (-9, 137) else _exit_words(code)
            return self._result(reports, CRASHED, seconds, code, why=f"{kind}: {last}")
        if not known:
            why = f"it ended well and never said {request.metric.called}; its log ends with: {last}"
            return self._result(reports, CRASHED, seconds, code, why=why)
        return self._result(reports, FINISHED, seconds, code, read=read)

    def _result(
        self, reports: Path, outcome: str, seconds: float, code: int, read: metric.Read = metric.Read(), why: str = ""
    ) -> Result:
        request, told = self.request, _reported(reports)
        parts = {**fingerprint.machine(request.devices), **told["versions"], **request.fingerprint}
        return Result(
            run_id=request.run_id,
            seed=request.seed,
            outcome=outcome,
            value=read.value if outcome == FINISHED else None,
            text=read.text,
            others=read.others,
            seconds=seconds,
            why=why,
            fingerprint=parts,
            host=socket.gethostname(),
            at=process_record.now(),
            shifted=told["shifted"],
            memory_gb=told["memory_gb"],
            borrowed=told["borrowed"],
            tail=metric.last_lines(self.log),
            log=request.log,
            exit_code=code,
        )

    def _environment(self, reports: Path) -> dict[str, str]:
        request = self.request
        there = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        path = [str(CHILD), *([before] if (before := _others_path()) else [])]
        named = {"CUDA_VISIBLE_DEVICES": request.devices} if request.devices else {}
        return {
            **there,
            "PYTHONUNBUFFERED": "1",
            **request.environment,
            **named,
            "PYTHONPATH": os.pathsep.join(path),
            TOKEN: self.token,
            REPORT: str(reports),
            "PLUMBLINE_TREE": f"{request.top}{os.pathsep}{request.copy}",
        }

    def _wait(self, process: subprocess.Popen[bytes], began: float) -> int:
        """Wait for the command, look at its log meanwhile, and stop it when its time is over or a stop is asked for."""
        request, looked, readable = self.request, began, True
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(timeout=0.2)
            now = time.monotonic()
            self.late = request.timeout is not None and now - began > request.timeout
            if self.stopped is not None or self.late:
                end(process.pid, self.token, GRACE)
                return process.wait()
            if readable and now - looked >= LOOK:
                looked = now
                readable = self._progress(now - began)

    def _progress(self, seconds: float) -> bool:
        """Write how far the run is; False where its log cannot be read in time, so that nobody tries again."""
        request = self.request
        try:
            read = metric.read(request.metric, self.log, Path(request.folder), most=metric.TAIL, seconds=1.0)
        except PlumblineError:
            return False
        with contextlib.suppress(OSError):
            Path(request.progress).write_text(json.dumps({"seconds": seconds, "value": read.value, "text": read.text}))
        return True

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.stopped = number


def end_with_parent() -> None:
    """Let the kernel kill this process when its parent ends, however that ends."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(1, int(signal.SIGKILL))  # PR_SET_PDEATHSIG


def end(pid: int, token: str, grace: float) -> None:
    """Ask a command's process group to end, and then end everything that carries its token, in whatever session."""
    if grace:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGTERM)
        until = time.monotonic() + grace
        while time.monotonic() < until and carriers(token):
            with contextlib.suppress(ChildProcessError):
                if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) and not carriers(token):
                    break
            time.sleep(0.1)
    for _ in range(20):
        if not (left := carriers(token)):
            return
        for each in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(each, signal.SIGKILL)
        time.sleep(0.05)


def carriers(token: str) -> list[int]:
    """The processes of this machine that carry a run's token in their environment."""
    mark, found = f"{TOKEN}={token}".encode(), []
    for entry in os.listdir("/proc"):
        if entry.isdecimal() and int(entry) != os.getpid():
            try:
                content = Path(f"/proc/{entry}/environ").read_bytes()
            except OSError:
                continue
            if any(each.startswith(mark) for each in content.split(b"\0")) and process_record.started(int(entry)):
                found.append(int(entry))
    return found


def _others_path() -> str:
    """The PYTHONPATH of whoever asked, without what is this package's own."""
    own = str(CHILD)
    return os.pathsep.join(one for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if one and one != own)


def _exit_words(code: int) -> str:
    if code < 0 or 128 < code < 160:
        number = -code if code < 0 else code - 128
        with contextlib.suppress(ValueError):
            return f"ended by {signal.Signals(number).name}"
    return {126: "cannot be executed", 127: "no such command"}.get(code, f"exit code {code}")


def _reported(reports: Path) -> dict[str, Any]:
    """What the Python processes of a run said of themselves, put together."""
    versions: dict[str, str] = {}
    shifted: dict[str, int] = {}
    borrowed: set[str] = set()
    memory: list[float] = []
    for path in sorted(reports.glob("*.json")):
        said = read_json(path)
        if not isinstance(said, Mapping):
            continue
        versions.update({str(key): str(value) for key, value in dict(said.get("versions") or {}).items()})
        for name, count in dict(said.get("shifted") or {}).items():
            shifted[str(name)] = shifted.get(str(name), 0) + int(count)
        borrowed.update(map(str, said.get("borrowed") or ()))
        if isinstance(said.get("memory_gb"), int | float):
            memory.append(float(said["memory_gb"]))
    return {
        "versions": versions,
        "shifted": shifted,
        "borrowed": sorted(borrowed)[:20],
        "memory_gb": max(memory, default=None),
    }


def main() -> int:
    """Make the run of a request, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m plumbline.own_trainer.run_one", description="Makes one run.")
    parser.add_argument("request", type=Path, help="a file that the try wrote")
    parser.add_argument("--end-with", type=int, metavar="PID", help="stop when this process, the parent, has ended")
    given = parser.parse_args()
    if given.end_with:
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None, use_errno=True).prctl(1, int(signal.SIGTERM))
        if os.getppid() != given.end_with:  # it ended before the kernel was asked
            return EXIT_RUN_AGAIN
    try:
        request = msgspec.json.decode(given.request.read_bytes(), type=Request)
    except (OSError, msgspec.DecodeError) as error:
        raise PlumblineError(f"{given.request} is no request of a run ({error}); repeat plumbline try") from None
    return make(request)


if __name__ == "__main__":
    command_line.run(main)
