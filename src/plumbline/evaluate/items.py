"""Makes the items of a suite: ``python -m plumbline.evaluate.items``.

Writes one JSONL a task in the hub's form, and last `items.json`, which says for each task whether it is the benchmark
or a proxy, how many items there are, their checksum, licence and origin. What differs between tasks is in their files
of config/tasks. Every item is checked by the harness's own functions.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from plumbline.core import fingerprint_file
from plumbline.core.command_line import HIDDEN, Parser, run
from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic_write_json, atomic_write_text, parse_json, path_or_none, sha256_file
from plumbline.data import shared_words
from plumbline.data.manifest import find_pack, packs_folder
from plumbline.data.verify_files import verify_documents
from plumbline.evaluate import item_fields, item_sources, proxy_items
from plumbline.evaluate.item_fields import Item
from plumbline.evaluate.proxy_items import ProxyMaterial
from plumbline.specs import suites
from plumbline.specs.tasks import Task

INDEX = "items.json"

#: Keys of the configuration that flags come from, for messages.
_KEYS = {
    ("local", "--local-items-folder"): ": set `evaluation.folder` in config/config.yaml to a folder with <task>.jsonl"
}


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskEntry:
    """The entry of one task in `items.json`."""

    task_source: Literal["benchmark", "proxy"]
    n: int
    sha256: str
    licence: str
    origin: str
    few_shot_sha256: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskItems:
    """A task's items before they are written; `examples` are the solved ones that it draws from, if it shows any.

    `file`: that of the user's that they were read from, with the line of each item and of each solved example in the
    file of these; None if they are from elsewhere.
    """

    task: Task
    task_source: Literal["benchmark", "proxy"]
    items: list[Item]
    licence: str
    origin: str
    examples: list[Item] = field(default_factory=list)
    file: Path | None = None
    lines: list[int] = field(default_factory=list)
    example_lines: list[int] = field(default_factory=list)

    def describe_place(self, index: int) -> str:
        """An item's place, for a message."""
        return f"{self.file} line {self.lines[index]}" if self.file else f"{self.origin} item {index + 1}"

    def describe_example(self, index: int) -> str:
        """A solved example's place, for a message."""
        if self.file is None:
            return f"{self.origin} example {index + 1}"
        return f"{self.file.with_name(self.task.examples)} line {self.example_lines[index]}"


def checksums(entries: dict[str, TaskEntry]) -> dict[str, str]:
    """SHA-256 of every file that an index lists, by task; of solved examples by ``<task>.few_shot``."""
    few_shot = {f"{task}.few_shot": entry.few_shot_sha256 for task, entry in entries.items() if entry.few_shot_sha256}
    return {task: entry.sha256 for task, entry in entries.items()} | few_shot


def read_index(folder: Path, tasks: Iterable[Task]) -> dict[str, TaskEntry]:
    """What a folder holds of `tasks`, by their names; every file is compared with its checksum.

    Raises:
        PlumblineError: there is no index, a task is not in it, or a file has changed since.
    """
    path = folder / INDEX
    if not path.is_file():
        raise PlumblineError(
            f"--items-folder: there is no {path}; the workflow makes it where that is below work/PRESET "
            f"(snakemake {path} --config preset=PRESET), elsewhere python -m plumbline.evaluate.items does"
        )
    fingerprint_file.read_verified(path)
    try:
        listed = parse_json(path.read_text(encoding="utf-8"))
        index_entries = {task: TaskEntry(**entry) for task, entry in listed.items()}
    except (ValueError, AttributeError, TypeError) as error:
        raise PlumblineError(f"{path} is no index of items ({error}); make the items again") from error
    entries = {}
    for task in tasks:
        if task.name not in index_entries:
            raise PlumblineError(f"{path} has no items of task {task.name!r}; it has {sorted(index_entries)}")
        entry = entries[task.name] = index_entries[task.name]
        sums = (entry.sha256, entry.few_shot_sha256) if task.few_shot else (entry.sha256,)
        for file, sha256 in zip(task.files, sums, strict=True):
            sha256_found = sha256_file(folder / file) if (folder / file).is_file() else "missing"
            if sha256_found != sha256:
                raise PlumblineError(
                    f"{folder / file} is not the file that {INDEX} describes: its sha256 is {sha256_found}, and "
                    f"{INDEX} states {sha256}; restore it, or delete {path} and have the items made again"
                )
    return entries


