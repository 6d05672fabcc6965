"""Starts a job from a process that has imported what jobs import, and waits for it:

    python -m plumbline.operate.prefork.client -m plumbline.train ...

An interpreter with torch takes two seconds of a processor before a job's first own line, and a table at demo size has
hundreds of jobs. Where a Snakemake has three or more of them to do, the first one starts a process next to it
(`plumbline.operate.prefork.server`), which imports the packages once, nothing of Plumbline's among them, and each job
is a fork of it: a process of its own, with its own streams, that ends as it would have ended by itself, signals and the
death of this one included. profiles/default launches jobs through this where no other profile is named.

A job starts cold, as the same command by itself, where PLUMBLINE_WARM is not 1 (a Snakemake sets it, by how many jobs
there are to do, unless it is set already), and where the process could not start, or imported a package that begins
CUDA. It is a fork of a process of the same Snakemake, folder, interpreter and environment, down to the last variable,
with the same umask, limits, niceness, class for disks and processors, as `nice`, `ionice`, `taskset` and `ulimit` in a
job's `launch` have it, and with the same packages installed; the first job that differs starts another one. To
Snakemake a job is this process, which is called `job PID` after the fork; `forks` finds that one for Snakemake's
benchmark files.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import Any

from plumbline.core import locks

#: Fewer jobs of a Snakemake do not pay for the imports of a process next to it.
WORTH = 3
#: The variable that says whether jobs are forked: 1 or 0.
_WARM = "PLUMBLINE_WARM"

#: The Snakemake whose job this is; read once, before it can be gone.
_PARENT = os.getppid()
#: Where packages are; importing one may add to it.
_PATH = tuple(sys.path)
#: What /proc/self/status says of all that a process has from the one that starts it, and nothing changes by itself.
_HANDED_DOWN = (
    *("Umask", "Uid", "Gid", "Groups", "SigBlk", "SigIgn", "Cap", "NoNewPrivs", "Seccomp"),
    *("Cpus_allowed_list", "Mems_allowed_list"),
)
#: What this process is called while it waits for a fork of that number: 15 bytes hold every number that Linux gives.
_NAME = "job {}"
_SET_NAME = 15  # of prctl(2)
#: The number of the system call ioprio_get(2), which neither Python nor /proc has.
_IOPRIO_GET = {"x86_64": 252, "aarch64": 31}
#: What a person sends to a job.
_PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)


def main() -> None:
    """Run the job that the command line names, in a fork of the server or by itself, and end as the job ends."""
    arguments = sys.argv[1:]
    place = socket_place() if os.environ.get(_WARM) == "1" else None
    channel = None if place is None else _connect(place)
    if channel is None and place is not None:
        _await_server(place)
        channel = _connect(place)
    code = None if channel is None else _wait_for_job(channel, arguments)
    if code is None:
        os.execv(sys.executable, [sys.executable, *arguments])
    assert code is not None
    _end_as(code)


def announce_jobs(launches: Iterable[object]) -> None:
    """Have the jobs that begin with these words forked if they are many enough; called before any of them starts."""
    jobs = sum(__name__ in str(command) for command in launches)
    os.environ.setdefault(_WARM, "1" if jobs >= WORTH else "0")


def socket_place(folder: Path | None = None, parent: int = _PARENT) -> Path | None:
    """Find the place of the socket for jobs like this one, in a folder that this user alone may open.

    Its name stands for all that such jobs have in common with the process that they are forked from, which never
    changes what it was started with: a limit that was lowered could not be raised again. None if there is no such
    folder, or that cannot be told.

    Args:
        parent: the Snakemake whose jobs they are.
    """
    folder = folder or Path(f"/tmp/plumbline-prefork-{os.getuid()}")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
        since = Path(f"/proc/{parent}/stat").read_text().rpartition(")")[2].split()[19]
        facts = [parent, since, os.getcwd(), sys.executable, list(sys.flags), _list_inherited(), _list_packages()]
    except OSError:
        return None
    if status.st_uid != os.getuid() or status.st_mode & 0o077:
        return None
    # What the shell says of the command itself is no part of an environment.
    environment = sorted((name, value) for name, value in os.environ.items() if name != "_")
    return folder / hashlib.sha256(json.dumps([*facts, environment]).encode()).hexdigest()[:24]


def forks(names: Iterable[str]) -> list[int]:
    """List the processes that the clients among processes of these names wait for."""
    prefix, _, suffix = _NAME.partition("{}")
    numbers = (name.removeprefix(prefix).removesuffix(suffix) for name in names if name.startswith(prefix))
    return [int(number) for number in numbers if number.isdecimal()]


def _list_inherited() -> list[Any]:
    """What a process has from the one that starts it, in addition to folder and environment."""
    status = Path("/proc/self/status").read_text().splitlines()
    limits = [(name, resource.getrlimit(getattr(resource, name))) for name in dir(resource) if name[:7] == "RLIMIT_"]
    scheduled = [os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0), os.sched_getparam(0).sched_priority]
    if call := _IOPRIO_GET.get(os.uname().machine):
        scheduled.append(ctypes.CDLL(None).syscall(call, 1, 0))  # its class for disks, of `ionice`
    texts = [Path(f"/proc/self/{name}").read_text() for name in ("cgroup", "oom_score_adj", "personality")]
    return [[line for line in status if line.startswith(_HANDED_DOWN)], limits, scheduled, texts]


def _list_packages() -> list[tuple[str, int]]:
    """What pip writes of each package when it installs or removes one."""
    packages = []
    for entry in _PATH:
        with contextlib.suppress(OSError), os.scandir(entry or ".") as files:
            for file in files:
                if file.name.endswith((".dist-info", ".egg-info", ".pth")):
                    packages.append((file.path, file.stat().st_mtime_ns))
    return sorted(packages)


def _connect(place: Path) -> socket.socket | None:
    for number in (0, 1, 2):  # a stream that is closed would be the channel; a job that starts cold does not inherit it
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        channel.connect(str(place))
    except OSError:
        channel.close()
        return None
    return channel


def _await_server(place: Path) -> None:
    """Start the process next to Snakemake if none was started before, and wait until it listens or has ended.

    Until then it holds a lock, so that jobs which start meanwhile wait too, and import nothing themselves.
    """
    with contextlib.suppress(OSError):  # a full disk is nothing that a job that can start cold should end for
        with open(f"{place}.starts", "ab") as starts:
            locks.lock(starts, wait=True)
            if os.fstat(starts.fileno()).st_size:
                return
            starts.write(b".")
            starts.flush()
            with open(f"{place}.log", "ab") as log:
                line = [sys.executable, "-m", "plumbline.operate.prefork.server"]
                subprocess.Popen(
                    [*line, str(place), str(_PARENT), str(starts.fileno())], pass_fds=[starts.fileno()],
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                ).wait()  # fmt: skip
        with open(f"{place}.starts", "rb") as starts:
            locks.lock(starts, wait=True, shared=True)


def _wait_for_job(channel: socket.socket, arguments: list[str]) -> int | None:
    """The exit code of the job with `arguments`; minus the signal that ended it. None if it could not be begun."""

    def pass_on(number: int, frame: FrameType | None) -> None:
        channel.send(str(number).encode())

    def stop_along(number: int, frame: FrameType | None) -> None:
        channel.send(str(int(signal.SIGSTOP)).encode())
        os.kill(os.getpid(), signal.SIGSTOP)

    try:
        socket.send_fds(channel, [json.dumps(arguments).encode()], [0, 1, 2])
    except OSError:  # for instance longer than a socket takes
        return None
    try:
        for number in _PASSED_ON:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, pass_on)
        if signal.getsignal(signal.SIGTSTP) is not signal.SIG_IGN:
            signal.signal(signal.SIGTSTP, stop_along)
            signal.signal(signal.SIGCONT, pass_on)
        answer = channel.recv(100)
        if answer.startswith(b"pid "):
            ctypes.CDLL(None).prctl(_SET_NAME, _NAME.format(answer.split()[1].decode()).encode())
            answer = channel.recv(100)
    except OSError as error:
        sys.exit(f"a forked job was lost ({error}); run the same command again")
    if not answer:
        sys.exit("a forked job was lost: the process that forked it is gone; run the same command again")
    return None if answer == b"cold" else int(answer)


def _end_as(code: int) -> None:
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    sys.exit(code)


if __name__ == "__main__":
    main()
