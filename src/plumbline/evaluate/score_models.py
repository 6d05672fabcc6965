"""Scores models on a suite, finished runs or folders in Hugging Face form: ``plumbline score MODEL ...``.

A run is given by its name (``transfer/base/qknorm/s42``) or its folder.

The items are those that the workflow makes (``work/PRESET/corpora/CORPUS/items/SUITE``), or that ``python -m
plumbline.evaluate.items`` makes; if a source has no items they are proxies, and each line states which. A Hugging Face
folder is scored by the harness's `hf` model, in float32, and an answer that is longer than the model reads in
windows; no hub is contacted. A folder with its own code, as ``plumbline export`` writes them, is refused without
--trust-remote-code, which lets the code run.

Of several folders, which must fit the same --items-folder, the harness is started and its tasks are made once. One that
cannot be scored is named and left out, and the exit code is then 1. In --out a Hugging Face folder is `hf:<its
name>`, with as many of the folders above it as distinguish it from the others; the same model given twice is refused.
"""

from __future__ import annotations

import argparse
import functools
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from plumbline.core import command_line
from plumbline.core.errors import PlumblineError
from plumbline.core.files import read_json, sha256_file
from plumbline.core.package_version import version
from plumbline.evaluate import items, library_folder
from plumbline.specs import name_completers, suites
from plumbline.specs.tasks import MetricPolicy

if TYPE_CHECKING:
    import pandas as pd
    from lm_eval.api.model import LM

    from plumbline.evaluate.text_encoder import TextEncoder


@dataclass(frozen=True, slots=True)
class EvaluationItems:
    """What models are scored on, made once for all of them.

    `sources`: where each task's items come from. `tasks`: the harness's tasks by the suite's.
    """

    suite: suites.Suite
    sources: dict[str, str]
    tasks: dict[str, dict[str, Any]]

    @classmethod
    def read(cls, suite: suites.Suite, folder: Path, limit: int | None) -> EvaluationItems:
        """The first `limit` items of each of the suite's tasks, from `folder`; of a None limit all.

        Raises:
            PlumblineError: items that are not there, or not what they should be.
        """
        from plumbline.evaluate import harness_tasks

        sources: dict[str, str] = {task: entry.task_source for task, entry in items.read_index(folder, suite).items()}
        tasks = {task.name: harness_tasks.leaves(task, folder / f"{task.name}.jsonl", limit) for task in suite}
        return cls(suite, sources, tasks)