def require_held_out(folder: Path, tokenizer: Path, manifest: Mapping[str, Any]) -> None:
    """Refuse proxy items that were not made from the documents that were held out of a run's training.

    Compared where items lie in the corpus of the run's tokenizer, with the manifest of the run's held-out pack there.

    Args:
        manifest: of the run.

    Raises:
        PlumblineError: they were made from another file of documents, by a split of its own.
    """
    packs = packs_folder(tokenizer)
    documents_sha256 = (fingerprint_file.read(fingerprint_file.sidecar_path(folder / INDEX)) or {}).get(
        "documents_sha256"
    )
    if documents_sha256 is None or not folder.absolute().is_relative_to(packs.parent):
        return
    pack = find_pack(packs, manifest.get("validation_fingerprint"))
    held_out = None if pack is None else pack[1].get("corpus", {}).get("documents_sha256")
    if pack is not None and held_out not in (None, documents_sha256):
        raise PlumblineError(
            f"{folder / INDEX}: its proxy items were made from documents with sha256 {documents_sha256}, and those "
            f"that were held out of the run's training have {held_out} ({pack[0]}): the run may have been trained on "
            f"the items; restore the documents, or delete {folder} and have the items made again"
        )


def write(folder: Path, contents: list[TaskItems]) -> dict[str, TaskEntry]:
    """Check every task's items and write them, then the index.

    Raises:
        PlumblineError: an item that lacks a field, or that the harness cannot ask.
    """
    from plumbline.evaluate import check_items, harness_tasks

    entries = {}
    for content in contents:
        task = content.task
        for index, item in enumerate(content.items):
            item_fields.require(task, item, content.describe_place(index))
        check_items.items(task, content.items, content.describe_place)
        path = folder / f"{task.name}.jsonl"
        atomic_write_text(path, item_fields.dump(content.items))
        few_shot_sha256 = ""
        if task.few_shot:
            for index, item in enumerate(content.examples):
                item_fields.require(task, item, content.describe_example(index))
            check_items.items(task, content.examples, content.describe_example)
            for subject in {item.get("subject", "") for item in content.items}:
                harness_tasks.examples(task, content.examples, subject)
            atomic_write_text(folder / task.examples, item_fields.dump(content.examples))
            few_shot_sha256 = sha256_file(folder / task.examples)
        entries[task.name] = TaskEntry(
            task_source=content.task_source,
            n=len(content.items),
            sha256=sha256_file(path),
            licence=content.licence,
            origin=content.origin,
            few_shot_sha256=few_shot_sha256,
        )
    listed = {task: dataclasses.asdict(entry) for task, entry in entries.items()}
    for entry in listed.values():
        if not entry["few_shot_sha256"]:
            del entry["few_shot_sha256"]
    atomic_write_json(folder / INDEX, listed)
    return entries


def main() -> None:
    """Make the items that the command line asks for."""
    arguments = _parser().parse_args()
    tasks = suites.suite(arguments.suite).tasks
    source = {"packaged": _make_packaged, "local": _make_local, "hub": _make_hub}[arguments.items_source]
    contents = source(tasks, arguments)
    entries = write(arguments.out, contents)
    facts: dict[str, Any] = {}
    if arguments.held_out_documents is not None and any(entry.task_source == "proxy" for entry in entries.values()):
        facts["documents_sha256"] = verify_documents(arguments.held_out_documents)
    counted = _count_shared_words(contents, arguments.held_out_documents)
    if counted is not None:
        facts["shared_words"] = counted.facts()
    fingerprint_file.write(arguments.out / INDEX, arguments.fingerprint, **facts)
    for task, entry in entries.items():
        print(f"{task:16s}{entry.task_source:10s}{entry.n:6d} items  {entry.origin}")
    if counted is not None:
        print(counted.describe())


def _count_shared_words(contents: list[TaskItems], held_out: Path | None) -> shared_words.SharedWords | None:
    """Count the items that share words with the training texts, which lie next to the held-out ones; None if there are
    none there.
    """
    training = None if held_out is None else held_out.with_name("train.jsonl")
    if training is None or not training.is_file():
        return None
    return shared_words.count([item for content in contents for item in content.items], training)


def _make_packaged(tasks: tuple[Task, ...], arguments: argparse.Namespace) -> list[TaskItems]:
    package = _require_option(arguments.items_wheel, "--items-wheel", "packaged")
    item_sources.check_package(package)
    proxies = _make_proxy_maker(arguments)
    contents = []
    for task in tasks:
        source = task.packaged
        if source is None:
            contents.append(proxies(task))
            continue
        if task.few_shot:
            raise PlumblineError(
                f"{task.file}: few_shot: {item_sources.PACKAGE} ships no solved examples; use "
                "--items-source hub or local"
            )
        origin = f"{item_sources.PACKAGE} {source.file}{f' ({source.note})' if source.note else ''}"
        items = item_sources.read_packaged_items(task, source, package)
        contents.append(
            TaskItems(task=task, task_source="benchmark", items=items, licence=source.licence, origin=origin)
        )
    return contents


