"""``plumbline score FOLDER``: any model on a suite: a finished run of ours, or a folder in Hugging Face form.

Items are those that the workflow makes (``work/PRESET/corpora/CORPUS/items/SUITE``), or that ``python -m
plumbline.evaluate.items`` does; among them are proxies where a source has no items, and each line says which. A Hugging
Face folder is scored by the harness's `hf` model, in float32, and an answer that is longer than the model reads in
windows; no hub is asked. One that brings code of its own, as ``plumbline export`` writes them, is refused unless
--trust-remote-code says that the code may run.
"""

from __future__ import annotations

import argparse
import os
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from plumbline import cli
from plumbline.cli import PlumblineError
from plumbline.evaluate import items
from plumbline.files import parse_json
from plumbline.specs import suites

if TYPE_CHECKING:
    import pandas as pd
    from lm_eval.api.model import LM


def score(
    model: LM,
    name: str,
    suite: suites.Suite,
    folder: Path,
    limit: int | None,
    policy: suites.MetricPolicy,
) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, Any]]:
    """The `scores` and `examples` frames of a harness model, and the harness's tasks by the suite's.

    Args:
        name: stands in the frames as the run's id.
        folder: items of the suite's tasks.
        limit: the first items of a task that are evaluated.

    Raises:
        PlumblineError: items that are not there, or not what they should be.
    """
    import torch

    from plumbline.evaluate import harness
    from plumbline.evaluate import scores as scoring

    torch.backends.cuda.matmul.allow_tf32 = False
    entries = items.read_index(folder, suite.task_names)
    by_task = {task.name: harness.leaves(task, folder / f"{task.name}.jsonl", limit) for task in suite}
    results = harness.run(model, {leaf: task for leaves in by_task.values() for leaf, task in leaves.items()})
    found = {task.name: scoring.examples(task, by_task[task.name], results) for task in suite}
    sources: dict[str, str] = {task: entry.task_source for task, entry in entries.items()}
    return *scoring.frames(name, suite, found, sources, policy, version("lm_eval")), by_task


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog=cli.prog("plumbline score"),
        description=cli.described(__doc__),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", type=Path, help="folder of a finished run, or of a model in Hugging Face form")
    parser.add_argument("--items", required=True, type=Path, metavar="DIR", help="items of the suite's tasks")
    parser.add_argument(
        "--tokenizer", type=Path, help="tokenizer.json of a run's corpus; a Hugging Face folder has one"
    )
    parser.add_argument("--suite", default="climb12", metavar="NAME", help="a file of config/suites (default: climb12)")
    parser.add_argument("--limit", type=int, help="the first LIMIT items of each task (default: all)")
    parser.add_argument("--metric-policy", choices=get_args(suites.MetricPolicy), default="acc_norm_where_defined",
                        help="which metric of a task enters the average (default: %(default)s)")  # fmt: skip
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1 (default: cpu)")
    parser.add_argument("--trust-remote-code", action="store_true", help="run code that the folder brings")
    parser.add_argument("--out", type=Path, metavar="SCORES.csv", help="also write every metric there")
    return parser


def scored(
    folder: Path,
    items_folder: Path,
    *,
    tokenizer: Path | None = None,
    suite: str = "climb12",
    limit: int | None = None,
    policy: suites.MetricPolicy = "acc_norm_where_defined",
    device: str = "cpu",
    trust_remote_code: bool = False,
) -> pd.DataFrame:
    """The `scores` frame of what lies in a folder: a finished run, or a model in Hugging Face form.

    Args:
        items_folder: items of the suite's tasks, as the workflow makes them.
        tokenizer: tokenizer.json of a run's corpus; none for a Hugging Face folder, which has its own.
        limit: the first items of a task that are evaluated; None: all.
        trust_remote_code: run the code that a Hugging Face folder brings.

    Raises:
        PlumblineError: a folder that is none of the two, or did not complete; items or a tokenizer that are not there.
    """
    of = suites.suite(suite)
    if limit is not None and limit < 1:
        raise PlumblineError(f"--limit must be at least 1, not {limit}")
    # Before anything slow: first the model, then what it is scored on.
    ours = _is_ours(folder, tokenizer, trust_remote_code)
    items.read_index(items_folder, of.task_names)
    os.environ.setdefault("TQDM_DISABLE", "1")
    name, model = _ours(folder, tokenizer, device) if ours else _hugging_face(folder, device, trust_remote_code)
    frame, _, _ = score(model, name, of, items_folder, limit, policy)
    return frame


