"""A copy of the project that a test may run, edit and break."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv", ".snakemake", "work", "logs", "results", "__pycache__", ".*_cache", "*.egg-info", ".hypothesis"
)


@dataclass(frozen=True)
class Project:
    """A project folder and how to run things in it."""

    root: Path

    @classmethod
    def copy(cls, source: Path, target: Path) -> Project:
        """Copy the sources of a project, products left out."""
        shutil.copytree(source, target, ignore=LEFT_OUT, symlinks=True)
        return cls(target)

    @property
    def environment(self) -> dict[str, str]:
        """This interpreter, this copy's package, one thread, and no hub."""
        return os.environ | {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(self.root / "src"),
            "OMP_NUM_THREADS": "1",
            "HF_HUB_OFFLINE": "1",
            "HF_DATASETS_OFFLINE": "1",
        }

    def command(self, *arguments: str) -> list[str]:
        """A Snakemake command line."""
        return [sys.executable, "-m", "snakemake", *arguments]

    def snakemake(self, *arguments: str, timeout: float = 900) -> subprocess.CompletedProcess[str]:
        """Run Snakemake in this project and wait for it."""
        return subprocess.run(
            self.command(*arguments),
            cwd=self.root,
            env=self.environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout,
        )

    def planned(self, *arguments: str) -> dict[str, int]:
        """Jobs by rule that a dry run would start; empty when there is nothing to be done."""
        done = self.snakemake("--dry-run", *arguments)
        assert done.returncode == 0, done.stdout[-4000:]
        return jobs_by_rule(done.stdout)

    def edit(self, file: str, before: str, after: str) -> None:
        """Replace text that must stand in a file."""
        path = self.root / file
        text = path.read_text()
        assert before in text, f"{before!r} is not in {file}"
        path.write_text(text.replace(before, after, 1))


def jobs_by_rule(output: str) -> dict[str, int]:
    """The job table that Snakemake prints, without its total."""
    tables = re.findall(r"Job stats:\n.*?\n-+ +-+\n(.*?)\n\n", output, flags=re.S)
    if not tables:
        assert "Nothing to be done" in output, output[-4000:]
        return {}
    rows = dict(re.findall(r"^(\w+) +(\d+)$", tables[0], flags=re.M))
    return {rule: int(count) for rule, count in rows.items() if rule != "total"}