def _make_local(tasks: tuple[Task, ...], arguments: argparse.Namespace) -> list[TaskItems]:
    folder = _require_option(arguments.local_items_folder, "--local-items-folder", "local")
    absent = [task.name for task in tasks if not (folder / f"{task.name}.jsonl").is_file()]
    if absent and arguments.missing_tasks == "error":
        raise PlumblineError(
            f"--local-items-folder {folder}: no file for {', '.join(absent)} (each is <task>.jsonl); "
            "add them, or say --missing-tasks proxy with --held-out-documents to fill them with proxy items"
        )
    proxies = _make_proxy_maker(arguments) if absent else None
    contents = []
    for task in tasks:
        path = folder / f"{task.name}.jsonl"
        if proxies is not None and task.name in absent:
            contents.append(proxies(task))
            continue
        items, solved = item_fields.read_numbered(task, path), _local_examples(task, path)
        contents.append(
            TaskItems(
                task=task,
                task_source="benchmark",
                items=[item_fields.of(task, item) for _, item in items],
                licence="as the user's copy",
                origin=f"local {path.name}",
                examples=[item_fields.of(task, item) for _, item in solved],
                file=path,
                lines=[number for number, _ in items],
                example_lines=[number for number, _ in solved],
            )
        )
    return contents


def _local_examples(task: Task, path: Path) -> list[tuple[int, Item]]:
    if task.few_shot is None:
        return []
    examples = path.with_name(task.examples)
    if not examples.is_file():
        raise PlumblineError(
            f"{examples}: there is no such file, and {task.file} shows {task.few_shot.number} solved examples before "
            f"each question (`few_shot`); write the split {task.few_shot.split!r} there"
        )
    return item_fields.read_numbered(task, examples)


def _make_hub(tasks: tuple[Task, ...], arguments: argparse.Namespace) -> list[TaskItems]:
    contents = []
    for task in tasks:
        data_set = item_sources.hub_data_set(task)
        contents.append(
            TaskItems(
                task=task,
                task_source="benchmark",
                items=item_sources.read_hub_items(task, data_set.split, arguments.hub_folder),
                licence=data_set.licence,
                origin=f"{data_set.path} {data_set.configuration or 'default'} {data_set.split} @ {data_set.revision}",
                examples=item_sources.read_hub_items(task, task.few_shot.split, arguments.hub_folder)
                if task.few_shot
                else [],
            )
        )
    return contents


def _make_proxy_maker(arguments: argparse.Namespace) -> Callable[[Task], TaskItems]:
    path = _require_option(arguments.held_out_documents, "--held-out-documents", arguments.items_source)
    documents = ProxyMaterial.read(path)

    def make(task: Task) -> TaskItems:
        solved_count = task.few_shot.number if task.few_shot else 0
        items = proxy_items.items(task, documents, arguments.proxy_items + solved_count)
        return TaskItems(
            task=task,
            task_source="proxy",
            items=items[: arguments.proxy_items],
            licence="as the held-out documents",
            origin=f"made from held-out documents {path.name}",
            examples=items[arguments.proxy_items :],
        )

    return make


def _require_option(value: Path | None, flag: str, source: str) -> Path:
    if value is None:
        raise PlumblineError(f"--items-source {source} needs {flag}{_KEYS.get((source, flag), '')}")
    return value


def _parser() -> Parser:
    parser = Parser(__doc__)
    parser.add_argument("--items-source", required=True, choices=("packaged", "local", "hub"))
    parser.add_argument("--suite", required=True, metavar="NAME", help="a file of config/suites, or of config/tasks")
    parser.add_argument("--out", required=True, type=Path, help="folder for <task>.jsonl and items.json")
    parser.add_argument("--items-wheel", type=path_or_none, help=f"packaged: the wheel {item_sources.PACKAGE}")
    parser.add_argument(
        "--local-items-folder", type=path_or_none, help="local: a folder with <task>.jsonl in the hub's form"
    )
    parser.add_argument(
        "--missing-tasks", choices=("error", "proxy"), default="error", help="local: tasks without file"
    )
    parser.add_argument(
        "--held-out-documents", type=path_or_none, help="held-out documents (JSONL) that proxies are made from"
    )
    parser.add_argument("--proxy-items", type=int, default=200, help="proxy items a task")
    parser.add_argument("--hub-folder", type=path_or_none, help="hub: a folder with the data sets as <owner>/<name>/")
    parser.add_argument("--fingerprint", default="", help=HIDDEN)
    return parser


if __name__ == "__main__":
    run(main)
