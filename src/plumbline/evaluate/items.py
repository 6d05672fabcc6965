"""Make the items of a suite: ``python -m plumbline.evaluate.items``.

Writes one JSONL a task in the hub's schema, and last `items.json`, which says for each task whether it is the
benchmark or a proxy, how many items there are, their checksum, licence and origin.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from plumbline.core import fingerprint_file
from plumbline.core.command_line import run
from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic_write_json, atomic_write_text, parse_json, path_or_none, sha256_file
from plumbline.evaluate import hub, packaged, proxy, schema
from plumbline.evaluate.schema import Item
from plumbline.specs import suites

INDEX = "items.json"

#: Keys of the configuration that flags come from, for messages.
_KEYS = {("local", "--folder"): ": set `evaluation.folder` in config/config.yaml to a folder with <task>.jsonl"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """What `items.json` says about one task."""

    task_source: Literal["benchmark", "proxy"]
    n: int
    sha256: str
    licence: str
    origin: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Made:
    """A task's items before they are written."""

    task_source: Literal["benchmark", "proxy"]
    items: list[Item]
    licence: str
    origin: str


def read_index(folder: Path, tasks: tuple[str, ...]) -> dict[str, Entry]:
    """What a folder holds of `tasks`; every file is compared with its checksum.

    Raises:
        PlumblineError: there is no index, a task is not in it, or a file has changed since.
    """
    path = folder / INDEX
    if not path.is_file():
        raise PlumblineError(
            f"--items: there is no {path}; the workflow makes it where that is below work/PRESET "
            f"(snakemake {path} --config preset=PRESET), elsewhere python -m plumbline.evaluate.items does"
        )
    try:
        listed = parse_json(path.read_text(encoding="utf-8"))
        found = {task: Entry(**listed[task]) for task in tasks if task in listed}
    except (ValueError, KeyError, TypeError) as error:
        raise PlumblineError(f"{path} is no index of items ({error}); make the items again") from error
    entries = {}
    for task in tasks:
        if task not in listed:
            raise PlumblineError(f"{path} has no items of task {task!r}; it has {sorted(listed)}")
        entries[task] = found[task]
        file = folder / f"{task}.jsonl"
        if not file.is_file() or sha256_file(file) != entries[task].sha256:
            raise PlumblineError(f"{file} is not the file that {INDEX} describes; make the items again")
    return entries


def write(folder: Path, made: dict[str, Made]) -> dict[str, Entry]:
    """Write every task's items, then the index."""
    entries = {}
    for task, content in made.items():
        for number, item in enumerate(content.items, 1):
            schema.check(task, item, f"{content.origin} item {number}")
        path = folder / f"{task}.jsonl"
        atomic_write_text(path, schema.dump(content.items))
        entries[task] = Entry(
            task_source=content.task_source,
            n=len(content.items),
            sha256=sha256_file(path),
            licence=content.licence,
            origin=content.origin,
        )
    atomic_write_json(folder / INDEX, {task: dataclasses.asdict(entry) for task, entry in entries.items()})
    return entries


def main() -> None:
    """Make the items that the command line asks for."""
    arguments = _parser().parse_args()
    tasks = tuple(schema.known(task) for task in suites.suite(arguments.suite).task_names)
    source = {"packaged": _packaged, "local": _local, "hub": _hub}[arguments.source]
    entries = write(arguments.out, source(tasks, arguments))
    fingerprint_file.write(arguments.out / INDEX, arguments.made_of)
    for task, entry in entries.items():
        print(f"{task:16s}{entry.task_source:10s}{entry.n:6d} items  {entry.origin}")


def _packaged(tasks: tuple[str, ...], arguments: argparse.Namespace) -> dict[str, Made]:
    package = _given(arguments.package, "--package", "packaged")
    packaged.check_package(package)
    proxies = _proxies(arguments)
    made = {}
    for task in tasks:
        if task not in packaged.MEMBERS:
            made[task] = proxies(task)
            continue
        member = packaged.MEMBERS[task]
        origin = f"{packaged.PACKAGE} {member.path}"
        if task == "mmlu":
            origin += " (ships no subjects: one prompt without the line that names the subject)"
        found = packaged.items(task, package)
        made[task] = Made(task_source="benchmark", items=found, licence=member.licence, origin=origin)
    return made


def _local(tasks: tuple[str, ...], arguments: argparse.Namespace) -> dict[str, Made]:
    folder = _given(arguments.folder, "--folder", "local")
    absent = [task for task in tasks if not (folder / f"{task}.jsonl").is_file()]
    if absent and arguments.missing == "error":
        raise PlumblineError(
            f"--folder {folder}: no file for {', '.join(absent)} (each is <task>.jsonl); "
            "add them, or say --missing proxy with --documents to fill them with proxy items"
        )
    proxies = _proxies(arguments) if absent else None
    made = {}
    for task in tasks:
        path = folder / f"{task}.jsonl"
        made[task] = (
            proxies(task)
            if proxies is not None and task in absent
            else Made(
                task_source="benchmark",
                items=[_fields(task, item) for item in schema.read(task, path)],
                licence="as the user's copy",
                origin=f"local {path.name}",
            )
        )
    return made


def _hub(tasks: tuple[str, ...], arguments: argparse.Namespace) -> dict[str, Made]:
    made = {}
    for task in tasks:
        data_set = hub.DATA_SETS[task]
        made[task] = Made(
            task_source="benchmark",
            items=hub.items(task, data_set, arguments.mirror),
            licence=data_set.licence,
            origin=f"{data_set.path} {data_set.name or 'default'} {data_set.split} @ {data_set.revision}",
        )
    return made


def _proxies(arguments: argparse.Namespace) -> Callable[[str], Made]:
    path = _given(arguments.documents, "--documents", arguments.source)
    documents = proxy.Documents.read(path)

    def make(task: str) -> Made:
        return Made(
            task_source="proxy",
            items=proxy.items(task, documents, arguments.proxy_items),
            licence="as the held-out documents",
            origin=f"made from held-out documents {path.name}",
        )

    return make


def _fields(task: str, item: Item) -> Item:
    return {key: value for key, value in item.items() if key in schema.fields(task)}


def _given(value: Path | None, flag: str, source: str) -> Path:
    if value is None:
        raise PlumblineError(f"--source {source} needs {flag}{_KEYS.get((source, flag), '')}")
    return value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m plumbline.evaluate.items", description=__doc__)
    parser.add_argument("--source", required=True, choices=("packaged", "local", "hub"))
    parser.add_argument("--suite", required=True, metavar="NAME", help="a file of config/suites")
    parser.add_argument("--out", required=True, type=Path, help="folder for <task>.jsonl and items.json")
    parser.add_argument("--package", type=path_or_none, help=f"packaged: the wheel {packaged.PACKAGE}")
    parser.add_argument("--folder", type=path_or_none, help="local: a folder with <task>.jsonl in the hub's schema")
    parser.add_argument("--missing", choices=("error", "proxy"), default="error", help="local: tasks without file")
    parser.add_argument("--documents", type=path_or_none, help="held-out documents (JSONL) that proxies are made from")
    parser.add_argument("--proxy-items", type=int, default=200, help="proxy items a task")
    parser.add_argument("--mirror", type=path_or_none, help="hub: a folder with the data sets as <owner>/<name>/")
    parser.add_argument("--made-of", default="", help="what a plan says this is made of, to be recorded")
    return parser


if __name__ == "__main__":
    run(main)
