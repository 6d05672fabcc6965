"""Commands on the device that is not there, in forks of a process that has it: to compile its guard and to import torch
and what makes the rows takes ten seconds."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


class WarmDevice:
    """The process, which answers one command after another."""

    def __init__(self, requests: IO[str], answers: IO[str], folder: Path) -> None:
        self.requests, self.answers, self.folder = requests, answers, folder

    def run(self, module: str, *args: str) -> subprocess.CompletedProcess[str]:
        """Run `python -m MODULE WORDS` on the device."""
        out, errors = self.folder / "out", self.folder / "errors"
        print(json.dumps([module, args, str(out), str(errors)]), file=self.requests, flush=True)
        answer = self.answers.readline()
        assert answer, "the process with the device has ended"
        return subprocess.CompletedProcess([module, *args], int(answer), out.read_text(), errors.read_text())


@contextmanager
def start_device(folder: Path, repository: Path) -> Iterator[WarmDevice]:
    """Start the process, and end it."""
    command = [sys.executable, "-m", "tests.fake_device.warm_device"]
    with subprocess.Popen(command, cwd=repository, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin and process.stdout
        yield WarmDevice(process.stdin, process.stdout, folder)
        process.stdin.close()


def _serve() -> None:
    from benchmarks.fake_device import absent_cuda

    absent_cuda.enter()
    from benchmarks.fake_device import compiled_step, method_rows  # noqa: F401

    absent_cuda.enter = lambda: None  # a fork has entered
    for line in sys.stdin:
        module, args, *streams = json.loads(line)
        child = os.fork()
        if not child:
            for number, path in enumerate(streams, 1):
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
            sys.argv = [module, *args]
            runpy.run_module(module, run_name="__main__", alter_sys=True)
            return
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    _serve()
