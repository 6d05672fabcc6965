"""Starts a job from a process that has imported what jobs import, and waits for it:

    python -m plumbline.operate.prefork.client -m plumbline.train ...

An interpreter with torch takes two seconds of a processor before a job's first own line, and a table at demo size has
hundreds of jobs. The third job of a Snakemake starts a process next to it (`plumbline.operate.prefork.server`), which
imports the packages once, nothing of Plumbline's among them, and each job after that is a fork of it: a process of its
own, with its own streams, that ends as it would have ended by itself, signals and the death of this one included.
profiles/default launches jobs through this where no other profile is named.

A job starts cold, as the same command by itself, where there is no such process yet, or none of the same Snakemake,
folder, interpreter and environment, down to the last variable, or where a package begins CUDA when it is imported; and
always with PLUMBLINE_WARM=0. Nor is it a fork of a process that began with another umask, other limits, another
niceness, another class for disks or on other processors, as `nice`, `ionice`, `taskset` and `ulimit` in a job's
`launch` have it, or before a package was installed: three such jobs have a process of their own. To Snakemake a job is
this process, which is called `job PID` after the fork; `forks` finds that one for Snakemake's benchmark files.
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

#: The job of a Snakemake that starts the process next to it: a few jobs do not pay for its imports.
WORTH = 3

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
    place = None if os.environ.get("PLUMBLINE_WARM") == "0" else socket_place()
    channel = None if place is None else _connect(place)
    if channel is None and place is not None:
        _count(place)
    code = None if channel is None else _wait_for_job(channel, arguments)
    if code is None:
        os.execv(sys.executable, [sys.executable, *arguments])
    assert code is not None
    _end_as(code)


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
        alike = [parent, since, os.getcwd(), sys.executable, list(sys.flags), _list_inherited(), _list_packages()]
    except OSError:
        return None
    if status.st_uid != os.getuid() or status.st_mode & 0o077:
        return None
    # What the shell says of the command itself is no part of an environment.
    environment = sorted((name, value) for name, value in os.environ.items() if name != "_")
    return folder / hashlib.sha256(json.dumps([*alike, environment]).encode()).hexdigest()[:24]


def forks(names: Iterable[str]) -> list[int]:
    """List the processes that the clients among processes of these names wait for."""
    before, _, after = _NAME.partition("{}")
    numbers = (name.removeprefix(before).removesuffix(after) for name in names if name.startswith(before))
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


def _count(place: Path) -> None:
    """Note a cold start, and with the right one start the process next to Snakemake, for the jobs to come."""
    try:
        with open(f"{place}.starts", "ab") as starts:
            starts.write(b".")
            starts.flush()
            count = starts.tell()  # where this dot ends, whatever another job has added since
        if count == WORTH:
            with open(f"{place}.log", "ab") as log:
                subprocess.Popen(
                    [sys.executable, "-m", "plumbline.operate.prefork.server", str(place), str(_PARENT)],
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                ).wait()  # fmt: skip
    except OSError:
        return  # a full disk is nothing that a job that can start cold should end for


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