def main() -> None:
    """The verb."""
    given = arguments().parse_args()
    frame = scored(
        given.model, given.items, tokenizer=given.tokenizer, suite=given.suite, limit=given.limit,
        policy=given.metric_policy, device=given.device, trust_remote_code=given.trust_remote_code,
    )  # fmt: skip
    shown = frame[frame["primary"] | (frame["task"] == suites.suite(given.suite).average)]
    print(shown[["task", "metric", "value", "stderr", "items", "task_source"]].to_string(index=False))
    if given.out is not None:
        from plumbline.files import atomic_write_text

        atomic_write_text(given.out, frame.to_csv(index=False))
        print(given.out)


def _is_ours(folder: Path, tokenizer: Path | None, trust_remote_code: bool) -> bool:
    """Whether a folder is a finished run, as opposed to a model in Hugging Face form; no weights are read.

    Raises:
        PlumblineError: it is none of the two, or does not go with the other words.
    """
    if (folder / "outcome.json").is_file():
        return True
    if not (folder / "config.json").is_file():
        what = "neither a finished run (outcome.json) nor a model in Hugging Face form (config.json)"
        raise PlumblineError(
            f"{folder}: {what if folder.is_dir() else 'there is no such folder'}; name one of a finished run or of a "
            "model, such as work/demo/runs/transfer/base/baseline/s42"
        )
    if tokenizer is not None:
        raise PlumblineError(
            f"--tokenizer: {folder} is in Hugging Face form, with a tokenizer of its own; leave it out"
        )
    if not trust_remote_code and _brings_code(folder):
        raise PlumblineError(
            f"{folder}: brings code of its own (auto_map in config.json); read its .py files, and give "
            "--trust-remote-code to run them"
        )
    return False


def _hugging_face(folder: Path, device: str, trust_remote_code: bool) -> tuple[str, Any]:
    """A name for the model, and the harness's view of it."""
    from plumbline.evaluate.hugging_face import HuggingFaceLM

    words = {"device": device, "dtype": "float32", "batch_size": 8, "trust_remote_code": trust_remote_code}
    try:
        model = HuggingFaceLM(pretrained=str(folder), **words)
    except (OSError, ValueError, KeyError) as error:
        raise PlumblineError(f"{folder}: transformers cannot read it ({error})") from error
    return f"hf:{folder.resolve().name}", model


def _brings_code(folder: Path) -> bool:
    """Whether a configuration names code that lies beside it."""
    try:
        return "auto_map" in parse_json((folder / "config.json").read_bytes())
    except (OSError, ValueError, TypeError):
        return False  # transformers says what is wrong with it


def _ours(folder: Path, tokenizer: Path | None, device: str) -> tuple[str, Any]:
    """A run's id, and the harness's view of its model."""
    from tokenizers import Tokenizer

    from plumbline.evaluate.adapter import CheckpointLM
    from plumbline.evaluate.checkpoint import FinishedRun

    run = FinishedRun.read(folder)
    if run.outcome != "completed":
        raise PlumblineError(f"{folder}: {run.outcome}; there is no model to score")
    if tokenizer is None or not tokenizer.is_file():
        where = f"work/{run.spec.preset}/corpora/{run.spec.data.corpus}/tokenizer/tokenizer.json"
        why = "is missing" if tokenizer is None else f"{tokenizer} is no file"
        raise PlumblineError(f"--tokenizer {why}; give that of the run's corpus, such as {where}")
    words = Tokenizer.from_file(str(tokenizer))
    return run.spec.run_id, CheckpointLM(run.model(), words, context=run.spec.model.context, device=device)


if __name__ == "__main__":
    cli.run(main)
