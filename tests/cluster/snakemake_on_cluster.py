"""Start, watch and disturb Snakemake on the throw-away cluster."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
RUN = Path(os.environ.get("PLUMBLINE_CLUSTER_DIR", f"/tmp/plumbline-cluster-{os.getuid()}"))
STANDIN = HERE / "standin" / "Snakefile"
#: Only account and partition names differ from what a user of a real cluster types.
PROFILES = ("--profile", "slurm", "--profile", str(HERE / "profile"))
#: Polls soon and often; the product's own values are made for jobs of hours.
#: Snakemake's own account (which --printshellcmds brings back) is what these tests read.
IMPATIENT = ("--slurm-init-seconds-before-status-checks", "1", "--latency-wait", "5", "--printshellcmds")


def cluster_environment() -> dict[str, str]:
    """The environment of a user of the cluster: its configuration, and this Python's programs first."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("SLURM_", "PYTEST_"))}
    environment["SLURM_CONF"] = str(RUN / "etc" / "slurm.conf")
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}:/usr/sbin:/sbin"
    environment["PYTHONPATH"] = str(REPOSITORY / "src")
    environment["OMP_NUM_THREADS"] = "1"
    return environment


def slurm(*command: str) -> str:
    """Run a SLURM command, give its output back."""
    process = subprocess.run(command, env=cluster_environment(), capture_output=True, text=True, timeout=60)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)}: {process.stderr.strip()}")
    return process.stdout


def until(condition: Callable[[], object], seconds: float, event: str) -> None:
    """Wait for `condition` to be true, five times a second.

    Raises:
        TimeoutError: it was not within `seconds`.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds:g} s for {event}")
        time.sleep(0.2)


def daemon(name: str) -> int:
    """The process id of one of the cluster's daemons, by the name of its pid file."""
    return int((RUN / "pid" / f"{name}.pid").read_text())


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def verb(directory: Path, *arguments: str) -> str:
    """Run `python -m WORDS` in `directory`; its standard output.

    Raises:
        RuntimeError: it failed.
    """
    command = [sys.executable, "-m", *arguments]
    process = subprocess.run(command, cwd=directory, env=cluster_environment(), capture_output=True, text=True)
    if process.returncode:
        raise RuntimeError(f"{' '.join(arguments)}: {process.stderr}")
    return process.stdout


def up() -> None:
    """Bring the cluster up, or bring back what of it is not running."""
    process = subprocess.run([HERE / "up"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if process.returncode:
        raise RuntimeError(process.stderr)


def small_resources() -> dict[str, Any]:
    """What tests/cluster/small gives to `pretrain`."""
    return dict(yaml.safe_load((HERE / "small" / "config.v9+.yaml").read_text())["set-resources"]["pretrain"])


@dataclass
class Workspace:
    """A directory in which Snakemake finds what it finds in a checkout: profiles, and a workflow."""

    path: Path

    @classmethod
    def standin(cls, path: Path) -> Workspace:
        """For the stand-in workflow."""
        path.mkdir(parents=True)
        for name in ("profiles", "slurm"):
            (path / name).symlink_to(REPOSITORY / name)
        return cls(path)

    @classmethod
    def checkout(cls, path: Path, prepared: Path | None = None) -> Workspace:
        """For the real workflow; with data hard-linked from a workspace in which they are made already."""
        path.mkdir(parents=True)
        for name in ("Snakefile", "workflow", "profiles", "slurm", "src", "envs", "pyproject.toml"):
            (path / name).symlink_to(REPOSITORY / name)
        for name in ("config", "studies"):
            shutil.copytree(REPOSITORY / name, path / name)
        if prepared is not None:
            for folder in sorted((prepared / "work").glob("*/*")):
                if folder.name not in ("runs", "state", "scores", "benchmarks"):
                    shutil.copytree(folder, path / folder.relative_to(prepared), copy_function=os.link)
        return cls(path)

    def small(self, **pretrain: object) -> tuple[str, ...]:
        """Profiles as PROFILES with fake nodes' sizes on top, and `pretrain`'s resources changed as given."""
        overlay = yaml.safe_load((HERE / "small" / "config.v9+.yaml").read_text())
        overlay["set-resources"]["pretrain"] |= pretrain
        folder = Path(tempfile.mkdtemp(prefix="overlay-", dir=self.path))
        (folder / "config.v9+.yaml").write_text(yaml.safe_dump(overlay))
        return (*PROFILES, "--profile", str(folder))

    def snakemake(
        self, *arguments: str, environment: dict[str, str] | None = None, profiles: tuple[str, ...] = PROFILES
    ) -> Snakemake:
        """Start `snakemake WORDS --profile slurm ...` here, in the background and in its own session."""
        number = len(list(self.path.glob("snakemake.*.txt")))
        log = self.path / f"snakemake.{number}.txt"
        command = [sys.executable, "-m", "snakemake", *arguments, *profiles, *IMPATIENT]
        with log.open("w") as output:
            process = subprocess.Popen(
                command,
                cwd=self.path,
                env=cluster_environment() | (environment or {}),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return Snakemake(process=process, log=log)


@dataclass
class Snakemake:
    """One running Snakemake, and what it printed."""

    process: subprocess.Popen[bytes]
    log: Path
    began: float = field(default_factory=time.monotonic)

    def output(self) -> str:
        """All that it printed so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def jobs(self) -> list[str]:
        """The SLURM ids of what it submitted, in order."""
        return re.findall(r"submitted with SLURM jobid (\d+)", self.output())

    def job(self, number: int = 0, seconds: float = 120) -> str:
        """The id of its `number`-th submission, waiting for it."""
        until(lambda: len(self.jobs()) > number or self.process.poll() is not None, seconds, "a submission")
        if len(self.jobs()) <= number:
            raise RuntimeError(f"Snakemake ended without submitting:\n{self.output()[-2000:]}")
        return self.jobs()[number]

    def wait(self, seconds: float = 300) -> int:
        """Its exit code."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.end()
            raise TimeoutError(f"Snakemake was still running after {seconds:g} s:\n{self.output()[-3000:]}") from None

    def kill(self) -> None:
        """As a power cut would: the whole process group, at once."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def end(self) -> None:
        """End it and its jobs, if they still run."""
        if self.process.poll() is None:
            self.kill()
        for job in self.jobs():
            subprocess.run(["scancel", job], env=cluster_environment(), capture_output=True)

    def said(self, *patterns: str) -> str:
        """The first line of its output that matches each pattern, joined; for reports and assertions."""
        lines, messages = self.output().splitlines(), []
        for pattern in patterns:
            line = next((line for line in lines if re.search(pattern, line)), f"(nothing like {pattern})")
            messages.append(line.split(" Detailed failure")[0].strip().removeprefix("message: "))
        return "; ".join(messages)


def state(job: str) -> str:
    """The state of a job as SLURM's queue has it, empty if it has none."""
    return slurm("squeue", "--noheader", "--states=all", f"--jobs={job}", "--format=%T").strip()
