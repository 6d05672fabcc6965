"""A small finished project, one step of which is carried out again while a fault strikes it: see cells.yaml."""

from __future__ import annotations

import fnmatch
import hashlib
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import warm_processes
from tests.core.fuse_folder import mount_folder
from tests.workflow.project_copy import MADE, Project, jobs_by_rule

MATRIX: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("cells.yaml").read_text())
STEPS: dict[str, dict[str, Any]] = MATRIX["steps"]
FAULTS: dict[str, dict[str, Any]] = MATRIX["faults"]
#: A clock that goes wrong.
CLOCK = Path(__file__).with_name("clock.c")
SIXTH = Path(__file__).parents[1] / "workflow/sixth_study"
STUDY = "studies/widths/study.yaml"
CONFIG = ("--config", "preset=smoke", "studies=[widths]", "main_study=widths", "mine=my/wider.yaml")
MINE = """
extends: widths
against: narrow
seeds: [1, 2]
reference_seeds: [1, 2]
methods: {wider: {model: {ffn_width: 96}}}
"""
#: What shows the other products, and so is made after them.
LATER = ("bundle", "report", "copy_report")
SHORT = {
    "W": "work/smoke", "C": "work/smoke/corpora/climbmix", "P": "results/smoke",
    "N": "widths/tiny/narrow/s1", "O": "widths/tiny/wide/s1",
}  # fmt: skip
#: What no two undisturbed projects have alike: times, locks, what was found to be intact on a machine.
VARIES = (
    *("*/benchmarks/*", "*/state/*", "*.snakemake_timestamp", "*/.verified/*", "*.lock", "*.flock", "*.tmp*"),
    *("*/plan.*", "*/files/*/plan.*"),
)
#: The same in files that also say what must be alike.
TIMES = {
    *("finished", "started", "seconds", "wall_seconds", "time", "peak_memory_bytes", "pid", "process_started"),
    *("sha256_of_the_rest", "attempts", "resumed_from", "starts", "manifest_sha256"),
}


class CellFailure(Exception):
    """What was not as the matrix says."""


