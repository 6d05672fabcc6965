"""The official data sets, pinned by revision. Downloaded at this stage only; evaluation never touches a network."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError
from plumbline.evaluate import schema
from plumbline.evaluate.schema import Item


@dataclass(frozen=True, kw_only=True, slots=True)
class DataSet:
    """A data set of the hub, as the harness's YAML names it, at a commit; `file` where it has to be read by name."""

    path: str
    name: str | None
    split: str
    revision: str
    licence: str
    file: str | None = None


_ARC = "210d026faf9955653af8916fad021475a3f00453"

DATA_SETS: dict[str, DataSet] = {
    "piqa": DataSet(
        path="baber/piqa",
        name=None,
        split="validation",
        revision="142f6d7367fd9877f0fb3b5734ea6a545f54cdd1",
        licence="AFL-3.0",
    ),
    "arc_easy": DataSet(path="allenai/ai2_arc", name="ARC-Easy", split="test", revision=_ARC, licence="CC BY-SA 4.0"),
    "arc_challenge": DataSet(
        path="allenai/ai2_arc", name="ARC-Challenge", split="test", revision=_ARC, licence="CC BY-SA 4.0"
    ),
    "hellaswag": DataSet(
        path="Rowan/hellaswag",
        name=None,
        split="validation",
        revision="218ec52e09a7e7462a5400043bb9a69a41d06b76",
        licence="MIT",
    ),
    "winogrande": DataSet(
        path="allenai/winogrande",
        name="winogrande_xl",
        split="validation",
        revision="01e74176c63542e6b0bcb004dcdea22d94fb67b5",
        licence="CC BY",
    ),
    "social_iqa": DataSet(
        path="lighteval/siqa",
        name=None,
        split="validation",
        revision="54c6a1f8cb6daf4f5abf24a601852612fb35eb25",
        licence="CC BY 4.0",
    ),
    "mmlu": DataSet(
        path="cais/mmlu",
        name="all",
        split="test",
        revision="c30699e8356da336a370243923dbaf21066bb9fe",
        licence="MIT",
    ),
    "openbookqa": DataSet(
        path="allenai/openbookqa",
        name="main",
        split="test",
        revision="388097ea7776314e93a529163e0fea805b8a6454",
        licence="Apache-2.0",
    ),
    "boolq": DataSet(
        path="aps/super_glue",
        name="boolq",
        split="validation",
        revision="3de24cf8022e94f4ee4b9d55a6f539891524d646",
        licence="CC BY-SA 3.0",
    ),
    # This repository describes itself by a script, which the data set library no longer runs.
    "race": DataSet(
        path="EleutherAI/race",
        name="high",
        split="test",
        revision="e30efe648089df42c548e93faa9c5f1816e2c44f",
        licence="research only",
        file="race_high_test.jsonl",
    ),
    "lambada_openai": DataSet(
        path="EleutherAI/lambada_openai",
        name="default",
        split="test",
        revision="900124bf3b8235c6daf21033af9948b3f07346c4",
        licence="CC BY 4.0",
    ),
    "truthfulqa_mc2": DataSet(
        path="truthfulqa/truthful_qa",
        name="multiple_choice",
        split="validation",
        revision="741b8276f2d1982aa3d5b832d3ee81ed3b896490",
        licence="Apache-2.0",
    ),
}


def items(task: str, data_set: DataSet, mirror: Path | None = None) -> list[Item]:
    """All items of the split that the harness evaluates, in the hub's own form.

    Args:
        mirror: a folder that holds copies of the data sets as ``<owner>/<name>/``, read instead of the network.

    Raises:
        PlumblineError: the data set cannot be had; the message says what to do without a network.
    """
    import datasets

    if mirror is not None and not (mirror / data_set.path).is_dir():
        raise PlumblineError(f"--mirror {mirror}: there is no folder {data_set.path} in it (task {task})")
    try:
        loaded = datasets.load_dataset(**_arguments(data_set, mirror))
    except Exception as error:  # the library raises a different class for each way of being offline
        raise PlumblineError(
            f"task {task}: cannot read {data_set.path} at revision {data_set.revision}"
            f"{f' from {mirror}' if mirror else ' from the hub'} ({type(error).__name__}: {_first_line(error)}). "
            "Without a network use --source packaged, --source local with a folder of JSONL, or --mirror"
        ) from error
    fields = schema.fields(task)
    return [{key: value for key, value in row.items() if key in fields} for row in loaded]


def _arguments(data_set: DataSet, mirror: Path | None) -> dict[str, Any]:
    if data_set.file is not None:
        root = f"hf://datasets/{data_set.path}@{data_set.revision}" if mirror is None else mirror / data_set.path
        return {"path": "json", "data_files": f"{root}/{data_set.file}", "split": "train"}
    if mirror is not None:
        return {"path": str(mirror / data_set.path), "name": data_set.name, "split": data_set.split}
    return {
        "path": data_set.path,
        "name": data_set.name,
        "split": data_set.split,
        "revision": data_set.revision,
    }


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [""])[0]
