"""Runs of a folder's trainer that start warm: a process imports what makes a run, and each run is a fork of it.

What `run_one` imports takes a third of a second of a processor, more than a made-up trainer does, and a try makes a
dozen runs. Tries that are killed (`tests/verdict/own_trainer/test_killed.py`) start real processes.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from plumbline.core import command_line
from plumbline.verdict.own_trainer import processes, run_one

#: Seconds between two looks at the runs that go on: they are short.
LOOK = 0.01


class WarmRun:
    """A fork that makes a run, with what a pool asks of a process."""

    def __init__(self, server: socket.socket, command: Sequence[str], **streams: object) -> None:
        *python, request, _, _ = command
        assert python == [sys.executable, "-P", "-m", run_one.__name__], command
        self._code: int | None = None
        self._end, end = os.pipe()
        message = {"request": request, "cwd": os.getcwd(), "environment": dict(os.environ)}
        socket.send_fds(server, [json.dumps(message).encode()], [end])
        os.close(end)
        self._process = int(server.recv(20))

    def poll(self) -> int | None:
        """The exit code, or None while it runs."""
        if self._code is None and select.select([self._end], [], [], 0)[0]:
            self._code = int(os.read(self._end, 20) or -signal.SIGKILL)
            os.close(self._end)
        return self._code

    def terminate(self) -> None:
        """Ask it to stop."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self._process, signal.SIGTERM)

    def wait(self, timeout: float) -> int:
        """Wait for its end, and return the exit code."""
        if self.poll() is None and not select.select([self._end], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired("run_one", timeout)
        return self.poll() or 0


@contextmanager
def start_warm() -> Iterator[None]:
    """Let the runs of every pool start warm, and be looked at often."""
    with pytest.MonkeyPatch.context() as patch:
        warm = {**vars(subprocess), "Popen": partial(WarmRun, _start_server())}
        patch.setattr(processes, "subprocess", SimpleNamespace(**warm))
        often = SimpleNamespace(monotonic=time.monotonic, sleep=lambda seconds: time.sleep(min(seconds, LOOK)))
        patch.setattr(processes, "time", often)
        yield


@cache
def _start_server() -> socket.socket:
    """The way to this process's server."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
    command = [sys.executable, "-m", __name__, str(theirs.fileno())]
    server = subprocess.Popen(command, cwd=Path(__file__).parent.parent, pass_fds=[theirs.fileno()], **quiet)
    theirs.close()
    atexit.register(server.wait)
    atexit.register(ours.close)  # the last one registered is the first one called
    return ours


def _serve(channel: socket.socket) -> None:
    processes.end_with_parent()
    os.fsync = lambda descriptor: None  # as in the tests' own process
    gc.freeze()
    while True:
        message, (*ends,), _, _ = socket.recv_fds(channel, 1 << 20, 1)
        if not message:
            return
        server = os.getpid()
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if child := os.fork():
            channel.send(str(child).encode())
            os.close(ends[0])
            continue
        os.set_inheritable(ends[0], False)
        os.setsid()
        run = json.loads(message)
        os.chdir(run["cwd"])
        os.environ.clear()
        os.environ.update(run["environment"])
        sys.argv = [run_one.__name__, run["request"], "--end-with", str(server)]
        code: object = 1
        try:
            command_line.run(run_one.main)
        except SystemExit as error:
            code = error.code
        os.write(ends[0], str(code).encode())
        os._exit(0)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
