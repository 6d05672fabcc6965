"""Makes runs on this machine, one a device, each by a process of its own that ends with this one."""

from __future__ import annotations

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

from plumbline.core.command_line import EXIT_RUN_AGAIN
from plumbline.core.files import atomic_write_json, read_json
from plumbline.verdict.own_trainer.requests import read_request
from plumbline.verdict.own_trainer.run_one import GRACE

#: Seconds between two lines that say how far a run is.
TOLD_EVERY = 30.0


def pool(devices: Sequence[str], requests: Sequence[Path], tell: Callable[[str], None]) -> Iterator[Path]:
    """Make runs, one a device, and give each request when its run has ended, with a result or without.

    Raises:
        SystemExit: with EXIT_RUN_AGAIN after a SIGTERM; the runs have ended then.
    """
    waiting, free = list(requests)[::-1], list(devices)[::-1]
    running: dict[Path, tuple[subprocess.Popen[bytes], str, float]] = {}
    with _asked_to_stop() as asked:
        try:
            while waiting or running:
                while waiting and free:
                    path, device = waiting.pop(), free.pop()
                    running[path] = (_started(path, device), device, time.monotonic())
                for path, (process, device, told) in list(running.items()):
                    if process.poll() is not None:
                        del running[path]
                        free.append(device)
                        yield path
                    elif time.monotonic() - told > TOLD_EVERY:
                        running[path] = (process, device, time.monotonic())
                        say_progress(path, tell)
                if asked:
                    raise SystemExit(EXIT_RUN_AGAIN)
                time.sleep(0.05)
        except (KeyboardInterrupt, SystemExit):
            tell("stopped; the same command goes on (finished runs are used)")
            raise
        finally:
            for process, _, _ in running.values():
                process.terminate()
            for process, _, _ in running.values():
                with suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=2 * GRACE)


def say_progress(path: Path, tell: Callable[[str], None]) -> None:
    """Tell how far the run of a request is, with its last metric."""
    request = read_request(path)
    said = read_json(request.progress)
    if isinstance(said, dict) and "seconds" in said:
        last = f"; its last line: {said['last'].strip()}" if said.get("last") else ""
        at = f"{request.metric.called} {said['text']}" if said.get("text") else f"no metric yet{last}"
        tell(f"{request.words}, seed {request.seed}: {said['seconds']:.0f} s, {at}")


def _started(path: Path, device: str) -> subprocess.Popen[bytes]:
    if device:
        request = msgspec.structs.replace(read_request(path), devices=device)
        atomic_write_json(path, msgspec.to_builtins(request))
    command = [sys.executable, "-m", "plumbline.verdict.own_trainer.run_one", str(path), "--end-with", str(os.getpid())]
    # A session of its own: Ctrl-C is this process's to pass on.
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True)


@contextmanager
def _asked_to_stop() -> Iterator[list[int]]:
    """Hold a SIGTERM back; yields a list that then holds it."""
    heard: list[int] = []

    def hear(number: int, frame: FrameType | None) -> None:
        heard.append(number)

    if threading.current_thread() is not threading.main_thread():
        yield heard
        return
    before = signal.signal(signal.SIGTERM, hear)
    try:
        yield heard
    finally:
        signal.signal(signal.SIGTERM, before)
