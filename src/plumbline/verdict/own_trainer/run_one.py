"""Makes one run: ``python -m plumbline.verdict.own_trainer.run_one REQUEST.json``.

The command is run by the shell (bash, or else sh) in a session of its own, in the folder that the request names, with
the PATH and the environment of whoever asked. What it prints goes to a log that is kept. How the parts of its pipelines
and its Python processes ended is read, whatever the shell makes of that. How it ended is written to the result file,
whole or not at all. A stop
that was requested, a disk that is full and a command that does not exist prove nothing of the arm: then no result is
written, the reason is in the file next to it, and the exit code is 75, so that the run is made again. Used by the local
pool and by the jobs of a profile alike; imports neither numpy nor scipy.
"""

from __future__ import annotations

import contextlib
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
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import msgspec

from plumbline.core import command_line, locks, process_record
from plumbline.core.command_line import EXIT_RUN_AGAIN
from plumbline.core.errors import PlumblineError
from plumbline.core.files import FULL, atomic_write_json, find_disk_error, read_json
from plumbline.verdict.decision.experiment import CRASHED, DIVERGED, FINISHED, TIMEOUT
from plumbline.verdict.own_trainer import (
    fingerprint,
    first_values,
    metric,
    process_ends,
    ranks,
    run_end,
    watched_files,
)
from plumbline.verdict.own_trainer.git_call import LEAST_FREE
from plumbline.verdict.own_trainer.processes import GRACE, TOKEN, adopt_orphans, end, end_with_parent
from plumbline.verdict.own_trainer.requests import (
    NO_COMMAND,
    Request,
    Result,
    interruption_file,
    read_request,
    read_result,
)
from plumbline.verdict.own_trainer.run_environment import hold_temporary_folder, make_environment

#: Seconds between checks of a running log.
LOOK = 2.0
#: What a log states of a disk that is full, and how that stands in what is kept of a run that was not made.
_FULL = re.compile(r"No space left on device|Disk quota exceeded|Errno 28\b", re.IGNORECASE)
SAYS_FULL = "full"
#: What a log states of memory.
_MEMORY = re.compile(r"out of memory|OutOfMemory|std::bad_alloc|\bMemoryError\b|oom-kill", re.IGNORECASE)
_STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
#: How a shell ends where it, or its command, was stopped by one of these.
_STOPPED = frozenset(code for number in _STOPS for code in (-number, 128 + number))


class _NotOfTheArm(Exception):
    """Why a run was not made, where that proves nothing of its arm; with the exit code by which that was seen, or
    `SAYS_FULL` where its log alone says so.
    """

    def __init__(self, why: str, code: int | str | None = None) -> None:
        super().__init__(why)
        self.code = code


def make(request: Request, *, of_pool: bool = False) -> int:
    """Make a run, and return the exit code: 0 with a result, 75 without one."""
    return _Run(request, of_pool=of_pool).make()


