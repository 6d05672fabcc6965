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
from plumbline.verdict.formatting import join_with_and, quote
from plumbline.verdict.outcome import CannotBeJudgedError
from plumbline.verdict.sources.row_files import MOST_BYTES

DATE = r"\d{4}-\d\d-\d\dT[\d.:\-]+"
NAME = re.compile(rf"samples_(?P<task>.+?)(?:_(?P<date>{DATE}))?\.jsonl")
RESULTS = re.compile(rf"results(?:_(?P<date>{DATE}))?\.json")

#: What a run says of all its tasks: the words for it, and the keys below which it stands, the first there counts.
RUN_SETTINGS = {
    "chat template": (("chat_template_sha",), ("chat_template",)),
    "system instruction": (("system_instruction_sha",), ("system_instruction",)),
    "few-shot examples as turns": (("fewshot_as_multiturn",),),
    "limit": (("config", "limit"),),
    "version of lm-eval": (("lm_eval_version",),),
}
#: What it says of a task: the words, and the keys before the task's name, and after it.
TASK_SETTINGS = {
    "shots": ((("n-shot",), ()), (("configs",), ("num_fewshot",))),
    "version of the task": ((("versions",), ()), (("configs",), ("metadata", "version"))),
    "hash of the task": ((("task_hashes",), ()),),
}


def find_samples(folder: Path) -> dict[str, list[Path]]:
    """Find the files of each task below a folder: task -> files, the newest first."""
    files: dict[str, list[tuple[str, Path]]] = {}
    for path in sorted(folder.rglob("samples_*.jsonl")) if folder.is_dir() else []:
        if match := NAME.fullmatch(path.name):
            files.setdefault(match["task"], []).append((match["date"] or "", path))
    return {task: [path for _, path in sorted(pairs, reverse=True)] for task, pairs in sorted(files.items())}


def read_model(folder: Path, metric: str) -> Evidence:
    """Read a folder by a metric, ``acc`` or, where tasks have several filters, ``exact_match,strict``.

    Raises:
        CannotBeJudgedError: they are of two models.
        PlumblineError: no such files; a line is not an item, has no number of the metric,
            or is there twice; or a file of results cannot be read.
    """
    files = find_samples(folder)
    if not files:
        raise PlumblineError(f"{folder} has no samples_<task>_<date>.jsonl; run lm-eval with --log_samples")
    results = _read_results(folder)
    model = _require_one_model(folder, files, results)
    settings, notes = {}, []
    for task, paths in files.items():
        run = _find_results(paths[0], results)
        settings[task] = {} if run is None else _read_settings(run, task)
        if len(paths) > 1:
            notes.append(
                f"{quote(folder.name)} has {len(paths)} files of {quote(task)}; the newest counts, {paths[0].name}."
            )
    for setting in RUN_SETTINGS:
        values = dict.fromkeys(settings[task][setting] for task in files if setting in settings[task])
        if len(values) > 1:
            value_names = join_with_and([quote(each[:40]) for each in list(values)[:3]])
            notes.append(f"Tasks of {quote(folder.name)} differ in the {setting}: {value_names}.")
    items = {task: _read_items(paths[0], metric) for task, paths in files.items()}
    dates = {match["date"] for paths in files.values() if (match := NAME.fullmatch(paths[0].name))}
    return Evidence(
        metric=metric,
        items=items,
        files=(*(paths[0] for paths in files.values()), *results),
        model=model or None,
        asked=settings,
        dates=len(dates),
        notes=tuple(notes),
    )


def _read_results(folder: Path) -> dict[Path, dict[str, Any]]:
    """The files of results below a folder."""
    results = {}
    for path in sorted(folder.rglob("results*.json")):
        if not RESULTS.fullmatch(path.name):
            continue
        try:
            content = json.loads(read_ordinary_text(path, MOST_BYTES), object_pairs_hook=refuse_repeated_keys)
        except (ValueError, RecursionError) as error:
            raise PlumblineError(f"{path} cannot be read as results of lm-eval ({error}); restore it") from None
        if isinstance(content, dict) and "results" in content:
            results[path] = content
    return results


def _find_results(samples: Path, results: Mapping[Path, dict[str, Any]]) -> dict[str, Any] | None:
    """The results of the run that wrote a file of samples: of its date, or else the only ones of its folder."""
    folder_results = {path: content for path, content in results.items() if path.parent == samples.parent}
    match = NAME.fullmatch(samples.name)
    hits = [
        content for path, content in folder_results.items() if match and path.name == f"results_{match['date']}.json"
    ]
    return next(iter(hits or folder_results.values()), None) if hits or len(folder_results) == 1 else None


