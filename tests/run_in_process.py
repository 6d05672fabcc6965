"""A verb's command line in the process of the tests: a separate process takes two seconds of a processor to begin."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from plumbline.core import command_line


def run(main: Callable[[], int | None], *args: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a verb's main function with these words, in a folder, as `python -m` does once it is imported."""
    command, code = ["verb", *map(str, args)], None
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as out:
        patch.chdir(cwd)
        patch.setattr(sys, "argv", command)
        with redirect_stderr(io.StringIO()) as errors:
            try:
                command_line.run(main)
            except SystemExit as end:
                code = end.code
    assert isinstance(code, int), code
    return subprocess.CompletedProcess(command, code, out.getvalue(), errors.getvalue())
