"""Private parts of Snakemake stand in three modules, are there, and are those of the minor version that was checked."""

from __future__ import annotations

import ast
import inspect
import re
import tokenize
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path
from pkgutil import resolve_name

import pytest
import snakemake.cli  # noqa: F401  (its modules import one another, in this order alone)

from plumbline.project import snakemake_internals, snakemake_messages, snakemake_shortcuts
from plumbline.project.snakemake_internals import SEEN_WITH
from tests.architecture.rooms import ROOT

MODULES = (snakemake_internals, snakemake_messages, snakemake_shortcuts)
FILES = [Path(str(module.__file__)) for module in MODULES]
#: What is private and used there: names by the module or class that has them.
PARTS: dict[str, tuple[str, ...]] = {
    "snakemake.benchmark": ("BenchmarkTimer",),
    "snakemake.common": ("get_function_params",),
    "snakemake.executors.dryrun": ("Executor",),
    "snakemake.executors.dryrun.Executor": ("printjob",),
    "snakemake.benchmark.BenchmarkTimer": ("main",),
    "snakemake.cli": ("get_profile_dir", "main", "parse_args", "parse_config"),
    "snakemake.exceptions": (
        "InputFunctionException",
        "MissingRuleException",
        "WorkflowError",
        "format_exception_to_string",
    ),
    "snakemake.profiles": ("ProfileConfigFileParser",),
    "snakemake.io": ("_IOFile",),
    "snakemake.io._IOFile": ("_file", "clone_flags", "flags", "is_ancient", "is_storage", "set_flags"),
    "snakemake.logging": ("ColorizingTextHandler", "DefaultFilter", "DefaultFormatter", "logger"),
    "snakemake.persistence": ("PersistenceBase",),
    "snakemake.persistence.PersistenceBase": ("cleanup_locks", "lock", "path"),
    "snakemake.settings.types.ConfigSettings": ("config", "config_args", "configfiles", "overwrite_config"),
    "snakemake.settings.types.ResourceSettings": ("default_resources", "overwrite_resources", "overwrite_threads"),
    "snakemake.workflow.Workflow": (
        "_build_dag",
        "_localrules",
        "basedir",
        "config_settings",
        "dag",
        "execution_settings",
        "global_resources",
        "globals",
        "is_main_process",
        "local_exec",
        "output_settings",
        "rerun_triggers",
        "resource_settings",
        "scheduler",
        "touch",
    ),
    "snakemake.dag": ("DAG",),
    "snakemake.dag.DAG": (
        "bfs",
        "check_directory_outputs",
        "forcefiles",
        "jobid",
        "jobs",
        "needrun_jobs",
        "update_needrun",
        "workflow",
    ),
    "snakemake.jobs.Job": ("dag", "is_group", "rule", "scheduler_resources"),
    "snakemake.jobs.GroupJob": ("jobs",),
    "snakemake.rules.Rule": ("group", "norun"),
    "snakemake.scheduling.job_scheduler.JobScheduler": ("_executor", "job_rate_limiter"),
    "snakemake.scheduling.job_scheduler.JobRateLimiter": ("max_jobs", "timespan"),
    "configargparse.ArgumentParser": ("_default_config_files",),
}
#: What may be imported everywhere: documented for Snakefiles. The interfaces of plugins are packages of their own.
PUBLIC = ("snakemake.utils",)
#: What objects of Snakemake's are called here, and what rules and plugins may read of them.
OBJECTS = {"workflow", "dag", "job", "rule", "scheduler", "limiter", "persistence", "parser", "cli"}
OF_JOBS = {"name", "rule", "wildcards", "input", "output", "params", "log", "resources", "threads"}
NAMES = {name for names in PARTS.values() for name in names}
#: Names that mean nothing else in this repository, whatever they are read from.
TELLING = {name for name in NAMES if "_" in name} - {"parse_args", "_file"} | {"forcefiles", "norun"}


def functions() -> list[str]:
    """The functions that would have to be checked."""
    members = [(module, *member) for module in MODULES for member in inspect.getmembers(module, inspect.isfunction)]
    return [name for module, name, function in members if function.__module__ == module.__name__]


