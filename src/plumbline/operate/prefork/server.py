"""Forks a process for each job from one that has imported the packages already.

`plumbline.operate.prefork.client` starts it. It imports packages of others alone, so that a job runs the code that lies
there when it starts; it has no thread but its first one, so that a fork is whole; it never begins CUDA, which no fork
of a process that has could use; and it ends with the Snakemake that it is for, its last job having ended.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from plumbline.core.live_processes import read_start_time
from plumbline.operate.prefork import client

#: What training, probes, evaluation and tables import.
PRELOADED = (
    "numpy",
    "torch",
    "pandas",
    "pyarrow.parquet",
    "safetensors.torch",
    "msgspec",
    "tokenizers",
    "lm_eval.evaluator",
    "lm_eval.tasks",
    "scipy.special",
)

#: The allocator of pyarrow's has a thread that it takes down and up again around a fork.
_FORKS_ALONG = {"jemalloc_bg_thd"}

# Of prctl(2).
_SET_DEATH_SIGNAL, _SET_NAME = 1, 15
_STALE_SECONDS = 7 * 86400


def serve(place: Path, watched: int, preloaded: Sequence[str] = PRELOADED, lock: int | None = None) -> list[str] | None:
    """Fork a process for each job that is requested at `place`, until process `watched` is gone.

    Args:
        lock: an open file with the lock that clients wait for, which is let go once they can connect.

    Returns:
        In a job: the arguments of its command line. None in the end.
    """
    _sweep(place.parent)
    since = read_start_time(watched)
    if since is None:
        return None
    environment = dict(os.environ)
    os.environ.setdefault("TQDM_DISABLE", "1")  # as evaluation has it, which tqdm reads when it is imported
    # Asked whether there is a GPU, torch then asks the driver's management library, where it can, and begins no CUDA.
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
    for name in preloaded:
        try:
            importlib.import_module(name)
        except Exception as error:  # a job that needs it will report it
            print(f"{name}: {error!r}", file=sys.stderr)
    os.environ.clear()  # some set variables
    os.environ.update(environment)
    threads = {Path(f"/proc/self/task/{task}/comm").read_text().strip() for task in os.listdir("/proc/self/task")
               if int(task) != os.getpid()}  # fmt: skip
    if threads - _FORKS_ALONG:
        print(
            f"jobs are not forked: imports started threads ({sorted(threads)}), which a fork does not have",
            file=sys.stderr,
        )
        return None
    if "/libcuda.so" in Path("/proc/self/maps").read_text():
        print("jobs are not forked: imports loaded CUDA's driver, and a fork could not use a GPU", file=sys.stderr)
        return None
    if client.socket_place(place.parent, watched) != place:
        print("jobs are not forked: packages or what a process inherits changed during the imports", file=sys.stderr)
        return None
    gc.collect()
    gc.freeze()  # a collection would write into pages that jobs share
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(str(place))
    listener.listen(64)
    if lock is not None:
        os.close(lock)
    wakeup_read, wakeup_write = os.pipe()
    for end in (wakeup_read, wakeup_write):
        os.set_blocking(end, False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(wakeup_write, warn_on_full_buffer=False)
    waiting = selectors.DefaultSelector()
    waiting.register(listener, selectors.EVENT_READ)
    waiting.register(wakeup_read, selectors.EVENT_READ)
    jobs: dict[socket.socket, int] = {}
    while jobs or read_start_time(watched) == since:
        for key, _ in waiting.select(timeout=1.0):
            if key.fileobj is listener:
                try:
                    channel, _ = listener.accept()
                except OSError:  # too many files are open: until a job has ended
                    time.sleep(0.1)
                    continue
                arguments = _fork(channel, jobs)
                if arguments is not None:  # in the job
                    waiting.close()
                    for inherited in (listener, *jobs):
                        inherited.close()
                    os.close(wakeup_read)
                    os.close(wakeup_write)
                    return arguments
                if channel in jobs:
                    waiting.register(channel, selectors.EVENT_READ)
            elif key.fileobj is wakeup_read:
                with contextlib.suppress(BlockingIOError):
                    os.read(wakeup_read, 4096)
            elif key.fileobj in jobs:
                _pass_on(key.fileobj, jobs[key.fileobj])
        for channel in _collect_ended(jobs):
            waiting.unregister(channel)
            channel.close()
            del jobs[channel]
    for ending in ("", ".starts", ".log"):
        Path(f"{place}{ending}").unlink(missing_ok=True)
    return None


def _fork(channel: socket.socket, jobs: dict[socket.socket, int]) -> list[str] | None:
    """Read a request and fork it: its arguments in the fork, None here. Who is nobody of ours gets no answer; where
    no process can be had, the client is told to be the job: those that run are not to end for it."""
    credentials = channel.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    message, child = b"", None
    streams: list[int] = []
    if struct.unpack("3i", credentials)[1] == os.getuid():
        try:
            message, streams, _, _ = socket.recv_fds(channel, 1 << 20, 3)
            if len(streams) == 3:
                child = os.fork()
        except OSError as error:
            print(f"a job is not forked: {error}", file=sys.stderr)
        if child is None and message:
            with contextlib.suppress(OSError):
                channel.send(b"cold")
    if child == 0:
        arguments: list[str] = json.loads(message)
        _become_a_job(arguments, channel, streams)
        return arguments
    for stream in streams:
        os.close(stream)
    if child is None:
        channel.close()
    else:
        with contextlib.suppress(OSError):  # its client is gone, which is noticed when it is polled
            channel.send(f"pid {child}".encode())
        jobs[channel] = child
    return None


def _become_a_job(arguments: list[str], channel: socket.socket, streams: list[int]) -> None:
    os.setsid()
    libc = ctypes.CDLL(None)
    libc.prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
    libc.prctl(_SET_NAME, arguments[1].encode())  # what `top` shows
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    channel.close()
    for stream, number in zip(streams, (0, 1, 2)):
        os.dup2(stream, number)
        os.close(stream)
    # Of Plumbline a job sees what lies there when it starts.
    for name in [name for name in sys.modules if name.partition(".")[0] == "plumbline"]:
        del sys.modules[name]


def _pass_on(channel: socket.socket, child: int) -> None:
    """Give a job the signal that its client was given; where the client is gone, so is the job."""
    try:
        message = channel.recv(100)
    except OSError:
        message = b""
    with contextlib.suppress(ProcessLookupError):
        if message and int(message) in (signal.SIGSTOP, signal.SIGCONT):
            os.killpg(child, int(message))
        elif message:
            os.kill(child, int(message))
        else:
            os.killpg(child, signal.SIGKILL)


def _collect_ended(jobs: dict[socket.socket, int]) -> list[socket.socket]:
    """The jobs that have ended, whose clients get the exit code."""
    ended = []
    for channel, child in jobs.items():
        process, status = os.waitpid(child, os.WNOHANG)
        if process:
            with contextlib.suppress(OSError):
                channel.send(str(os.waitstatus_to_exitcode(status)).encode())
            ended.append(channel)
    return ended


def _sweep(folder: Path) -> None:
    """Take away what Snakemakes that are long gone left."""
    for path in folder.iterdir():
        with contextlib.suppress(OSError):
            if time.time() - path.lstat().st_mtime > _STALE_SECONDS:
                path.unlink()


def run(arguments: list[str]) -> NoReturn:
    """Run a module with its arguments as `python WORDS` does, and end this process without unloading the packages.

    Unloading them takes longer than a fork has saved.
    """
    assert arguments[0] == "-m", "jobs are modules"
    sys.argv = arguments[1:]
    code, interrupted = 0, False
    try:
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    except SystemExit as ending:
        if ending.code is not None and not isinstance(ending.code, int):
            print(ending.code, file=sys.stderr)
        code = ending.code if isinstance(ending.code, int) else int(ending.code is not None)
    except BaseException as error:
        if error.__traceback__ is not None:
            error.__traceback__ = error.__traceback__.tb_next  # without this frame
        sys.excepthook(type(error), error, error.__traceback__)
        code, interrupted = 1, isinstance(error, KeyboardInterrupt)
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except ValueError:  # closed by the job
            pass
        except OSError:
            code = 120  # as an interpreter that cannot say its last words
    if interrupted:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    os._exit(code & 0xFF)


if __name__ == "__main__":
    if os.fork():  # no child of the job that starts it, whose benchmark would count it
        os._exit(0)
    request = serve(Path(sys.argv[1]), int(sys.argv[2]), lock=int(sys.argv[3]))
    if request is not None:
        run(request)
