"""On another system than Linux every command reports it at its start, with what to use instead."""

from __future__ import annotations

import errno
import re
import subprocess
import sys
from pathlib import Path

import pytest

from plumbline.core import command_line
from plumbline.core.command_line import explain_unsupported_system
from plumbline.core.errors import PlumblineError


@pytest.mark.parametrize(
    ("system", "message"),
    [
        ("darwin", "this is macOS, .* Use a Linux virtual machine, or a Linux container"),
        ("win32", r"Windows.* WSL2 \("),
    ],
)
def test_another_system_is_refused_before_anything_is_tried(
    system: str, message: str, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert explain_unsupported_system() is None
    monkeypatch.setattr(sys, "platform", system)
    with pytest.raises(SystemExit, match=message):
        command_line.run(lambda: pytest.fail("tried"))
    snakefile = (repository / "workflow/rules/config_arguments.smk").read_text()
    with pytest.raises(PlumblineError, match=message):
        exec(compile(snakefile, "config_arguments.smk", "exec"), {"workflow": None})


@pytest.mark.parametrize("megabytes", [150, 220, 511])
def test_a_small_address_space_is_refused_before_numpy_waits_for_more(megabytes: int) -> None:
    """Below 300 MB loading it may never end, and hears no signal."""
    code = "from plumbline.core import command_line; command_line.run(lambda: print('tried'))"
    command = ["bash", "-c", f'ulimit -v {megabytes << 10}; exec "$0" -c "$1"', sys.executable, code]
    process = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert process.returncode == 1 and "tried" not in process.stdout
    assert f" {megabytes} MB" in process.stderr and "ulimit -v" in process.stderr and "Traceback" not in process.stderr


@pytest.mark.parametrize(
    ("error", "named"),
    [
        (BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"), "ulimit -u.*pids.max"),
        (RuntimeError("can't start new thread"), "ulimit -u.*pids.max"),
        (MemoryError(), "ulimit -v"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "Cannot allocate memory.*ulimit -v"),
    ],
)
def test_what_a_full_machine_refuses_is_said_with_its_limit(
    error: Exception, named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise error

    with pytest.raises(SystemExit) as raised:
        command_line.run(fail)
    assert raised.value.code == 1
    assert re.fullmatch(f"error: .*{named}.*repeat.*\n", capsys.readouterr().err)


def test_locks_are_imported_where_nothing_can_lock() -> None:
    """Some modules that lock are run as commands, and imported before anything can be said."""
    source = Path(command_line.__file__).parents[1]
    using = {path for path in source.rglob("*.py") if "import fcntl" in path.read_text()}
    using -= set((source / "verdict/own_trainer/child").iterdir())  # in a user's own Python
    assert using == {source / "core/locks.py"}
    code = "import sys; sys.modules['fcntl'] = None; import plumbline.core.locks"
    subprocess.run([sys.executable, "-c", code], check=True)
