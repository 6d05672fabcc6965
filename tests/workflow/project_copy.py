"""A copy of the project that a test may run, edit and break."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests import warm_processes

STUDY = "studies/transfer/study.yaml"
#: What `pip --python PYTHON` has another Python run: this environment's pip, started once.
PIP_ELSEWHERE = Path(sysconfig.get_path("purelib")) / "pip/__pip-runner__.py"
#: What a copy leaves out: made things at the root, caches everywhere.
MADE = {".git", ".venv", ".snakemake", "work", "logs", "results", ".hypothesis", ".mirror"}
CACHES = shutil.ignore_patterns("__pycache__", ".*_cache", "*.egg-info")
#: Compiled modules are what a copy keeps: they hold for a source of this time and size, wherever it lies, and every
#: Snakemake and verb that starts in the copy would compile the package anew.
CACHES_BUT_COMPILED = shutil.ignore_patterns(".*_cache", "*.egg-info")


@dataclass(frozen=True)
class Project:
    """A project folder and how to run things in it."""

    root: Path
    #: A folder of installed packages in addition to those of this interpreter.
    packages: Path | None = None

    @classmethod
    def copy(cls, source: Path, target: Path) -> Project:
        """Copy the sources of a project, products left out."""

        def leave_out(folder: str, names: list[str]) -> set[str]:
            return CACHES_BUT_COMPILED(folder, names) | (MADE & set(names) if Path(folder) == source else set())

        shutil.copytree(source, target, ignore=leave_out, symlinks=True)
        return cls(target)

    @property
    def environment(self) -> dict[str, str]:
        """This interpreter, this copy's package, one thread, jobs that start warm, and no hub."""
        paths = (self.root / "src", self.packages, warm_processes.SITE)
        return os.environ | {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(str(path) for path in paths if path),
            warm_processes.ADDRESS: warm_processes.start_job_servers(),
            "OMP_NUM_THREADS": "1",
            "HF_HUB_OFFLINE": "1",
            "HF_DATASETS_OFFLINE": "1",
        }

    def python(self, *arguments: str, timeout: float = 900) -> subprocess.CompletedProcess[str]:
        """Run a Python command in this project and wait for it; both streams are in `stdout`. Snakemake and the verbs
        start warm, beyond their imports of others."""
        if arguments[0] == "-m" and arguments[1].partition(".")[0] in warm_processes.IMPORTED:
            name, *options = arguments[1:]
            return warm_processes.module(
                name, tuple(options), self.root, self.environment, timeout=timeout, together=True
            )
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=self.root,
            env=self.environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout,
        )

    def snakemake(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run Snakemake in this project and wait for it; its own account is shown, not what a person sees."""
        return self.python("-m", "snakemake", *arguments, "--printshellcmds")

    def start_snakemake(self, *arguments: str, log: Path | None = None) -> subprocess.Popen[bytes]:
        """Start Snakemake as the leader of a process group of its own; its output goes into the file `log`.

        It hears Ctrl-C, though what a shell puts into the background (these tests, perhaps) ignores it. Its first jobs
        are processes of the group, as a user's are.
        """
        environment = {key: value for key, value in self.environment.items() if key != warm_processes.ADDRESS}
        with open(log or os.devnull, "wb") as stream:
            return subprocess.Popen(
                [sys.executable, "-m", "snakemake", *arguments],
                cwd=self.root,
                env=environment,
                stdout=stream,
                stderr=stream,
                start_new_session=True,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )

    def planned(self, *arguments: str) -> dict[str, int]:
        """Jobs by rule that a dry run would start; empty when there is nothing to be done."""
        process = self.snakemake("--dry-run", *arguments)
        assert process.returncode == 0, process.stdout[-4000:]
        return jobs_by_rule(process.stdout)

    def read(self, file: str) -> Any:
        """A JSON file's content."""
        return json.loads((self.root / file).read_text())

    def edit(self, file: str, before: str, after: str) -> None:
        """Replace text that must stand in a file."""
        path = self.root / file
        text = path.read_text()
        assert before in text, f"{before!r} is not in {file}"
        path.write_text(text.replace(before, after, 1))

    def local_corpus(self, name: str = "climbmix", folder: str = "texts") -> None:
        """Let a corpus read a folder of made-up texts, as `--config data={source: local}` then does."""
        write_corpus(self.root / folder)
        self.edit(f"config/corpora/{name}.yaml", 'local: {folder: ""}', f"local: {{folder: {folder}}}")

    @contextmanager
    def changed(self, change: Callable[[dict[str, Any]], Any], file: str = STUDY) -> Iterator[None]:
        """Change the content of a YAML file, comments and layout lost, for the time of a block."""
        path = self.root / file
        original = path.read_text()
        content = yaml.safe_load(original)
        change(content)
        path.write_text(yaml.safe_dump(content, sort_keys=False))
        try:
            yield
        finally:
            path.write_text(original)


def jobs_by_rule(output: str) -> dict[str, int]:
    """The job table that Snakemake prints, without its total."""
    tables = re.findall(r"Job stats:\n.*?\n-+ +-+\n(.*?)\n\n", output, flags=re.S)
    if not tables:
        assert "Nothing to be done" in output, output[-4000:]
        return {}
    rows = dict(re.findall(r"^(\w+) +(\d+)$", tables[0], flags=re.M))
    return {rule: int(count) for rule, count in rows.items() if rule != "total"}


def jobs_of_studies(output: str, rule: str) -> Counter[str]:
    """Number of jobs of a rule for each study, from what Snakemake prints of each job."""
    return Counter(re.findall(rf"^ +log: logs/\w+/{rule}/(\w+)\.", output, flags=re.M))


def jobs_by_log(output: str) -> set[str]:
    """Every planned job as ``rule/what``, from where its log is; copies are left out."""
    logs = re.findall(r"^ +log: logs/(?:\w+/)?(\w+(?:/\S+)?)\.log", output, flags=re.M)
    return {name for name in logs if not name.startswith("copy/")}


def write_corpus(folder: Path, documents: int = 500, seed: int = 0) -> None:
    """A made-up corpus as the `local` source reads it: enough words for the smoke preset's packs."""
    draw = random.Random(seed)
    vocabulary = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(2, 9))) for _ in range(1500)]
    folder.mkdir(parents=True)
    with open(folder / "documents.jsonl", "w") as lines:
        for number in range(documents):
            text = " ".join(draw.choices(vocabulary, k=120))
            lines.write(json.dumps({"id": f"made-up/{number}", "source": "made-up", "text": text}) + "\n")
