"""Snakemakes and verbs that start warm: a process imports what they need, and each start is a fork of that process.

What a start imports takes over a second of a processor, and tests start Snakemake some two hundred times. A fork begins
as `python -m` goes on once that is imported, before anything of Plumbline, which it finds by the PYTHONPATH that it is
given. Who is interested in the process (its group, its imports, its command line) starts a real one.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import runpy
import socket
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

#: What starts of a program import of others: Snakemake's with it, those of Plumbline's verbs.
IMPORTED = {
    "snakemake": (
        *("snakemake.cli", "snakemake.workflow", "snakemake.profiles", "snakemake.report.html_reporter"),
        *("dpath", "filecmp", "jinja2", "jsonschema", "msgspec", "platformdirs", "smart_open", "yte"),
    ),
    "plumbline": ("msgspec", "pandas", "pyarrow.parquet", "scipy.stats", "torch", "yaml"),
}


def module(
    name: str, args: tuple[str, ...], cwd: Path, environment: dict[str, str], *, timeout: float, together: bool
) -> subprocess.CompletedProcess[str]:
    """Run `python -m NAME WORDS` in a folder and wait for it, its streams `together` in stdout or each in its own."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        request = json.dumps({"name": name, "words": args, "cwd": str(cwd), "environment": environment}).encode()
        channel = _start_server(name.partition(".")[0])
        channel.settimeout(timeout)
        socket.send_fds(channel, [request], [out.fileno(), (out if together else errors).fileno()])
        answer = channel.recv(100)
        assert answer, f"the process that starts {name} has ended"
        outputs = []
        for file in (out, errors):
            file.seek(0)
            outputs.append(file.read().decode())
    return subprocess.CompletedProcess([name, *args], int(answer), *outputs)


@cache
def _start_server(program: str) -> socket.socket:
    """The way to this process's server of a program."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    # Neither PYTHONPATH nor the folder of this file is on its path: what tests run comes with each start.
    clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {"OMP_NUM_THREADS": "1"}
    server = subprocess.Popen(
        [sys.executable, "-P", __file__, program, str(theirs.fileno())],
        env=clean,
        pass_fds=[theirs.fileno()],
        stdin=subprocess.DEVNULL,
    )
    theirs.close()
    atexit.register(server.wait)
    atexit.register(ours.close)  # the last one registered is the first one called
    return ours


def _serve(program: str, channel: socket.socket) -> None:
    for name in IMPORTED[program]:
        importlib.import_module(name)
    imported = {name.partition(".")[0] for name in sys.modules}
    assert not imported & {"plumbline", "snakemake_logger_plugin_plumbline"}, "the fork's own come with PYTHONPATH"
    gc.freeze()
    # Python looks for garbage every 700 objects; a start makes a million, most of which stay.
    gc.set_threshold(20_000, 20, 20)
    while True:
        message, streams, _, _ = socket.recv_fds(channel, 1 << 20, 2)
        if not message:
            return
        child = os.fork()
        if not child:
            break
        for stream in streams:
            os.close(stream)
        _, status = os.waitpid(child, 0)
        channel.send(str(os.waitstatus_to_exitcode(status)).encode())
    channel.close()
    for stream, number in zip(streams, (1, 2)):
        os.dup2(stream, number)
        os.close(stream)
    request = json.loads(message)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    if program == "snakemake":  # where it was imported, otherwise; it has no other way to say it
        sys.modules["snakemake.workflow"].Workflow._rundir = request["cwd"]  # noqa: SLF001
    paths = [path for path in request["environment"].get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[:0] = [request["cwd"], *paths]
    sys.argv = [request["name"], *request["words"]]
    runpy.run_module(request["name"], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _serve(sys.argv[1], socket.socket(fileno=int(sys.argv[2])))
