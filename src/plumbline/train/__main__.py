"""Pretrains one run, or continues it: ``python -m plumbline.train``. Exit codes: 0 trained to its end (completed or
diverged), 75 asked to stop and saved, anything else a fault.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

from plumbline.core import command_line
from plumbline.core.files import sha256_text
from plumbline.core.stop_request import StopRequest
from plumbline.train.trainer_settings import TrainerSettings


def arguments() -> command_line.Parser:
    """Build the command-line parser of `python -m plumbline.train`."""
    parser = command_line.Parser(__doc__)
    add = parser.add_argument
    add("--spec", required=True, help="run spec: JSON text or a file that holds it")
    add("--training-pack", required=True, type=Path, help="manifest of the training pack")
    add("--validation-pack", required=True, type=Path, help="manifest of the validation pack")
    add("--state", required=True, type=Path, help="directory of rolling checkpoints; kept between starts")
    add("--out", required=True, type=Path, help="directory of the outputs; outcome.json is written last")
    add(
        "--micro-batch",
        type=command_line.positive,
        metavar="SEQUENCES",
        help="most sequences at a time on a rank (default: all; on a GPU as many as its memory holds)",
    )
    add("--device", choices=("auto", "cpu", "cuda"), default="auto")
    interval = parser.add_mutually_exclusive_group()
    interval.add_argument(
        "--checkpoint-every",
        type=command_line.duration,
        metavar="TIME",
        dest="checkpoint_seconds",
        help="default: 15s on a CPU, 10 min on a GPU",
    )
    interval.add_argument("--checkpoint-steps", type=command_line.positive, metavar="N")
    add(
        "--keep-checkpoints",
        type=command_line.positive,
        default=3,
        help="rolling checkpoints to keep (default: %(default)s)",
    )
    add(
        "--background-io",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="write checkpoints and read the next sequences during steps (default: yes)",
    )
    add("--tensorboard", type=Path, metavar="DIR", help="also write TensorBoard events there")
    add("--mlflow", metavar="URI", help="log the run to MLflow: a tracking server, or a folder")
    add("--strategy", choices=("ddp", "fsdp"), default="ddp", help="with several ranks (default: %(default)s)")
    add(
        "--compile",
        action="store_true",
        help="torch.compile training steps; if that fails, continue without and say so",
    )
    add(
        "--compile-cache",
        type=Path,
        metavar="DIR",
        help="keep compiled code there, for other runs of the same shape",
    )
    add(
        "--recompute-activations",
        action="store_true",
        help="keep only the residual stream between layers for the backward pass: less memory, a third more work",
    )
    add("--attention", choices=("auto", "reference"), default="auto",
        help="reference: explicit weights instead of fused kernels (default: %(default)s)")  # fmt: skip
    add(
        "--metric-lag-steps",
        type=command_line.not_negative,
        metavar="STEPS",
        help="read losses so many steps after they were computed; no number changes (default: 0 on a CPU; on a GPU 8, "
        "among several 2)",
    )
    add_time = partial(add, type=command_line.duration, metavar="TIME")
    text = "shortest time between two progress lines (default: 5s)"
    add_time("--report-every", dest="report_seconds", default=5.0, help=text)
    text = "a trainer without a heartbeat counts as dead after this time (default: 2 min)"
    add_time("--stale-lock-after", dest="stale_lock_seconds", default=120.0, help=text)
    text = "how long to wait for another trainer of this run (default: 3 min)"
    add_time("--lock-wait", dest="lock_wait_seconds", default=180.0, help=text)
    add("--max-starts-without-progress", type=int, default=3, metavar="K",
        help="give up after K faults in the loop from the same step; 0: never (default: %(default)s)")  # fmt: skip
    return parser


def main() -> int:
    """Run `python -m plumbline.train`, and return the exit code. Signals are caught before the slow imports."""
    stop = StopRequest().install()
    from plumbline.specs.spec import RunSpec

    options = vars(arguments().parse_args())
    text = options.pop("spec")
    settings = TrainerSettings(**options)
    try:
        spec = RunSpec.from_json(text)
    except command_line.PlumblineError as error:
        from plumbline.train.checkpoint import state_records

        state_records.give_up(settings.state, str(error), {"spec_sha256": sha256_text(text)})
        raise
    from plumbline.train.pretrain import pretrain

    return pretrain(spec, settings, stop)


if __name__ == "__main__":
    command_line.run(main)
