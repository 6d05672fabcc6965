"""Snakemakes, verbs and jobs that start warm: a process imports what they need, and each start is a fork of it.

What a start imports takes over a second of a processor, with torch two and more, and tests start Snakemake some two
hundred times. A fork begins as `python -m` goes on once that is imported, before anything of Plumbline, which it finds
by the PYTHONPATH that it is given. Who is interested in the process (its group, its imports, its command line) starts a
real one.

A Snakemake's job server (`plumbline.operate.prefork.server`) is such a fork too: there before the first job, and
without imports of its own.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

#: What starts of a program import of others: Snakemake's with it, those of Plumbline's verbs and jobs.
IMPORTED = {
    "snakemake": (
        *("snakemake.cli", "snakemake.workflow", "snakemake.profiles", "snakemake.report.html_reporter"),
        *("dpath", "filecmp", "jinja2", "jsonschema", "msgspec", "platformdirs", "smart_open", "yte"),
    ),
    "plumbline": (
        *("lm_eval.evaluator", "lm_eval.tasks", "matplotlib.pyplot", "msgspec", "pandas", "pyarrow.parquet"),
        *("safetensors.torch", "scipy.stats", "tokenizers", "torch", "yaml"),
    ),
}
#: What packages read when they are imported, as every project of the tests and the product's own server have it.
READ_AT_IMPORT = dict.fromkeys(
    ("OMP_NUM_THREADS", "HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "TQDM_DISABLE", "PYTORCH_NVML_BASED_CUDA_CHECK"), "1"
)
#: The folder at the end of PYTHONPATH and the variable by which jobs of a Snakemake find its job server.
SITE, ADDRESS = Path(__file__).with_name("warm_site"), "WARM_JOBS"
#: Of prctl(2).
SET_DEATH_SIGNAL = 1


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


def start_job_servers() -> str:
    """Where a Snakemake finds its job server, whose environment says so as `ADDRESS`, with `SITE` in PYTHONPATH."""
    _start_server("plumbline")
    return _name_address(os.getpid())


def _name_address(process: int) -> str:
    return f"plumbline-tests-{process}"


@cache
def _start_server(program: str) -> socket.socket:
    """The way to this process's server of a program."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    # PYTHONPATH is not on its path, nor the folder of this file for long: what tests run comes with each start.
    clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | READ_AT_IMPORT
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        if program == "plumbline":
            listener.bind(f"\0{_name_address(os.getpid())}")
            listener.listen(64)
        server = subprocess.Popen(
            [sys.executable, __file__, program, str(theirs.fileno()), str(listener.fileno())],
            env=clean,
            pass_fds=[theirs.fileno(), listener.fileno()],
            stdin=subprocess.DEVNULL,
        )
    theirs.close()
    atexit.register(server.wait)
    atexit.register(ours.close)  # the last one registered is the first one called
    return ours


def _serve(program: str, channel: socket.socket, listener: socket.socket) -> None:
    del sys.path[0]
    for name in IMPORTED[program]:
        importlib.import_module(name)
    imported = {name.partition(".")[0] for name in sys.modules}
    assert not imported & {"plumbline", "snakemake_logger_plugin_plumbline"}, "the fork's own come with PYTHONPATH"
    gc.freeze()
    # Python looks for garbage every 700 objects; a start makes a million, most of which stay.
    gc.set_threshold(20_000, 20, 20)
    os.fsync = lambda descriptor: None  # as in the tests' own process: a run waits for the disk fifty times
    if program == "plumbline" and not os.fork():
        channel.close()
        _serve_job_servers(listener)
    listener.close()
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
    _move(request)
    if program == "snakemake":  # where it was imported, otherwise; it has no other way to say it
        sys.modules["snakemake.workflow"].Workflow._rundir = request["cwd"]  # noqa: SLF001
    sys.argv = [request["name"], *request["words"]]
    runpy.run_module(request["name"], run_name="__main__", alter_sys=True)


def _move(request: dict[str, Any]) -> None:
    """Be where a request comes from, as `python -m` begins there."""
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    paths = [path for path in request["environment"].get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[:0] = [request["cwd"], *paths]


def _serve_job_servers(listener: socket.socket) -> None:
    """Fork a job server for each Snakemake that asks for one."""
    ctypes.CDLL(None).prctl(SET_DEATH_SIGNAL, signal.SIGTERM)
    answers: dict[str, bytes] = {}
    while True:
        asking, _ = listener.accept()
        request = json.loads(asking.recv(1 << 20))
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        place = request["place"]
        if place not in answers:
            told, tells = os.pipe()
            if not os.fork():
                listener.close()
                asking.close()
                _be_job_server(Path(place), request, tells)
            os.close(tells)
            answers[place] = os.read(told, 10)
            os.close(told)
        asking.send(answers[place])
        asking.close()


def _be_job_server(place: Path, request: dict[str, Any], tells: int) -> None:
    """Be the job server of a Snakemake, or a job of it, to the end. It says that it will be there if what jobs have in
    common is the same here: those that have other limits or another niceness start by themselves."""
    os.setsid()
    with open(f"{place}.log", "ab") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    _move(request)
    from plumbline.operate.prefork import client, server

    alike = client.socket_place(place.parent, request["parent"]) == place
    os.write(tells, b"alike" if alike else b"other")
    os.close(tells)
    job = server.serve(place, request["parent"], preloaded=()) if alike else None
    if job is not None:
        server.run(job)
    os._exit(0)


if __name__ == "__main__":
    _serve(sys.argv[1], *(socket.socket(fileno=int(number)) for number in sys.argv[2:]))