def score(
    model: LM, name: str, questions: EvaluationItems, policy: MetricPolicy, device: str
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The `scores` and `examples` frames of a harness model on a `device`; `name` stands in them as the run's id.

    Raises:
        PlumblineError: float32 products have fewer bits there.
    """
    import torch

    from plumbline.evaluate import harness_tasks
    from plumbline.evaluate import score_frames as scoring
    from plumbline.model.numerics import require_float32

    require_float32(torch.device(device))
    suite, by_task = questions.suite, questions.tasks
    results = harness_tasks.run(model, {leaf: task for leaves in by_task.values() for leaf, task in leaves.items()})
    item_scores = {task.name: scoring.examples(task, by_task[task.name], results) for task in suite}
    return scoring.frames(name, suite, item_scores, questions.sources, policy, version("lm_eval"))


def arguments() -> command_line.Parser:
    """Build the command-line parser of `plumbline score`."""
    parser = command_line.Parser(__doc__)
    parser.add_argument(
        "models", nargs="+", metavar="MODEL", type=Path, completer=name_completers.or_files(name_completers.runs),
        help="a finished run: its name, such as transfer/base/qknorm/s42, or its folder; or a folder in Hugging Face "
        "form",
    )  # fmt: skip
    parser.add_argument(
        "--items-folder",
        type=Path,
        metavar="DIR",
        help="items of the suite's tasks (default, of a run: the workflow's)",
    )
    parser.add_argument(
        "--tokenizer",
        type=Path,
        help="tokenizer.json of a run's corpus (default: the workflow's), or for a Hugging Face folder without one",
    )
    parser.add_argument(
        "--suite",
        completer=name_completers.suites,
        default="climb12",
        metavar="NAME",
        help="a file of config/suites, or of config/tasks (default: climb12)",
    )
    parser.add_argument("--limit", type=int, help="the first LIMIT items of each task (default: all)")
    parser.add_argument("--metric-policy", choices=get_args(MetricPolicy), default="acc_norm_where_defined",
                        help="which metric of a task enters the average (default: %(default)s)")  # fmt: skip
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1 (default: cpu)")
    parser.add_argument("--trust-remote-code", action="store_true", help="run the code in the folder")
    parser.add_argument("--out", type=Path, metavar="SCORES.csv", help="also write every metric there")
    return parser


@dataclass(frozen=True, slots=True)
class ModelToScore:
    """A folder with a model, and the tokenizer and the folder of items that go with it where nothing else is given."""

    folder: Path
    tokenizer: Path | None = None
    items: Path | None = None


def score_folder(
    folder: Path,
    items_folder: Path,
    *,
    tokenizer: Path | None = None,
    suite: str = "climb12",
    limit: int | None = None,
    policy: MetricPolicy = "acc_norm_where_defined",
    device: str = "cpu",
    trust_remote_code: bool = False,
    name: str = "",
) -> pd.DataFrame:
    """The `scores` frame of what lies in a folder: a finished run, or a model in Hugging Face form.

    Args:
        items_folder: items of the suite's tasks, as the workflow makes them.
        tokenizer: tokenizer.json of a run's corpus; of a Hugging Face folder only where it has none.
        limit: the first items of a task that are evaluated; None: all.
        trust_remote_code: run the code that a Hugging Face folder brings.
        name: of the model in the frame (default: a run's id; of a Hugging Face folder `hf:` and its name).

    Raises:
        PlumblineError: a folder that is none of the two, or did not complete; items or a tokenizer that are not there.
    """
    chosen_suite = suites.suite(suite)
    if limit is not None and limit < 1:
        raise PlumblineError(f"--limit must be at least 1, not {limit}")
    # Before anything slow: first the model, then what it is scored on.
    ours = _is_run(folder, tokenizer, trust_remote_code)
    items.read_index(items_folder, chosen_suite)
    os.environ.setdefault("TQDM_DISABLE", "1")
    if ours:
        own_name, model = _read_run(folder, tokenizer, items_folder, device)
    else:
        own_name, model = _read_hugging_face(folder, tokenizer, device, trust_remote_code)
    questions = _read_questions(chosen_suite, items_folder, limit, sha256_file(items_folder / items.INDEX))
    return score(model, name or own_name, questions, policy, device)[0]


def main() -> None:
    """Score the folders that are given.

    Raises:
        PlumblineError: a folder was not scored; of several, after all others were.
    """
    score_all(arguments().parse_args(), ModelToScore)


def score_all(options: argparse.Namespace, find: Callable[[Path], ModelToScore]) -> None:
    """Do what the command line asks for; `find` resolves the name of each model.

    Raises:
        PlumblineError: a model was not scored; of several, after all others were.
    """
    average = suites.suite(options.suite).average
    frames: list[pd.DataFrame] = []
    models = [_find_model(find, name) for name in options.models]
    row_names = _row_names([model.folder for model in models if isinstance(model, ModelToScore)])

    def show(name: Path, model: ModelToScore | PlumblineError) -> None:
        if isinstance(model, PlumblineError):
            raise model
        # One word for all: a Hugging Face folder among runs has a tokenizer of its own.
        has_own_tokenizer = (
            len(options.models) > 1
            and (model.folder / "config.json").is_file()
            and library_folder.has_tokenizer(model.folder)
        )
        folder, items_folder = model.folder, options.items_folder or model.items
        if items_folder is None:
            _is_run(folder, None if has_own_tokenizer else options.tokenizer, options.trust_remote_code)
            raise PlumblineError(
                f"--items-folder is missing; give the items of the suite {options.suite}, such as "
                f"work/demo/corpora/climbmix/items/{options.suite} (snakemake "
                f"work/demo/corpora/climbmix/items/{options.suite}/{items.INDEX} makes them)"
            )
        frame = score_folder(
            folder, items_folder, tokenizer=None if has_own_tokenizer else options.tokenizer or model.tokenizer,
            suite=options.suite, limit=options.limit, policy=options.metric_policy, device=options.device,
            trust_remote_code=options.trust_remote_code, name=row_names[folder],
        )  # fmt: skip
        frames.append(frame)
        if len(options.models) > 1:
            print(f"{name}:")
        primary_rows = frame[frame["primary"] | (frame["task"] == average)]
        print(
            primary_rows[["task", "metric", "value", "stderr", "items", "task_source"]].to_string(index=False),
            flush=True,
        )
        if options.out is not None:  # after each, so that a later one cannot lose it
            import pandas as pd

            from plumbline.core.csv_text import write_frame
            from plumbline.core.files import atomic_write_text

            atomic_write_text(options.out, write_frame(pd.concat(frames)))
            print(options.out)

    one_by_one([(name, functools.partial(show, name, model)) for name, model in zip(options.models, models)])


def _find_model(find: Callable[[Path], ModelToScore], name: Path) -> ModelToScore | PlumblineError:
    """Resolve one MODEL argument; return its error instead of raising it, to be reported when its turn comes."""
    try:
        return find(name)
    except PlumblineError as error:
        return error


def _row_names(folders: Sequence[Path]) -> dict[Path, str]:
    """What the rows of each folder are named in the output, no two alike: a run's id, or `hf:` and the end of the path.

    Raises:
        PlumblineError: two are the same model, whose rows could not be told apart.
    """
    names: dict[Path, str] = {}
    ends = {folder: folder.resolve().parts for folder in folders}
    for folder, parts in ends.items():
        manifest = read_json(folder / "manifest.json") if (folder / "outcome.json").is_file() else None
        if isinstance(manifest, dict):
            names[folder] = str(manifest.get("run_id"))
            continue
        other_ends = [end for path, end in ends.items() if path != folder]
        size = next((n for n in range(1, len(parts)) if all(parts[-n:] != end[-n:] for end in other_ends)), len(parts))
        names[folder] = f"hf:{'/'.join(parts[-size:])}"
    folders_by_name: dict[str, Path] = {}
    for folder in folders:
        if (name := names[folder]) in folders_by_name:
            raise PlumblineError(
                f"{folder} is the same model as {folders_by_name[name]} ({name}), and their rows could not be told "
                "apart; give each model once"
            )
        folders_by_name[name] = folder
    return names


def one_by_one(jobs: Sequence[tuple[Path, Callable[[], None]]]) -> None:
    """Do what is to be done of each folder.

    Raises:
        PlumblineError: some of several failed, after all others were done. A single one's errors are its own.
    """
    failed: list[str] = []
    for folder, do in jobs:
        try:
            do()
        except Exception as error:
            if len(jobs) == 1:
                raise
            failed.append(str(folder))
            of_disk = command_line.describe_disk_error(error) if isinstance(error, OSError) else None
            print(f"error: {folder}: {of_disk or error}", file=sys.stderr)
            if not isinstance(error, PlumblineError) and of_disk is None:
                traceback.print_exc()
    if failed:
        why = "for reasons given above"
        raise PlumblineError(f"{len(failed)} of {len(jobs)} were not scored, {why}: {', '.join(failed)}")


def _is_run(folder: Path, tokenizer: Path | None, trust_remote_code: bool) -> bool:
    """Whether a folder is a finished run, as opposed to a model in Hugging Face form; no weights are read.

    Raises:
        PlumblineError: it is none of the two, or does not go with the other flags.
    """
    if (folder / "outcome.json").is_file():
        return True
    if not (folder / "config.json").is_file():
        expected = "neither a finished run (outcome.json) nor a model in Hugging Face form (config.json)"
        raise PlumblineError(
            f"{folder}: {expected if folder.is_dir() else 'there is no such folder'}; name one of a finished run or of "
            "a model, such as work/demo/runs/transfer/base/baseline/s42"
        )
    library_folder.require_fit(folder, tokenizer, trust_remote_code)
    return False


def _read_hugging_face(folder: Path, tokenizer: Path | None, device: str, trust_remote_code: bool) -> tuple[str, Any]:
    """A name for the model, and the harness's view of it.

    Raises:
        PlumblineError: there is no tokenizer, here or given, or the folder does not hold a whole model.
    """
    from plumbline.evaluate.harness_hf_model import HuggingFaceLM
    from plumbline.model import hugging_face_folder

    text_tokenizer = library_folder.read_tokenizer(folder, tokenizer, trust_remote_code)
    model = hugging_face_folder.read_model(folder, trust_remote_code=trust_remote_code).to(device)
    with hugging_face_folder.library_errors(folder):
        harness_model = HuggingFaceLM(
            model, tokenizer=text_tokenizer, trust_remote_code=trust_remote_code, batch_size=8
        )
    return f"hf:{folder.resolve().name}", harness_model


@functools.lru_cache(1)
def _read_questions(suite: suites.Suite, folder: Path, limit: int | None, index: str) -> EvaluationItems:
    """The last ones are kept, for the next model; `index`: the checksum of what lists the items."""
    return EvaluationItems.read(suite, folder, limit)


@functools.lru_cache(1)
def _read_encoder(tokenizer: Path, checksum: str) -> TextEncoder:
    """The last tokenizer is kept, with the words that it has met."""
    from plumbline.data import tokenizer as tokenizers
    from plumbline.evaluate.text_encoder import TextEncoder

    return TextEncoder(tokenizers.read(tokenizer))


def _read_run(folder: Path, tokenizer: Path | None, items_folder: Path, device: str) -> tuple[str, Any]:
    """A run's id, and the harness's view of its model."""
    from plumbline.evaluate.harness_model import CheckpointLM
    from plumbline.model.finished_run import FinishedRun

    run = FinishedRun.read(folder)
    if run.outcome != "completed":
        raise PlumblineError(f"{folder}: {run.outcome}; there is no model to score")
    if tokenizer is None or not tokenizer.is_file():
        where = f"work/{run.spec.preset}/corpora/{run.spec.data.corpus}/tokenizer/tokenizer.json"
        why = "is missing" if tokenizer is None else f"{tokenizer} is no file"
        raise PlumblineError(f"--tokenizer {why}; give that of the run's corpus, such as {where}")
    items.require_held_out(items_folder, tokenizer, run.manifest)
    texts = _read_encoder(tokenizer.resolve(), run.require_tokenizer(tokenizer))
    return run.spec.run_id, CheckpointLM(run.model(), texts, context=run.spec.model.context, device=device)


if __name__ == "__main__":
    command_line.run(main)