@dataclass(frozen=True)
class Base:
    """A finished project that cells copy, and the SHA-256 of what it has."""

    root: Path

    @cached_property
    def digest(self) -> dict[str, str]:
        """What an undisturbed project has."""
        return digest(self.root)

    @classmethod
    def make(cls, repository: Path, root: Path, finished: Path | None = None) -> Base:
        """Make the project of the present code, or on top of a `finished` one, whose corpus it takes."""
        shutil.rmtree(root, ignore_errors=True)
        if finished is None:
            project = Project.copy(repository, root)
        else:
            shutil.copytree(finished, root, symlinks=True)
            project = Project(root)
        shutil.copytree(SIXTH, root, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        project.edit(STUDY, "corpus: climbmix", "corpus: climbmix\nsuite: climb12")
        project.edit(STUDY, "reads: [probes]", "reads: [probes, scores]")
        (root / "my").mkdir(exist_ok=True)
        (root / "my/wider.yaml").write_text(MINE)
        first = {name: long_path(step["target"]) for name, step in STEPS.items() if name not in LATER}
        last = first.pop("plan")  # which shows what was done
        for targets in (first.values(), [long_path(STEPS[name]["target"]) for name in LATER], [last]):
            process = project.snakemake(*targets, *CONFIG)
            assert process.returncode == 0, process.stdout[-6000:]
        return cls(root)

    def copy(self, folder: Path) -> Project:
        """Copy it: of sources, which no fault strikes, links; of all that is made its own files, since faults edit."""
        folder.mkdir()
        for path in self.root.iterdir():
            flags = "-a" if path.name in MADE else "-al"
            subprocess.run(["cp", flags, str(path), str(folder)], check=True)
        return Project(folder)


def long_path(path: str) -> str:
    """A path of cells.yaml in full."""
    return "/".join(SHORT.get(part, part) for part in path.split("/"))


def define_cell(step: str, fault: str) -> dict[str, Any]:
    """What is to be done in a cell, and what is expected of it."""
    cell = dict(FAULTS[fault])
    for row in MATRIX["cells"]:
        if step in row["steps"] and fault in row["faults"]:
            cell["expected"] = row["expected"]
    return cell


def why_not(step: str, fault: str) -> str:
    """Why a cell does not apply; empty if it does."""
    of = FAULTS[fault].get("of", "input" if "{input}" in str(FAULTS[fault]) else "")
    for needed in (of, FAULTS[fault].get("without", "")):
        if needed and needed not in STEPS[step]:
            return f"{step} has no {needed}" + (" that another step made" if needed == "input" else "")
    if FAULTS[fault]["how"] in ("swap", "truncate") and "reader" not in STEPS[step]:
        return f"no step reads what {step} makes"
    if FAULTS[fault]["how"] == "swap" and "swap" not in STEPS[step]:
        return f"there is no other product of {step}'s kind"
    return ""


def carry_out(base: Base, step: str, fault: str, folder: Path) -> None:
    """Carry out one cell in a new folder.

    Raises:
        CellFailure: something is not as expected.
        pytest.skip.Exception: this machine cannot have the fault.
    """
    cell = define_cell(step, fault)
    paths = {name: long_path(path) for name, path in STEPS[step].items() if isinstance(path, str)}
    paths.setdefault("placed", paths["product"])
    folder.mkdir(parents=True)
    project = base.copy(folder / "project")
    struck = STEPS[step]["reader"] if cell["how"] in ("swap", "truncate") else step
    if cell["how"] != "remove":
        remove(project, struck)
    command = Command(project, long_path(STEPS[struck]["target"]), folder)
    with ExitStack() as stack:
        strike(stack, cell, paths, command)
        code, output = command.run()
        command.environment.clear()
    expected = cell["expected"]
    if (code == 0) != (expected == "continues"):
        raise CellFailure(f"ended with {code}, not {expected}: {output[-1200:]}")
    if "Traceback (most recent call last)" in output:
        raise CellFailure(f"a traceback: {output[-1500:]}")
    for name in cell.get("names", []) if code else []:
        pattern = re.sub(r"{(\w+)}", lambda match: re.escape(paths[match[1]]), name)
        if not re.search(pattern, output):
            raise CellFailure(f"the message does not name {pattern}: {output[-1200:]}")
    code, output = command.run()
    if code:
        raise CellFailure(f"without the fault it ends with {code}: {output[-1500:]}")
    if others := jobs_by_rule(output).keys() - {struck}:
        raise CellFailure(f"without the fault it carried out {', '.join(sorted(others))} too")
    before, after = base.digest, digest(project.root)
    if differing := [name for name in sorted(before.keys() | after.keys()) if before.get(name) != after.get(name)]:
        raise CellFailure(f"other bytes than undisturbed: {', '.join(differing[:6])}")


@dataclass
class Command:
    """The command that asks for a target of the project."""

    project: Project
    target: str
    folder: Path

    def __post_init__(self) -> None:
        self.environment: dict[str, str] = {}

    def run(self) -> tuple[int, str]:
        """Carry it out: its exit code, and what it and its jobs said. As a group of its own where a fault asks for
        that, which costs the imports."""
        began = time.time()
        if not self.environment:
            done = self.project.snakemake(self.target, *CONFIG)
            code, output = done.returncode, done.stdout
        else:
            environment = self.project.environment | self.environment
            del environment[warm_processes.ADDRESS]
            process = subprocess.run(
                [sys.executable, "-m", "snakemake", self.target, *CONFIG, "--printshellcmds"],
                cwd=self.project.root, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                timeout=600, start_new_session=True,
            )  # fmt: skip
            code, output = process.returncode, process.stdout
        logs = (self.project.root / "logs").rglob("*.log")
        return code, output + "".join(path.read_text() for path in logs if path.stat().st_ctime >= began - 1)


def remove(project: Project, step: str) -> None:
    """Remove what a step makes."""
    for pattern in STEPS[step]["makes"]:
        paths = list(project.root.glob(long_path(pattern)))
        assert paths, f"{step}: nothing is {pattern}"
        for path in paths:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def strike(stack: ExitStack, cell: dict[str, Any], paths: dict[str, str], command: Command) -> None:
    """Have a fault until the stack is closed."""
    root = command.project.root
    match cell["how"]:
        case "nothing":
            pass
        case "rules":
            if "GROUP" in str(cell["rules"]):
                command.environment["FAULT"] = "1"  # a group of its own
            rules = [
                line.format(**{name: f"*/{path.partition('/')[2]}" for name, path in paths.items()})
                for line in cell["rules"]
            ]
            stack.enter_context(mounted(root, command.folder, rules, must_meet=True))
        case "clock":
            command.environment |= {"LD_PRELOAD": str(build_clock(command.folder)), "CLOCK_SHIFT": str(cell["seconds"])}
            stack.enter_context(mounted(root, command.folder, [f"release * {cell['seconds']:+d}"]))
        case "late":
            stack.enter_context(two_machines(root, command, cell["seconds"]))
        case "limit":
            before_each_job(command, cell["limit"])
        case "memory":
            group = stack.enter_context(memory_group(cell["megabytes"]))
            before_each_job(command, f"echo $$ > {group}/cgroup.procs")
        case _:
            stack.enter_context(tampered(root, cell, paths))


def before_each_job(command: Command, line: str) -> None:
    """Have the shell of each job carry out a line first."""
    script = command.folder / "before_each_job.sh"
    script.write_text(f"{line}\n")
    command.environment["BASH_ENV"] = str(script)


@contextmanager
def mounted(root: Path, folder: Path, rules: list[str], *, must_meet: bool = False) -> Iterator[None]:
    """The project's work and results on a file system with rules.

    Raises:
        CellFailure: nothing that was done met a rule.
    """
    met = False
    with ExitStack() as stack:
        for held, name in hold_products(stack, root, folder):
            stack.enter_context(mount_folder(held, root / name)).write_text("".join(f"{rule}\n" for rule in rules))
        yield
        met = any((root / f"{name}.met").exists() for name in ("work", "results"))
    for name in ("work", "results"):
        (root / f"{name}.met").unlink(missing_ok=True)
        (root / f"{name}.rules").unlink()
    if must_meet and not met:
        raise CellFailure("nothing met the fault")


def hold_products(stack: ExitStack, root: Path, folder: Path) -> Iterator[tuple[Path, str]]:
    """Move the project's work and results elsewhere, to be mounted, until the stack is closed."""
    for name in ("work", "results"):
        held = folder / "held" / name
        held.parent.mkdir(exist_ok=True)
        (root / name).rename(held)
        stack.callback(put_back, held, root / name)
        yield held, name


def put_back(held: Path, place: Path) -> None:
    """Put a folder back where it was mounted."""
    place.rmdir()
    held.rename(place)


@contextmanager
def two_machines(root: Path, command: Command, late: float) -> Iterator[None]:
    """Jobs run on another machine, which has the project's folders from the same server; each sees late what the other
    does."""
    other = command.folder / "other"
    other.mkdir()
    for path in root.iterdir():
        if path.name not in ("work", "results"):
            (other / path.name).symlink_to(path)
    with ExitStack() as stack:
        for held, name in hold_products(stack, root, command.folder):
            for place in (root, other):
                stack.enter_context(mount_folder(held, place / name, late=late))
        before_each_job(command, f"cd {other}")
        yield
    for name in ("work", "results"):
        (root / f"{name}.rules").unlink()


def build_clock(folder: Path) -> Path:
    """Compile the clock that goes wrong. Skips where there is no compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler here")
    library = folder / "clock.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, CLOCK, "-ldl"], check=True)
    return library


@contextmanager
def memory_group(megabytes: int) -> Iterator[Path]:
    """A control group with that much memory. Skips where none can be made."""
    group = Path(f"/sys/fs/cgroup/memory/plumbline-faults-{os.getpid()}")
    limit = "memory.limit_in_bytes"
    if not group.parent.is_dir():
        group, limit = Path("/sys/fs/cgroup") / group.name, "memory.max"
    try:
        group.mkdir()
        (group / limit).write_text(str(megabytes << 20))
    except OSError as error:
        pytest.skip(f"no control group of memory can be made ({error})")
    try:
        yield group
    finally:
        for _ in range(500):
            if not (group / "cgroup.procs").read_text():
                break
            time.sleep(0.02)
        group.rmdir()


@contextmanager
def tampered(root: Path, cell: dict[str, Any], paths: dict[str, str]) -> Iterator[None]:
    """A file other than it was made, with the time that it had; it is put back afterwards unless it was removed."""
    path = root / paths[cell["of"]]
    original, times = path.read_bytes(), path.stat()
    match cell["how"]:
        case "edit":
            path.write_bytes(edit(original))
        case "swap":
            path.write_bytes((root / paths["swap"]).read_bytes())
        case "truncate":
            path.write_bytes(original[: len(original) // 2])
        case "remove":
            path.unlink()
            yield
            return
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    if "without" in cell:
        (root / paths[cell["without"]]).unlink()
    folder_times = path.parent.stat()
    yield
    if path.read_bytes() != original:
        path.write_bytes(original)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        os.utime(path.parent, ns=(folder_times.st_atime_ns, folder_times.st_mtime_ns))


def edit(content: bytes) -> bytes:
    """Another content of the same size: a digit in the middle is another one, or a byte where there is none."""
    middle = len(content) // 2
    place = next((at for at in range(middle, min(middle + 5000, len(content))) if 48 <= content[at] < 57), middle)
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


def digest(root: Path) -> dict[str, str]:
    """The SHA-256 of every product of a project that two undisturbed ones have alike."""
    result = {}
    for path in itertools.chain((root / "work").rglob("*"), (root / "results").rglob("*")):
        name = str(path.relative_to(root))
        if path.is_file() and not any(fnmatch.fnmatch(name, pattern) for pattern in VARIES):
            result[name] = hashlib.sha256(alike(path)).hexdigest()
    return result


def alike(path: Path) -> bytes:
    """What two undisturbed projects have alike of a product."""
    if (path.name != "manifest.json" and "measured" not in path.parts) or path.suffix != ".json":
        return path.read_bytes()
    return json.dumps(without_times(json.loads(path.read_text())), sort_keys=True).encode()


def without_times(content: Any) -> Any:
    """Facts of a run or a measurement but for times and processes."""
    if isinstance(content, dict):
        return {key: without_times(value) for key, value in content.items() if key not in TIMES}
    return [without_times(item) for item in content] if isinstance(content, list) else content
