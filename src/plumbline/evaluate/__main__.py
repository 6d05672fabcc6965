"""Scores finished runs: ``plumbline evaluate``.

Writes `scores.parquet` and `examples.parquet`. A diverged run has no model to score: its frames are empty, their
metadata says `outcome=diverged`, and the exit code is 0. Of several runs (``--run A --out X --run B --out Y``) the
harness is started and its tasks are made once; one that cannot be scored is named, and the exit code is then 1.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import pandas as pd

from plumbline.core import fingerprint_file, frames
from plumbline.core.command_line import HIDDEN, Parser, run, token_id
from plumbline.core.errors import PlumblineError
from plumbline.core.files import make_folder, sha256_file
from plumbline.core.package_version import version
from plumbline.core.run_files import MODEL
from plumbline.evaluate import items
from plumbline.evaluate.score_models import EvaluationItems, one_by_one, score
from plumbline.specs import name_completers, suites
from plumbline.specs.tasks import MetricPolicy

if TYPE_CHECKING:
    from plumbline.evaluate.text_encoder import TextEncoder


def main() -> None:
    """Score the runs that the command line names.

    Raises:
        PlumblineError: a run was not scored; of several, after all others were.
    """
    options = arguments().parse_args()
    suite = suites.suite(options.suite)
    if options.limit is not None and options.limit < 1:
        raise PlumblineError(f"--limit must be at least 1, not {options.limit}")
    if len(options.run) != len(options.out):
        raise PlumblineError(
            f"--run {len(options.run)} times, --out {len(options.out)} times; give an --out for each --run"
        )
    if repeated := [out for out, count in Counter(out.resolve() for out in options.out).items() if count > 1]:
        raise PlumblineError(f"--out {repeated[0]} is given twice; each run's scores need a folder of their own")
    entries = items.read_index(options.items_folder, suite)
    if not options.tokenizer.is_file():
        raise PlumblineError(f"--tokenizer: there is no file {options.tokenizer}")
    labels = {
        "suite": suite.name,
        "metric_policy": options.metric_policy,
        "limit": "none" if options.limit is None else str(options.limit),
        "harness_version": version("lm_eval"),
        "tokenizer_sha256": sha256_file(options.tokenizer),
        "items_sha256": json.dumps(items.checksums(entries), sort_keys=True),
        "precision": "float32",
    }
    # Progress bars are of no use in a log; the harness's libraries read this when they are imported.
    os.environ.setdefault("TQDM_DISABLE", "1")

    @functools.cache
    def load_shared() -> tuple[TextEncoder, EvaluationItems]:
        """What the runs share, made for the first that has a model."""
        from plumbline.data import tokenizer
        from plumbline.evaluate.text_encoder import TextEncoder

        return TextEncoder(tokenizer.read(options.tokenizer)), EvaluationItems.read(
            suite, options.items_folder, options.limit
        )

    def write(run: Path, out: Path) -> None:
        scores, examples, more = _evaluate(run, options, load_shared)
        make_folder(out)
        frames.write(examples, "examples", out / "examples.parquet", labels | more)
        frames.write(scores, "scores", out / "scores.parquet", labels | more)
        examples_path = out / "examples.parquet"
        facts = labels | {"examples_sha256": sha256_file(examples_path)}
        fingerprint_file.write(out / "scores.parquet", options.fingerprint, companions=[examples_path], **facts)
        if len(scores):
            average, count = scores["value"].iloc[-1], int(scores["items"].iloc[-1])
            print(f"{suite.average} {average:.4f} ({count} items)", flush=True)

    one_by_one([(run, functools.partial(write, run, out)) for run, out in zip(options.run, options.out)])


def _evaluate(
    run: Path, options: argparse.Namespace, load_shared: Callable[[], tuple[TextEncoder, EvaluationItems]]
) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, str]]:
    from plumbline.model.finished_run import NOT_RECORDED, FinishedRun

    finished = FinishedRun.read(run)
    if finished.outcome != "completed":
        print(f"{finished.spec.key}: {finished.outcome}, there is no model to score")
        return _empty_frame("scores"), _empty_frame("examples"), {"outcome": finished.outcome}

    finished.require_tokenizer(options.tokenizer)
    items.require_held_out(options.items_folder, options.tokenizer, finished.manifest)

    import torch

    from plumbline.evaluate import harness_tasks
    from plumbline.evaluate.harness_model import CheckpointLM

    texts, questions = load_shared()
    device = options.device
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    model = CheckpointLM(
        finished.model(),
        texts,
        context=finished.spec.model.context,
        device=device,
        batch_tokens=options.batch_tokens,
        document_end=options.document_end,
    )
    if not model.reader.shared:
        print(
            f"{finished.spec.key}: what a token sees depends on other tokens than those before it in its own row, so "
            "that every row is read whole, by itself or with others",
            file=sys.stderr,
        )
    scores, examples = score(model, finished.spec.run_id, questions, options.metric_policy, device)
    yamls = {task.name: harness_tasks.yaml_checksums(task, questions.tasks[task.name]) for task in questions.suite}
    labels: dict[str, Any] = {
        "outcome": finished.outcome,
        "device": device,
        "torch": str(torch.__version__),
        "weights_sha256": finished.look_up_sha256(MODEL) or NOT_RECORDED,
        "context": str(finished.spec.model.context),
        "truncated_requests": str(model.truncated),
        "common_beginnings": "read once" if model.reader.shared else "read with each row",
        "task_yaml_sha256": json.dumps(yamls),
    }
    if options.fingerprint:  # made by hand, nothing is known of the code
        labels["fingerprint"] = options.fingerprint.partition("-")[0]
    return scores, examples, labels


def _empty_frame(name: str) -> pd.DataFrame:
    return frames.SCHEMAS[name].empty_table().to_pandas()


def arguments() -> Parser:
    """The command line."""
    parser = Parser(__doc__)
    parser.add_argument(
        "--run", required=True, action="append", type=Path, help="a run's folder: outcome, manifest, weights"
    )
    parser.add_argument("--items-folder", required=True, type=Path, help="folder made by plumbline.evaluate.items")
    parser.add_argument("--tokenizer", required=True, type=Path, help="tokenizer.json")
    parser.add_argument(
        "--document-end",
        type=token_id,
        metavar="ID",
        help="the token that ends a document, if no name shows it",
    )
    parser.add_argument(
        "--out", required=True, action="append", type=Path, help="folder for its scores.parquet, examples.parquet"
    )
    parser.add_argument(
        "--suite",
        required=True,
        metavar="NAME",
        completer=name_completers.suites,
        help="a file of config/suites, or of config/tasks",
    )
    parser.add_argument("--limit", type=int, help="evaluate the first LIMIT items of each task; default all")
    parser.add_argument(
        "--metric-policy",
        choices=get_args(MetricPolicy),
        default="acc_norm_where_defined",
        help="which metric of a task enters the suite's average",
    )
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1, ...")
    parser.add_argument("--batch-tokens", type=int, help="tokens in one forward pass; default by device")
    parser.add_argument("--fingerprint", default="", help=HIDDEN)
    return parser


if __name__ == "__main__":
    run(main)
