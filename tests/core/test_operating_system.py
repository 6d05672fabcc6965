"""On another system than Linux every command says so at its start, with what to use instead."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from plumbline.core import command_line
from plumbline.core.errors import PlumblineError
from plumbline.core.operating_system import unsupported

#: Modules that lock; some are run as commands, and imported before anything can be said.
LOCKING = (
    "train.checkpoint.run_lock",
    "operate.locks.workflow_lock",
    "operate.gpu_queue",
    "experiment.decision.bank",
    "core.append_only_log",
    "data.verify_files",
    "data.folder_lock",
    "train.monitoring.mlflow",
    "own_trainer.folder",
    "own_trainer.profile_runs",
    "own_trainer.run_one",
)


@pytest.mark.parametrize(
    ("system", "said"),
    [
        ("darwin", "this is macOS, .* Use a Linux virtual machine, or a Linux container"),
        ("win32", r"Windows.* WSL2 \("),
    ],
)
def test_another_system_is_refused_before_anything_is_tried(
    system: str, said: str, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert unsupported() is None
    monkeypatch.setattr(sys, "platform", system)
    with pytest.raises(SystemExit, match=said):
        command_line.run(lambda: pytest.fail("tried"))
    snakefile = (repository / "workflow/rules/config_arguments.smk").read_text()
    with pytest.raises(PlumblineError, match=said):
        exec(compile(snakefile, "config_arguments.smk", "exec"), {"workflow": None})


def test_what_locks_can_be_imported_where_there_is_nothing_to_lock_with() -> None:
    modules = ", ".join(f"plumbline.{module}" for module in LOCKING)
    subprocess.run([sys.executable, "-c", f"import sys; sys.modules['fcntl'] = None; import {modules}"], check=True)
    source = Path(command_line.__file__).parents[1]
    using = {path for path in source.rglob("*.py") if "import fcntl" in path.read_text()}
    using -= set((source / "own_trainer/child").iterdir())  # in a user's own Python, where an error is suppressed
    locking = {source / f"{module.replace('.', '/')}.py" for module in LOCKING}
    assert using == locking | {source / "core/operating_system.py"}
