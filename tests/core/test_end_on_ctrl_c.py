"""Ctrl-C ends a program of ours by its signal, wherever it comes, and a disk that fails ends it in one line."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from plumbline.core import command_line

#: In the place of a package that is being imported when Ctrl-C comes.
INTERRUPTED = "import os, signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\nos.kill(os.getpid(), 2)\n"


@pytest.mark.parametrize(
    ("package", "args"),
    [
        ("numpy", ["-m", "plumbline.data.pack"]),
        ("msgspec", ["-m", "plumbline.train"]),
        ("yaml", ["bin/plumbline", "ls"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_import_that_is_interrupted_is_not_traced(tmp_path: Path, package: str, args: list[str]) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / f"{package}.py").write_text(INTERRUPTED)
    (tmp_path / "bin/plumbline").write_text("from plumbline.cli import main\nmain()\n")
    path = os.pathsep.join([str(tmp_path), str(Path(command_line.__file__).parents[2])])
    if args[0] != "-m":
        args = [str(tmp_path / args[0]), *args[1:]]
    process = subprocess.run([sys.executable, *args], env={"PYTHONPATH": path}, capture_output=True, text=True)
    assert (process.returncode, process.stdout, process.stderr) == (-signal.SIGINT, "", "")


def test_snakemake_is_not_traced_while_it_reads_the_rules(repository: Path, tmp_path: Path) -> None:
    rules = repository / "workflow/rules/config_arguments.smk"
    (tmp_path / "Snakefile").write_text(f'include: "{rules}"\nraise KeyboardInterrupt\n')
    process = subprocess.run([sys.executable, "-m", "snakemake", "-n"], cwd=tmp_path, capture_output=True, text=True)
    assert (process.returncode, process.stdout, process.stderr) == (-signal.SIGINT, "", "")


def test_a_verb_that_is_interrupted_twice_is_not_traced() -> None:
    program = (
        "import signal, time; from plumbline.core import command_line\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "def main():\n"
        "    try:\n"
        "        print('at work', flush=True); time.sleep(60)\n"
        "    finally:\n"
        "        print('leaving', flush=True); time.sleep(60)\n"
        "command_line.run(main)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    for line in ("at work\n", "leaving\n"):
        assert process.stdout.readline() == line
        process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=30)
    assert (process.returncode, stderr) == (-signal.SIGINT, "")


@pytest.mark.parametrize("number", [errno.EIO, errno.EROFS, errno.ESTALE])
def test_a_disk_that_fails_ends_a_verb_in_one_line(number: int, capsys: pytest.CaptureFixture[str]) -> None:
    def main() -> None:
        raise OSError(number, os.strerror(number), "work/paper/tokens.npy")

    with pytest.raises(SystemExit, match="1"):
        command_line.run(main)
    stderr = capsys.readouterr().err
    assert stderr.startswith("error: work/paper/tokens.npy: ") and f"({os.strerror(number)}):" in stderr
    assert stderr.count("\n") == 1