def _require_one_model(folder: Path, files: Mapping[str, list[Path]], results: Mapping[Path, dict[str, Any]]) -> str:
    """The model of a folder, by its results; "" if none name it.

    Raises:
        CannotBeJudgedError: files are of two models: by their results, or, where these name none, by their folders.
    """
    named_models = {path: model for path, content in results.items() if (model := _name_model(content))}
    models: dict[str, Path] = {}
    for path, model in named_models.items():
        models.setdefault(model, path)
    paths = [path for of_task in files.values() for path in of_task]
    named_folders = {path.parent for path in named_models}
    if not named_models:
        for path in sorted(paths):
            models.setdefault(path.parent.name if path.parent != folder else folder.resolve().name, path)
    elif unnamed_paths := [path for path in paths if path.parent not in named_folders]:
        models.setdefault(unnamed_paths[0].parent.name, unnamed_paths[0])
    if len(models) > 1:
        model_names = join_with_and(
            [f"{quote(model[:200])} ({path.relative_to(folder)})" for model, path in list(models.items())[:3]]
        )
        raise CannotBeJudgedError(
            f"{folder} has files of {len(models)} models: {model_names}; name the folder of one of them, or move the "
            "others out"
        )
    return next(iter(models)) if named_models else ""


def _name_model(results: Mapping[str, Any]) -> str:
    """The model that results name, with its arguments: another revision or precision is another model."""
    config = results.get("config")
    config = config if isinstance(config, dict) else {}
    arguments = config.get("model_args")
    if isinstance(arguments, str):
        arguments = dict(each.partition("=")[::2] for each in arguments.split(",") if each)
    arguments = arguments if isinstance(arguments, dict) else {}
    name = str(results.get("model_name") or arguments.get("pretrained") or arguments.get("model") or "")
    other_arguments = {key: value for key, value in arguments.items() if key not in ("pretrained", "model", *PLACEMENT)}
    return " ".join(filter(None, (name, json.dumps(other_arguments, sort_keys=True) if other_arguments else "")))


#: Arguments of a model that say where and how fast it runs.
PLACEMENT = ("device", "device_map", "batch_size", "max_batch_size", "parallelize", "tensor_parallel_size", "cache_dir")


def _read_settings(run: Mapping[str, Any], task: str) -> dict[str, str]:
    """How a run asked a task, as far as its results state it."""
    settings = {}
    for setting, places in RUN_SETTINGS.items():
        for keys in places:
            if (value := _look_up(run, keys)) is not MISSING:
                settings[setting] = "none" if value in (None, "", False) else str(value)
                break
    for setting, pairs in TASK_SETTINGS.items():
        for first_keys, last_keys in pairs:
            value = _look_up(run, (*first_keys, task, *last_keys))
            if value is not MISSING and value is not None:
                settings[setting] = str(value)
                break
    return settings


MISSING = object()


def _look_up(value: Any, keys: tuple[str, ...]) -> Any:
    for key in keys:
        if not isinstance(value, dict) or key not in value:
            return MISSING
        value = value[key]
    return value


def _read_items(path: Path, metric: str) -> dict[str, ItemEvidence]:
    metric_name, _, chosen_filter = metric.partition(",")
    items: dict[str, ItemEvidence] = {}
    filters: dict[str, None] = {}
    for number, line in enumerate(read_ordinary_text(path, MOST_BYTES).split("\n"), start=1):
        if not line.strip():
            continue
        record = _parse_item(path, number, line)
        filter_name = str(record.get("filter", "none"))
        filters[filter_name] = None
        if chosen_filter and filter_name != chosen_filter:
            continue
        if len(filters) > 1 and not chosen_filter:
            raise PlumblineError(
                f"{path} has the filters {list(filters)}; choose one with --metric {metric_name},FILTER"
            )
        key = str(record["doc_id"])
        if key in items:
            raise PlumblineError(f"{path}, line {number}: item {key} is there twice")
        items[key] = ItemEvidence(
            _read_value(path, number, record, metric_name),
            str(record.get("doc_hash", "")),
            _identify_prompt(record),
            str(record.get("target_hash", "")),
        )
    if not items:
        raise PlumblineError(f"{path} has no items of {metric!r}; its filters are {list(filters)}")
    return items


def _identify_prompt(record: dict[str, Any]) -> str:
    """What tells an item's prompt from another: lm-eval's own hash, or else one of the arguments that it was asked
    with; each begins with its kind.
    """
    if record.get("prompt_hash"):
        return f"prompt:{record['prompt_hash']}"
    arguments = record.get("arguments")
    return f"arguments:{sha256_text(json.dumps(arguments, sort_keys=True))}" if arguments else ""


def _parse_item(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        record = json.loads(line, object_pairs_hook=refuse_repeated_keys)
    except (json.JSONDecodeError, RecursionError):
        record = None
    except ValueError as error:
        raise PlumblineError(f"{path}, line {number}: {error}") from None
    if not isinstance(record, dict) or "doc_id" not in record:
        raise PlumblineError(f"{path}, line {number} is not an item (an object with doc_id)")
    return record


def _read_value(path: Path, number: int, record: dict[str, Any], metric: str) -> float:
    value = record.get(metric)
    if isinstance(value, bool | int | float) and math.isfinite(value):
        return float(value)
    if isinstance(value, float):
        raise PlumblineError(
            f"{path}, line {number}: {metric!r} is {value:g}: the model has no score of this item, and to leave it out "
            "would select among them; put the evaluation right and repeat it, or name another metric with --metric"
        )
    names = record.get("metrics")
    metrics = [str(each) for each in names] if isinstance(names, list) else []
    raise PlumblineError(
        f"{path}, line {number}: {metric!r} is no finite number; name one of {metrics} with --metric"
        f"{nearest(metric, metrics)}"
    )
