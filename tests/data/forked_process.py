"""Work in a fork of the tests' process, which may be killed: a process of its own takes seconds to import this much."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable


def run_in_fork(work: Callable[[], None]) -> subprocess.CompletedProcess[str]:
    """Run a function in a fork, with the code and the output of a process of its own."""
    with tempfile.TemporaryFile("w+") as stdout, tempfile.TemporaryFile("w+") as stderr:
        child = os.fork()
        if not child:
            code = 1
            try:
                for stream, number in ((stdout, 1), (stderr, 2)):
                    os.dup2(stream.fileno(), number)
                sys.stdout, sys.stderr = stdout, stderr
                work()
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                stdout.flush()
                stderr.flush()
                os._exit(code)
        _, status = os.waitpid(child, 0)
        outputs = []
        for stream in (stdout, stderr):
            stream.seek(0)
            outputs.append(stream.read())
    return subprocess.CompletedProcess([], os.waitstatus_to_exitcode(status), *outputs)
