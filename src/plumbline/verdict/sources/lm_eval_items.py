"""Reads what ``lm-eval --log_samples`` wrote of one model: a value for each item of each task, and how it was asked.

Its files are ``samples_<task>_<date>.jsonl``, a line an item and filter; the newest of a task counts. Beside them
stands ``results_<date>.json`` of the same run, which names the model, the shots and the versions of the tasks.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError, nearest
from plumbline.core.files import refuse_repeated_keys, sha256_text
from plumbline.core.foreign_rows import read_ordinary_text
from plumbline.verdict.evidence import Evidence, ItemEvidence
from plumbline.verdict.formatting import listed, name
from plumbline.verdict.sources.row_files import MOST_BYTES

DATE = r"\d{4}-\d\d-\d\dT[\d.:\-]+"
NAME = re.compile(rf"samples_(?P<task>.+?)(?:_(?P<date>{DATE}))?\.jsonl")
RESULTS = re.compile(rf"results(?:_(?P<date>{DATE}))?\.json")

#: What a run says of all its tasks: the words for it, and the keys below which it stands, the first there counts.
OF_RUN = {
    "chat template": (("chat_template_sha",), ("chat_template",)),
    "system instruction": (("system_instruction_sha",), ("system_instruction",)),
    "few-shot examples as turns": (("fewshot_as_multiturn",),),
    "limit": (("config", "limit"),),
    "version of lm-eval": (("lm_eval_version",),),
}
#: What it says of a task: the words, and the keys before the task's name, and after it.
OF_TASK = {
    "shots": ((("n-shot",), ()), (("configs",), ("num_fewshot",))),
    "version of the task": ((("versions",), ()), (("configs",), ("metadata", "version"))),
    "hash of the task": ((("task_hashes",), ()),),
}


def found(folder: Path) -> dict[str, list[Path]]:
    """Find the files of each task below a folder: task -> files, the newest first."""
    files: dict[str, list[tuple[str, Path]]] = {}
    for path in sorted(folder.rglob("samples_*.jsonl")) if folder.is_dir() else []:
        if match := NAME.fullmatch(path.name):
            files.setdefault(match["task"], []).append((match["date"] or "", path))
    return {task: [path for _, path in sorted(dated, reverse=True)] for task, dated in sorted(files.items())}


def read_model(folder: Path, metric: str) -> Evidence:
    """Read a folder by a metric, ``acc`` or, where tasks have several filters, ``exact_match,strict``.

    Raises:
        PlumblineError: there are no such files; they are of two models; a line is no item, has no number of the metric,
            or is there twice; or a file of results cannot be read.
    """
    files = found(folder)
    if not files:
        raise PlumblineError(f"{folder} has no samples_<task>_<date>.jsonl; run lm-eval with --log_samples")
    results = _results(folder)
    model = _only_model(folder, files, results)
    asked, notes = {}, []
    for task, paths in files.items():
        run = _run_of(paths[0], results)
        asked[task] = {} if run is None else _asked(run, task)
        if len(paths) > 1:
            notes.append(
                f"{name(folder.name)} has {len(paths)} files of {name(task)}; the newest counts, {paths[0].name}."
            )
    for what in OF_RUN:
        said = dict.fromkeys(asked[task][what] for task in files if what in asked[task])
        if len(said) > 1:
            few = listed([name(each[:40]) for each in list(said)[:3]])
            notes.append(f"Tasks of {name(folder.name)} differ in the {what}: {few}.")
    items = {task: _task(paths[0], metric) for task, paths in files.items()}
    dates = {match["date"] for paths in files.values() if (match := NAME.fullmatch(paths[0].name))}
    return Evidence(
        metric=metric,
        items=items,
        files=(*(paths[0] for paths in files.values()), *results),
        unread={str(path): "a newer file of the task counts" for paths in files.values() for path in paths[1:]},
        model=model or None,
        asked=asked,
        dates=len(dates),
        notes=tuple(notes),
    )


def _results(folder: Path) -> dict[Path, dict[str, Any]]:
    """The files of results below a folder."""
    results = {}
    for path in sorted(folder.rglob("results*.json")):
        if not RESULTS.fullmatch(path.name):
            continue
        try:
            read = json.loads(read_ordinary_text(path, MOST_BYTES), object_pairs_hook=refuse_repeated_keys)
        except (ValueError, RecursionError) as error:
            raise PlumblineError(f"{path} cannot be read as results of lm-eval ({error}); restore it") from None
        if isinstance(read, dict) and "results" in read:
            results[path] = read
    return results


def _run_of(samples: Path, results: Mapping[Path, dict[str, Any]]) -> dict[str, Any] | None:
    """The results of the run that wrote a file of samples: of its date, or else the only ones of its folder."""
    beside = {path: read for path, read in results.items() if path.parent == samples.parent}
    match = NAME.fullmatch(samples.name)
    dated = [read for path, read in beside.items() if match and path.name == f"results_{match['date']}.json"]
    return next(iter(dated or beside.values()), None) if dated or len(beside) == 1 else None


def _only_model(folder: Path, files: Mapping[str, list[Path]], results: Mapping[Path, dict[str, Any]]) -> str:
    """The model of a folder, by its results; "" where none name it.

    Raises:
        PlumblineError: files are of two models: by their results, or, where these name none, by their folders.
    """
    named = {path: model for path, read in results.items() if (model := _model(read))}
    of: dict[str, Path] = {}
    for path, model in named.items():
        of.setdefault(model, path)
    if not of:
        for path in sorted(each for paths in files.values() for each in paths):
            of.setdefault(path.parent.name if path.parent != folder else folder.resolve().name, path)
    elif unnamed := next(
        (path for paths in files.values() for path in paths if not any(at.parent == path.parent for at in named)), None
    ):
        of.setdefault(unnamed.parent.name, unnamed)
    if len(of) > 1:
        both = listed([f"{name(model[:200])} ({path.relative_to(folder)})" for model, path in list(of.items())[:3]])
        raise PlumblineError(
            f"{folder} has files of {len(of)} models: {both}; name the folder of one of them, or move the others out"
        )
    return next(iter(of)) if named else ""


def _model(read: Mapping[str, Any]) -> str:
    """The model that results name, with its arguments: another revision or precision is another model."""
    config = read.get("config")
    config = config if isinstance(config, dict) else {}
    arguments = config.get("model_args")
    if isinstance(arguments, str):
        arguments = dict(each.partition("=")[::2] for each in arguments.split(",") if each)
    arguments = dict(arguments) if isinstance(arguments, dict) else {}
    own = str(read.get("model_name") or arguments.get("pretrained") or arguments.get("model") or "")
    more = {key: value for key, value in arguments.items() if key not in ("pretrained", "model") and key not in PLACED}
    return (
        f"{own} {json.dumps(more, sort_keys=True)}"
        if own and more
        else own or (json.dumps(more, sort_keys=True) if more else "")
    )


#: Arguments of a model that say where and how fast it runs.
PLACED = ("device", "device_map", "batch_size", "max_batch_size", "parallelize", "tensor_parallel_size", "cache_dir")


def _asked(run: Mapping[str, Any], task: str) -> dict[str, str]:
    """How a run asked a task, as far as its results say it."""
    asked = {}
    for what, places in OF_RUN.items():
        for keys in places:
            if (value := _below(run, keys)) is not MISSING:
                asked[what] = "none" if value in (None, "", False) else str(value)
                break
    for what, pairs in OF_TASK.items():
        for before, after in pairs:
            value = _below(run, (*before, task, *after))
            if value is not MISSING and value is not None:
                asked[what] = str(value)
                break
    return asked


MISSING = object()


def _below(read: Any, keys: tuple[str, ...]) -> Any:
    for key in keys:
        if not isinstance(read, dict) or key not in read:
            return MISSING
        read = read[key]
    return read


def _task(path: Path, metric: str) -> dict[str, ItemEvidence]:
    wanted, _, chosen = metric.partition(",")
    items: dict[str, ItemEvidence] = {}
    filters: dict[str, None] = {}
    for number, line in enumerate(read_ordinary_text(path, MOST_BYTES).split("\n"), start=1):
        if not line.strip():
            continue
        record = _record(path, number, line)
        of = str(record.get("filter", "none"))
        filters[of] = None
        if chosen and of != chosen:
            continue
        if len(filters) > 1 and not chosen:
            raise PlumblineError(f"{path} has the filters {list(filters)}; choose one with --metric {wanted},FILTER")
        key = str(record["doc_id"])
        if key in items:
            raise PlumblineError(f"{path}, line {number}: item {key} is there twice")
        items[key] = ItemEvidence(
            _value(path, number, record, wanted),
            str(record.get("doc_hash", "")),
            _prompt(record),
            str(record.get("target_hash", "")),
        )
    if not items:
        raise PlumblineError(f"{path} has no items of {metric!r}; its filters are {list(filters)}")
    return items


def _prompt(record: dict[str, Any]) -> str:
    """What tells an item's prompt from another: lm-eval's own hash, or else one of the arguments that it was asked
    with; each begins with its kind.
    """
    if record.get("prompt_hash"):
        return f"prompt:{record['prompt_hash']}"
    arguments = record.get("arguments")
    return f"arguments:{sha256_text(json.dumps(arguments, sort_keys=True))}" if arguments else ""


def _record(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        record = json.loads(line, object_pairs_hook=refuse_repeated_keys)
    except (json.JSONDecodeError, RecursionError):
        record = None
    except ValueError as error:
        raise PlumblineError(f"{path}, line {number}: {error}") from None
    if not isinstance(record, dict) or "doc_id" not in record:
        raise PlumblineError(f"{path}, line {number} is not an item (an object with doc_id)")
    return record


def _value(path: Path, number: int, record: dict[str, Any], metric: str) -> float:
    value = record.get(metric)
    if isinstance(value, bool | int | float) and math.isfinite(value):
        return float(value)
    if isinstance(value, float):
        raise PlumblineError(
            f"{path}, line {number}: {metric!r} is {value:g}: the model has no score of this item, and to leave it out "
            "would select among them; put the evaluation right and repeat it, or name another metric with --metric"
        )
    there = record.get("metrics")
    named = [str(each) for each in there] if isinstance(there, list) else []
    raise PlumblineError(
        f"{path}, line {number}: {metric!r} is no finite number; name one of {named} with --metric"
        f"{nearest(metric, named)}"
    )