class _Run:
    """A run as it is made."""

    def __init__(self, request: Request, *, of_pool: bool) -> None:
        self.request, self.of_pool = request, of_pool
        self.log = Path(request.log)
        self.reports = Path(request.result).with_suffix(".reports")
        self.stopped: int | None = None
        self.late = False
        self.adopts = adopt_orphans()
        self.code_before: int | str | None = None
        self.before = watched_files.Look()
        self.touched: list[str] = []
        self.changed_fixed: list[str] = []
        self.changed_records: list[str] = []
        self.left_out = metric.LeftOut()
        self.left_running: set[int] = set()
        self.remarks: list[str] = []
        self.parts: list[process_ends.PartEnd] = []
        self.shell = 0
        self.end = run_end.LogEnd()
        self.printed: int | None = None
        self.first: list[str] | None = None
        self.began = 0.0
        self.temporary = Path()
        self.token = f"{request.run_id}:{secrets.token_hex(8)}"

    def make(self) -> int:
        for number in _STOPS:
            signal.signal(number, self._stop)
        result = Path(self.request.result)
        note, code = interruption_file(result), None
        try:
            for folder in (result.parent, self.log.parent):
                folder.mkdir(parents=True, exist_ok=True)
            with self._lock_run(result.with_suffix(".lock")):
                self.code_before = (read_json(note) or {}).get("code")
                note.unlink(missing_ok=True)
                old_result = read_result(result)
                if old_result is not None and old_result.outcome == FINISHED:
                    return 0  # by a job that outlived its try, or whose node was lost and came back
                shutil.rmtree(self.reports, ignore_errors=True)
                self.reports.mkdir()
                try:
                    with hold_temporary_folder(result.with_suffix(".tmp")) as self.temporary:
                        atomic_write_json(result, msgspec.to_builtins(self._run_command()))
                    return 0
                finally:
                    metric.shorten(self.log)
                    shutil.rmtree(self.reports, ignore_errors=True)
                    Path(self.request.progress).unlink(missing_ok=True)
        except _NotOfTheArm as error:
            why, code = str(error), error.code
        except OSError as error:
            if find_disk_error(error) is None:
                raise
            why = f"the disk: {error.strerror} ({error.filename})"
        with contextlib.suppress(OSError):
            atomic_write_json(note, {"why": why, "code": code, "tail": metric.last_lines(self.log)})
        if self.stopped is None or not self.of_pool:  # the pool reports itself that it was stopped
            print(f"{self.request.words}, seed {self.request.seed}: {why}", file=sys.stderr)
        return EXIT_RUN_AGAIN

    @contextlib.contextmanager
    def _lock_run(self, path: Path) -> Iterator[None]:
        """Wait for a process that makes this very run: one of an earlier try may be about to end."""
        until = time.monotonic() + 2 * GRACE
        with open(path, "a") as file:
            while True:
                try:
                    locks.lock(file)
                    break
                except BlockingIOError:
                    if self.stopped is not None or time.monotonic() > until:
                        raise _NotOfTheArm(f"another process makes this run, and holds {path}") from None
                    time.sleep(0.2)
            yield

    def _run_command(self) -> Result:
        """Run the command to its end, and return how it ended."""
        request, began = self.request, time.monotonic()
        bash = shutil.which("bash")
        parts = self.reports / process_ends.PIPELINE_FILE
        if not bash and "|" in request.command:
            self.remarks.append("there is no bash here: how the parts of its pipeline ended is not known")
        if not os.path.isdir(request.folder):
            raise _NotOfTheArm(f"its copy is gone ({request.folder})")
        for stale in request.metric.files:  # what the commit has of them is not of this run
            if not (path := Path(request.folder, stale)).is_dir():
                path.unlink(missing_ok=True)
        self.before = watched_files.scan(request.shared)
        self.began = time.time()
        folder, copy = Path(request.result).parent.parent, Path(request.copy)
        fixed, records = watched_files.hash_files(copy, request.fixed), watched_files.read_stamps(folder)
        watched_files.ask_for_readers(self.reports, request.fixed)
        with open(self.log, "wb") as log:
            process = subprocess.Popen(
                [bash or "/bin/sh", "-c", process_ends.note_parts(request.command, parts) if bash else request.command],
                cwd=request.folder,
                env=make_environment(request, temporary=self.temporary, reports=self.reports, token=self.token),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=end_with_parent,
            )
            code = self._wait(process, began)
        ends = process_ends.read_pipeline(parts, code, request.command)
        code, self.parts, self.shell = ends.code, ends.parts, process.pid
        self.left_running = process_ends.list_running(self.reports)
        seconds = time.monotonic() - began
        end(self._mark, 0.0, process.pid)  # what it left behind holds the device
        self.touched = watched_files.list_touched(self.before)
        self.changed_fixed = watched_files.list_differing(fixed, watched_files.hash_files(copy, request.fixed))
        self.changed_records = watched_files.list_differing(records, watched_files.read_stamps(folder))
        self._keep_file()
        if self.stopped is not None:
            raise _NotOfTheArm(f"it was asked to stop ({signal.Signals(self.stopped).name})")
        if self.late:
            why = f"it was not finished after {request.timeout:g} s, and was stopped"
            if not self.adopts:
                why += " (this kernel cannot find what left its session and cleared its environment)"
            return self._result(TIMEOUT, seconds, code, why=why)
        tail = metric.last_lines(self.log)
        if code:
            self._require_of_the_arm(code, tail)
        try:
            output = metric.read(request.metric, self.log, Path(request.folder), left_out=self.left_out)
        except PlumblineError as error:
            return self._result(CRASHED, seconds, code, why=str(error))
        if not request.metric.files:
            texts = ranks.read_rank_texts(request.metric, self.reports)
            output, remark = ranks.choose_first_rank(output, texts, request.metric.called)
            self.remarks += [remark] if remark else []
        if output.value is not None and not math.isfinite(output.value):
            return self._result(DIVERGED, seconds, code, output, f"{request.metric.called} is {output.text}")
        last = tail[-1] if tail else "it printed nothing"
        if code:
            kind = "out of memory" if any(map(_MEMORY.search, tail)) else NO_COMMAND.get(code) or _describe_exit(code)
            return self._result(CRASHED, seconds, code, output, f"{kind}: {last}")
        if output.value is None:
            place = request.metric.json or request.metric.file or "what it printed"
            size = self.left_out.unread
            place += f" (but for {size:,} bytes that it printed faster than they could be read)" if size else ""
            way = "a part of its pipeline had no reader left (SIGPIPE)" if ends.no_reader else "it ended well"
            why = f"{way}, and {request.metric.called} is nowhere in {place}; its log ends with: {last}"
            return self._result(CRASHED, seconds, code, output, why)
        gap = self.left_out.end
        self.end = run_end.read(request.metric, self.log, Path(request.folder), begin=gap, end=self.printed)
        if self.end.unread:
            self.remarks.append("what it printed at its end could not be read in time for signs of a failure")
        self.remarks += [f"it printed {sign}, which counts for nothing" for sign in self.end.beside]
        if self.end.diverged:
            why = f"with its last {request.metric.called}, {output.text}, or after it, it printed {self.end.diverged}"
            return self._result(DIVERGED, seconds, code, output, f"it was not finished: {why}")
        self.first = first_values.read_first_values(request.metric, self.log, Path(request.folder))
        return self._result(FINISHED, seconds, code, output)

    def _keep_file(self) -> None:
        """Put the file that the command printed to, which goes with the copy, into the log that is kept."""
        path = Path(self.request.folder, self.request.metric.file)
        self.printed = self.log.stat().st_size
        if self.request.metric.file and path.is_file():
            with open(path, "rb") as file, open(self.log, "ab") as log:
                shutil.copyfileobj(file, log)

    def _require_of_the_arm(self, code: int, tail: list[str]) -> None:
        """Refuse an end that proves nothing of the arm."""
        last = f": {tail[-1]}" if tail else ""
        if code in _STOPPED and code != self.code_before:  # a second time it is how the arm ends
            raise _NotOfTheArm(f"something stopped its command by a signal ({_describe_exit(code)})", code)
        says_full = any(map(_FULL.search, tail))
        where = [str(self.log.parent), self.request.folder]
        where += [str(self.temporary), *self.request.shared] if says_full else []
        for folder in where:
            if is_full(folder, probe=says_full):
                raise _NotOfTheArm(f"the disk of {folder} is full{last}")
        if says_full and self.code_before != SAYS_FULL:  # there is room: a second time it is how the arm ends
            raise _NotOfTheArm(f"its log says that the disk is full{last}", SAYS_FULL)

    def _result(
        self, outcome: str, seconds: float, code: int, output: metric.LoggedMetric | None = None, why: str = ""
    ) -> Result:
        request, reports, output = self.request, fingerprint.read_reports(self.reports), output or metric.LoggedMetric()
        ends = process_ends.read(
            self.reports,
            self.log,
            left_running=self.left_running,
            silent=bool(request.metric.files),
            parts=self.parts,
            shell=self.shell,
        )
        remarks = (
            [f"{process_ends.describe_failed_processes(ends.others)}, which counts for nothing"] if ends.others else []
        )
        outside = watched_files.read_outside_files(self.reports, self.began)
        return Result(
            run_id=request.run_id,
            seed=request.seed,
            outcome=outcome,
            value=output.value if outcome == FINISHED else None,
            text=output.text,
            others=output.others,
            seconds=seconds,
            why=why,
            fingerprint={**fingerprint.read_machine(request.devices), **reports["versions"], **request.fingerprint},
            host=socket.gethostname(),
            at=process_record.now(),
            shifted=reports["shifted"],
            memory_gb=reports["memory_gb"],
            **{name: reports[name] for name in fingerprint.LISTED},
            touched=self.touched,
            looked_at=len(self.before.files),
            unseen=bool(self.before.left),
            tail=metric.last_lines(self.log),
            log=request.log,
            exit_code=code,
            failed=ends.of_output,
            failed_beside=ends.others,
            ended_at_once=ends.at_once,
            signs=self.end.signs,
            place=self.end.place,
            interval=self.end.interval,
            last=self.end.last,
            last_held_out=self.end.last_held_out,
            remarks=[*self.remarks, *remarks],
            printed_first=self.first,
            began=self.began,
            read_outside=outside.read if outside else None,
            written_outside=outside.written if outside else None,
            readers=watched_files.list_readers(self.reports),
            changed_fixed=self.changed_fixed,
            changed_records=self.changed_records,
        )

    @property
    def _mark(self) -> str:
        return f"{TOKEN}={self.token}"

    def _wait(self, process: subprocess.Popen[bytes], began: float) -> int:
        """Wait for the command, check its log meanwhile, and stop it when its time is over or a stop is requested."""
        request, last_look, readable = self.request, began, True
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(timeout=0.2)
            self.left_out = metric.bound(self.log, request.metric, self.left_out)
            now = time.monotonic()
            self.late = request.timeout is not None and now - began > request.timeout
            if self.stopped is not None or self.late:
                end(self._mark, GRACE, process.pid)
                return process.wait()
            if readable and now - last_look >= LOOK:
                last_look = now
                readable = self._progress(now - began)

    def _progress(self, seconds: float) -> bool:
        """Write how far the run is; False where its log cannot be read in time, so that nobody tries again."""
        request = self.request
        try:
            output = metric.read(request.metric, self.log, Path(request.folder), most=metric.TAIL, seconds=1.0)
        except PlumblineError:
            return False
        with contextlib.suppress(OSError):
            last = metric.last_lines(self.log, count=1, width=100)
            progress = {"seconds": seconds, "text": output.text, "last": last[0] if last else ""}
            Path(request.progress).write_text(json.dumps(progress))
        return True

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.stopped = number


