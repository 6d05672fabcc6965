"""Begins the processes of runs, one a device, and ends what a run has started: known by a token that its environment
carries, by its session, or by its descent.

Launchers (torchrun) put their workers into their own sessions, which a signal to a process group does not reach. A
process that leaves its session and clears its environment is known by its descent, as long as the process that makes
the run is there, which adopts it (`adopt_orphans`). What cannot be found: such a process after a kill -9 of its
maker, and what another program starts for the run (a container's daemon, ssh, at).
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

import msgspec

from plumbline.core import process_record
from plumbline.core.command_line import EXIT_RUN_AGAIN
from plumbline.core.files import atomic_write_json, read_json
from plumbline.verdict.own_trainer.requests import read_request

#: The variable by which every process of a run is known, and the one that names where its Python processes report.
TOKEN, REPORT = "PLUMBLINE_RUN", "PLUMBLINE_REPORT"
#: Seconds that a run is given to end when it is asked to.
GRACE = 20.0
#: Seconds between two lines that report how far a run is.
TOLD_EVERY = 30.0


def end_with_parent(number: int = signal.SIGKILL) -> None:
    """Let the kernel send this process a signal when its parent ends, however that ends."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(1, int(number))  # PR_SET_PDEATHSIG


def adopt_orphans() -> bool:
    """Become the parent of descendants that lose theirs, so that they can be found; False where the kernel cannot."""
    with suppress(OSError, AttributeError):
        return bool(ctypes.CDLL(None, use_errno=True).prctl(36, 1, 0, 0, 0) == 0)  # PR_SET_CHILD_SUBREAPER
    return False


def end(mark: str, grace: float, leader: int) -> None:
    """Ask everything that carries a mark to end, in whatever session, everything of a leader's session, whatever it
    carries (`env -i`), and every descendant of this process; and end at once what is still there after a grace (in
    seconds).
    """
    until = time.monotonic() + grace
    for each in list_carriers(mark, leader) if grace else ():
        with suppress(ProcessLookupError, PermissionError):
            os.kill(each, signal.SIGTERM)
    while time.monotonic() < until and list_carriers(mark, leader):
        time.sleep(0.1)
    kill_carriers(mark, leader)


def kill_carriers(mark: str, leader: int | None = None) -> int:
    """End the processes of `list_carriers` at once; returns how many processes did."""
    killed: set[int] = set()
    for _ in range(40):  # a process may start another one meanwhile
        if not (alive := list_carriers(mark, leader)):
            break
        killed.update(alive)
        for each in alive:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(each, signal.SIGKILL)
        time.sleep(0.05)
    return len(killed)


def list_carriers(mark: str, leader: int | None = None) -> list[int]:
    """The processes of this machine whose environment has a variable that begins with a mark, `NAME=value...`; where a
    leader is named, also those of its session, and the descendants of this process, which began it.
    """
    begin, processes, kin = mark.encode(), [], set() if leader is None else _list_descendants()
    for entry in os.listdir("/proc"):
        if entry.isdecimal() and int(entry) != os.getpid():
            content, session = b"", 0
            with suppress(OSError):  # another user's, or gone
                session = os.getsid(int(entry))
                content = Path(f"/proc/{entry}/environ").read_bytes()
            is_carrier = (
                session == leader or int(entry) in kin or any(each.startswith(begin) for each in content.split(b"\0"))
            )
            if (
                is_carrier and process_record.read_start_time(int(entry)) is not None
            ):  # None: it has ended and waits to be noticed
                processes.append(int(entry))
    return processes


def _list_descendants() -> set[int]:
    children: dict[int, list[int]] = {}
    for entry in filter(str.isdecimal, os.listdir("/proc")):
        with suppress(OSError):
            parent = Path(f"/proc/{entry}/stat").read_text(errors="replace").rpartition(")")[2].split()[1]
            children.setdefault(int(parent), []).append(int(entry))
    descendants, queue = set[int](), [os.getpid()]
    while queue:
        offspring = children.get(queue.pop(), [])
        descendants.update(offspring)
        queue += offspring
    return descendants


def pool(devices: Sequence[str], requests: Sequence[Path], tell: Callable[[str], None]) -> Iterator[Path]:
    """Make runs, one a device, and give each request when its run has ended, with a result or without.

    Raises:
        SystemExit: with EXIT_RUN_AGAIN after a SIGTERM; the runs have ended then.
    """
    queue, free_devices = list(requests)[::-1], list(devices)[::-1]
    jobs: dict[Path, tuple[subprocess.Popen[bytes], str, float]] = {}
    with _gather_stops() as stops:
        try:
            while queue or jobs:
                while queue and free_devices:
                    path, device = queue.pop(), free_devices.pop()
                    jobs[path] = (_start_run(path, device), device, time.monotonic())
                for path, (process, device, last_report) in list(jobs.items()):
                    if process.poll() is not None:
                        del jobs[path]
                        free_devices.append(device)
                        yield path
                    elif time.monotonic() - last_report > TOLD_EVERY:
                        jobs[path] = (process, device, time.monotonic())
                        say_progress(path, tell)
                if stops:
                    raise SystemExit(EXIT_RUN_AGAIN)
                time.sleep(0.05)
        except (KeyboardInterrupt, SystemExit):
            tell("stopped; the same command goes on (finished runs are used)")
            raise
        finally:
            for process, _, _ in jobs.values():
                process.terminate()
            for process, _, _ in jobs.values():
                with suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=2 * GRACE)


def say_progress(path: Path, tell: Callable[[str], None]) -> None:
    """Report how far the run of a request is, with its last metric."""
    request = read_request(path)
    progress = read_json(request.progress)
    if isinstance(progress, dict) and "seconds" in progress:
        last = f"; its last line: {progress['last'].strip()}" if progress.get("last") else ""
        at = f"{request.metric.called} {progress['text']}" if progress.get("text") else f"no metric yet{last}"
        tell(f"{request.words}, seed {request.seed}: {progress['seconds']:.0f} s, {at}")


def _start_run(path: Path, device: str) -> subprocess.Popen[bytes]:
    if device:
        request = msgspec.structs.replace(read_request(path), devices=device)
        atomic_write_json(path, msgspec.to_builtins(request))
    # -P: no module of the user's folder, in which this is called, is imported in place of Python's.
    command = [sys.executable, "-P", "-m", "plumbline.verdict.own_trainer.run_one", str(path)]
    command += ["--end-with", str(os.getpid())]
    # A session of its own: Ctrl-C is this process's to pass on.
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True)


@contextmanager
def _gather_stops() -> Iterator[list[int]]:
    """Hold a SIGTERM back; yields a list that then holds it."""
    stops: list[int] = []

    def hear(number: int, frame: FrameType | None) -> None:
        stops.append(number)

    if threading.current_thread() is not threading.main_thread():
        yield stops
        return
    old_handler = signal.signal(signal.SIGTERM, hear)
    try:
        yield stops
    finally:
        signal.signal(signal.SIGTERM, old_handler)
