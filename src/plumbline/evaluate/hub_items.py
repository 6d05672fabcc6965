"""Reads a task's data set at its commit. Downloaded at this stage only; evaluation never touches a network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError
from plumbline.evaluate import item_fields
from plumbline.evaluate.item_fields import Item
from plumbline.specs.tasks import HubData, Task


def data_set(task: Task) -> HubData:
    """The data set of a task.

    Raises:
        PlumblineError: its file names none.
    """
    if task.hub is None:
        raise PlumblineError(
            f"{task.file}: hub: the file names no data set, and items are asked of the hub; add `hub`, or use "
            "--items-source local (`evaluation.source` of the preset's file)"
        )
    return task.hub


def items(task: Task, split: str, mirror: Path | None = None) -> list[Item]:
    """All items of a split, in the hub's own form.

    Args:
        mirror: a folder that holds copies of the data sets as ``<owner>/<name>/``, read instead of the network.

    Raises:
        PlumblineError: the data set cannot be had; the message says what to do without a network.
    """
    import datasets

    read = data_set(task)
    if read.file is not None and split != read.split:
        raise PlumblineError(
            f"{task.file}: few_shot.split: {split!r} is asked for, and `hub.file` is the split {read.split!r}; take "
            "`few_shot` out, or use --items-source local with both files"
        )
    if mirror is not None and not (mirror / read.path).is_dir():
        raise PlumblineError(f"--hub-folder {mirror}: there is no folder {read.path} in it (task {task.name})")
    try:
        loaded = datasets.load_dataset(**_arguments(read, split, mirror))
    except Exception as error:  # the library raises a different class for each way of being offline
        raise PlumblineError(
            f"task {task.name}: cannot read {read.path} at revision {read.revision}"
            f"{f' from {mirror}' if mirror else ' from the hub'} ({type(error).__name__}: {_first_line(error)}). "
            "Without a network use --items-source packaged, or local with a folder of JSONL, or --hub-folder"
        ) from error
    return [item_fields.of(task, row) for row in loaded]


def _arguments(read: HubData, split: str, mirror: Path | None) -> dict[str, Any]:
    if read.file is not None:
        root = f"hf://datasets/{read.path}@{read.revision}" if mirror is None else mirror / read.path
        return {"path": "json", "data_files": f"{root}/{read.file}", "split": "train"}
    where = {"path": read.path, "revision": read.revision} if mirror is None else {"path": str(mirror / read.path)}
    return where | {"name": read.configuration, "split": split}


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [""])[0]