def unseen(version: str) -> str:
    """What is to be done about a version of Snakemake; empty for one of which all is known."""
    if version.rpartition(".")[0] in SEEN_WITH:
        return ""
    return (
        f"Snakemake {version} is installed, and its private parts were seen with {' and '.join(SEEN_WITH)}: look at "
        f"these {len(functions())} functions of {' and '.join(str(file.relative_to(ROOT)) for file in FILES)}, "
        f"then add the version to SEEN_WITH of the first: {', '.join(functions())}"
    )


def test_the_installed_snakemake_is_one_that_was_checked() -> None:
    assert not (warning := unseen(metadata.version("snakemake"))), warning
    assert re.match(
        r"Snakemake 9\.99\.0 is .* seen with 9\.27.*: look at these \d\d functions of src/", unseen("9.99.0")
    )


@pytest.mark.parametrize("owner", PARTS)
def test_every_private_part_is_there(owner: str) -> None:
    """An attribute of objects is set in its class's own code, or declared there."""
    there = resolve_name(owner)
    source = inspect.getsource(there)
    missing = {
        name for name in PARTS[owner] if not hasattr(there, name) and not re.search(rf"\bself\.{name}\b.*=", source)
    } - set(getattr(there, "__annotations__", ()))
    assert not missing, f"{owner} of the installed Snakemake has no {sorted(missing)}"


def test_the_list_of_private_parts_is_whole() -> None:
    tree = ast.Module([node for file in FILES for node in ast.parse(file.read_text(encoding="utf-8")).body], [])
    read = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and last(node.value) in OBJECTS}
    imported = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] == "snakemake"
    ]
    read |= {each.name for node in imported for each in node.names if each.name != "cli"}
    assert read - OF_JOBS <= NAMES, "used and not in PARTS"
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)} | read
    assert attributes | {node.arg for node in ast.walk(tree) if isinstance(node, ast.keyword)} >= NAMES, (
        "in PARTS, not used"
    )


def last(node: ast.expr) -> str:
    """The name that an expression ends with."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def list_private_parts(lines: Iterable[bytes]) -> Iterator[str]:
    """The private parts that a source touches. Snakemake's language has Python's words, so they are read as such."""
    tokens = [
        token.string.strip("'\"")
        for token in tokenize.tokenize(iter(lines).__next__)
        if token.type in (tokenize.NAME, tokenize.OP, tokenize.STRING)
    ]
    for place, word in enumerate(tokens):
        before, owner, after = tokens[place - 1 : place], tokens[place - 2 : place - 1], tokens[place + 1 : place + 3]
        if word == "snakemake" and before in (["from"], ["import"]):
            module = ".".join([word, *after[1:]]) if after[:1] == ["."] else word
            if module not in PUBLIC:
                yield module
        elif before == ["."] and owner[:1] and owner[0] in {file.stem for file in FILES}:
            continue
        elif word in TELLING:
            yield word
        elif before == ["."] and owner == ["workflow"]:
            yield f"workflow.{word}"
        elif (
            before == ["."]
            and owner[:1] in (["dag"], ["job"], ["rule"])
            and (word[0] == "_" or word in NAMES - OF_JOBS)
        ):
            yield f"{owner[0]}.{word}"


def sources() -> Iterator[Path]:
    """All code that the workflow is made of, but the modules themselves."""
    yield ROOT / "Snakefile"
    yield from (ROOT / "workflow").rglob("*.smk")
    yield from (path for path in (ROOT / "src").rglob("*.py") if path not in FILES)


def test_no_other_file_touches_a_private_part() -> None:
    parts_by_file = {}
    for path in sources():
        if offences := sorted(set(list_private_parts(path.read_bytes().splitlines(keepends=True)))):
            parts_by_file[str(path.relative_to(ROOT))] = offences
    assert not parts_by_file, f"give it a function of {FILES[0].relative_to(ROOT)}: {parts_by_file}"


@pytest.mark.parametrize(
    "line",
    [
        "build = workflow._build_dag",
        "self.workflow.scheduler",
        "for job in dag.needrun_jobs(): pass",
        "job.dag.workflow._localrules",
        "from snakemake.persistence import PersistenceBase",
        "import snakemake.cli",
        "from snakemake import cli",
        "setattr(anything, 'forcefiles', set())",
    ],
)
def test_a_touch_is_seen(line: str) -> None:
    assert list(list_private_parts([line.encode()])), line
    allowed = b"watch(workflow)\njob.wildcards.seed\nfrom snakemake.utils import min_version\n# workflow._build_dag\n"
    assert not list(list_private_parts(allowed.splitlines(keepends=True)))