def is_full(folder: str, *, probe: bool) -> bool:
    """Whether a file system that can be written has no room; `probe`: try it, since only that meets a quota."""
    try:
        file_system = os.statvfs(folder)
        if file_system.f_flag & os.ST_RDONLY:
            return False
        if file_system.f_bavail * file_system.f_frsize < LEAST_FREE:
            return True
        if probe and os.path.isdir(folder):
            with tempfile.TemporaryFile(dir=folder) as file:
                file.write(bytes(LEAST_FREE))
    except OSError as error:
        return error.errno in FULL
    return False


def _describe_exit(code: int) -> str:
    number = -code if code < 0 else code - 128
    if 0 < number < 65:
        with contextlib.suppress(ValueError):
            name = signal.Signals(number).name
            return f"killed ({name}, as where memory runs out)" if name == "SIGKILL" else f"ended by {name}"
    return f"exit code {code}"


def main() -> int:
    """Make the run of a request, and return the exit code."""
    parser = command_line.Parser("Makes one run.")
    parser.add_argument("request", type=Path, help="a file that the try wrote")
    parser.add_argument("--end-with", type=int, metavar="PID", help="stop when this process, the parent, has ended")
    options = parser.parse_args()
    if options.end_with:
        end_with_parent(signal.SIGTERM)
        if os.getppid() != options.end_with:  # it ended before the kernel was asked
            return EXIT_RUN_AGAIN
    return make(read_request(options.request), of_pool=bool(options.end_with))


if __name__ == "__main__":
    command_line.run(main)
