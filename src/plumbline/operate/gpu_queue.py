"""Gives a job a GPU of this machine to itself: waits for a free one, shows it alone to the job, and becomes the job.

    python -m plumbline.operate.gpu_queue python -m plumbline.train ...
    python -m plumbline.operate.gpu_queue --devices 4 torchrun --standalone --nproc-per-node=4 -m plumbline.train ...

A device is taken by a lock on a file (flock) that this process holds and keeps when it becomes the job (exec), so that
the device is free again when the job has ended, in whatever way. The job sees its devices, and no other, in
CUDA_VISIBLE_DEVICES. profiles/gpus launches jobs through this; clusters have schedulers for it.

Which devices there are says PLUMBLINE_DEVICES (names separated by commas) if it is set, else CUDA_VISIBLE_DEVICES
(indices, or UUIDs of GPUs and MIG instances), else nvidia-smi. The lock files lie in a folder of this user below /tmp,
or where PLUMBLINE_DEVICE_LOCKS says. Other users' jobs, and jobs that were started without this, are not seen.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from plumbline.core import locks
from plumbline.core.command_line import Parser, run
from plumbline.core.errors import PlumblineError

#: Seconds between two checks of devices that are all taken.
EVERY = 0.2
#: Seconds that torchrun gives its ranks to save before it kills them, in place of 30; as many as in profiles/slurm.
SHUTDOWN_SECONDS = 280
#: Where torchrun reads them. A torch that does not know the variable ignores it; the option --shutdown-timeout it would
#: refuse.
SHUTDOWN = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT"


def list_devices() -> list[str]:
    """Name the devices that jobs may use, as CUDA_VISIBLE_DEVICES takes them.

    Raises:
        PlumblineError: there is none.
    """
    for variable in ("PLUMBLINE_DEVICES", "CUDA_VISIBLE_DEVICES"):
        if variable in os.environ:
            names = [name.strip() for name in os.environ[variable].split(",") if name.strip()]
            # To CUDA, -1 ends the list.
            names = names[: names.index("-1")] if "-1" in names else names
            if not names:
                raise PlumblineError(f"{variable} is set and names no device: unset it, or name the devices to use")
            if len(set(names)) < len(names):
                raise PlumblineError(f"{variable}={os.environ[variable]} names a device twice")
            return names
    query = ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"]
    remedy = "name the devices in PLUMBLINE_DEVICES (as in 0,1), or leave out --profile profiles/gpus"
    try:
        process = subprocess.run(query, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise PlumblineError(f"cannot ask nvidia-smi which GPUs there are ({problem}); {remedy}") from None
    names = process.stdout.split()
    if process.returncode or not names:
        output = (process.stderr or process.stdout).strip() or "nothing"
        raise PlumblineError(f"nvidia-smi names no GPU (it says: {output}); {remedy}")
    return names


def lock_folder() -> Path:
    """Make the folder of the lock files, one a user and host, and return it.

    Raises:
        PlumblineError: the folder belongs to somebody else.
    """
    chosen = os.environ.get("PLUMBLINE_DEVICE_LOCKS")
    # Not the temporary folder, nor XDG_RUNTIME_DIR: both may differ between two sessions of one user.
    folder = Path(chosen) if chosen else Path(f"/tmp/plumbline-devices-{os.getuid()}-{socket.gethostname()}")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise PlumblineError(f"{folder} belongs to another user; name a folder of yours in PLUMBLINE_DEVICE_LOCKS")
    return folder


def lock_devices(number: int, names: list[str], folder: Path) -> list[str]:
    """Wait until `number` of the devices are free, and lock them until this process, or what it becomes, ends.

    One process at a time waits at the head of the queue; it keeps what it already has, and nobody else may take
    meanwhile. So two processes can never hold parts of what both need, and one that needs many is not starved by
    those that need one.

    Raises:
        PlumblineError: there are fewer devices than that.
    """
    if number > len(names):
        raise PlumblineError(
            f"--devices {number}: this machine has {len(names)} ({', '.join(names)}); a run of that size needs a "
            f"larger machine, or a smaller `size` in its study's scale"
        )
    descriptors: dict[str, int] = {}
    with open(folder / "queue.lock", "w") as queue:
        locks.lock(queue, wait=True)
        while True:
            for name in names:
                path = folder / f"{name.replace('/', '_')}.lock"
                if name not in descriptors and (descriptor := locks.open_locked(path, 0o600)) is not None:
                    descriptors[name] = descriptor
                if len(descriptors) == number:
                    for descriptor in descriptors.values():
                        os.set_inheritable(descriptor, True)
                    return list(descriptors)
            time.sleep(EVERY)


def count_devices(wildcards: Any) -> int:
    """Choose how many devices of this machine a run gets that a job's wildcards name: one, or all if its size is whole
    nodes.
    """
    from plumbline.project.profiles import size_of

    return 1 if size_of(wildcards) == "one_gpu" else len(list_devices())


def spell_launcher(wildcards: Any) -> str:
    """Spell what comes before `-m plumbline.train` in the command of a run's job (profiles/gpus)."""
    number = count_devices(wildcards)
    if number == 1:
        return "python -m plumbline.operate.gpu_queue python"
    return f"python -m plumbline.operate.gpu_queue --devices {number} torchrun --standalone --nproc-per-node={number}"


def main() -> None:
    """Wait for as many free devices as the command line asks for, then replace this process by the command."""
    parser = Parser("Runs a command with its own GPUs.")
    parser.add_argument("--devices", type=int, default=1, metavar="N", help="how many it needs (default: 1)")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="the command and its arguments")
    options = parser.parse_args()
    if options.devices < 1 or not options.command:
        parser.error("a command that needs at least one device is required")
    if not os.environ.setdefault(SHUTDOWN, str(SHUTDOWN_SECONDS)).isdecimal():
        raise PlumblineError(
            f"{SHUTDOWN}={os.environ[SHUTDOWN]} is not a whole number of seconds: unset it, or set it as in "
            f"{SHUTDOWN}=280"
        )
    locked_devices = lock_devices(options.devices, list_devices(), lock_folder())
    # nvidia-smi counts devices by bus, CUDA by default by speed: without this an index could mean two devices.
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(locked_devices)
    print(f"device {', '.join(locked_devices)} of {socket.gethostname()}", file=sys.stderr, flush=True)
    try:
        os.execvp(options.command[0], options.command)
    except OSError as problem:
        raise PlumblineError(f"cannot run {options.command[0]}: {problem.strerror}") from None


if __name__ == "__main__":
    run(main)
