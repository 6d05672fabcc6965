"""Reads probe values of a run at its probe points, or of any checkpoint, into one frame.

``--run`` reads a finished run at all of its probe points: offline probes read the weights that it kept, and the values
of online probes during training are added. Of a run that diverged the points that it reached are read, and as its end
its last finite weights at their own step; later points are named in the frame's metadata and on stderr.

``--checkpoint`` reads one model, with every probe's default options: the folder of a run, or of a Llama, Mistral,
Qwen2, Qwen3, Gemma2, Gemma3, OLMo2, Phi, Phi3, GPT-2 or GPT-NeoX in Hugging Face form, as `save_pretrained` writes it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from plumbline.core import fingerprint_file
from plumbline.core.command_line import HIDDEN, Parser, run
from plumbline.core.errors import PlumblineError, nearest
from plumbline.specs.components import available, options


def arguments() -> Parser:
    """The parser of the verb's command line."""
    parser = Parser(__doc__)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--run", type=Path, help="folder of a finished run")
    source.add_argument("--checkpoint", type=Path, help="folder of one model: a run, or in Hugging Face form")
    parser.add_argument(
        "--validation-pack", type=Path, help="manifest of a validation pack (with --run: the run's own)"
    )
    parser.add_argument("--out", type=Path, help="probes.parquet to write")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--fingerprint", default="", help=HIDDEN)
    group = parser.add_argument_group("with --checkpoint")
    group.add_argument("--text", type=Path, help="UTF-8 text to read; default: Python's own language reference")
    group.add_argument("--token-ids", type=Path, help=".npy of token ids, (T) or (B, T), to read instead of a text")
    group.add_argument("--tokenizer", type=Path, help="tokenizer.json; default: the one in a Hugging Face folder")
    group.add_argument("--sequences", type=int, help="how many sequences (default 8)")
    group.add_argument("--context", type=int, help="tokens in a sequence; default: the model's, 1024 at most")
    group.add_argument("--probes", help="names, separated by commas; default: all that this model has")
    group.add_argument("--later-checkpoint", type=Path, help="folder of the same model trained longer, for locality")
    group.add_argument("--picture", type=Path, help="PNG to draw: every value by layer, the null dashed")
    return parser


def main() -> None:
    """Run the verb `plumbline probe`."""
    carry_out(arguments().parse_args())


def carry_out(request: argparse.Namespace) -> None:
    """Do what the command line asks for.

    Raises:
        PlumblineError: an option is missing or does not fit, or what it names cannot be read.
    """
    for option in ("run", "checkpoint"):
        folder = getattr(request, option)
        if folder is not None and not folder.exists():
            raise PlumblineError(f"--{option}: there is no folder {folder}; name the one of a finished run, such as "
                                 "work/demo/runs/transfer/base/baseline/s42")  # fmt: skip
    if request.out is None:
        raise PlumblineError("--out is missing; name the file to write, such as --out probes.parquet")
    if request.checkpoint is not None:
        _read_checkpoint(request)
        return
    others = ("text", "token_ids", "tokenizer", "sequences", "context", "probes", "later_checkpoint", "picture")
    unfit = [f"--{name.replace('_', '-')}" for name in others if getattr(request, name) is not None]
    if unfit or request.validation_pack is None:
        needed = (
            "leave out " + ", ".join(unfit) if unfit else "give --validation-pack, the manifest of its validation pack"
        )
        raise PlumblineError(f"--run reads the probes of the run's spec where it says; {needed}")
    _read_run(request)


def _read_run(request: argparse.Namespace) -> None:
    from plumbline.evaluate.probes import write_frame
    from plumbline.evaluate.probes._offline import read_run
    from plumbline.model.distributed import join_ranks
    from plumbline.model.numerics import numerics

    with join_ranks(request.device) as group:
        numerics(group.device)
        result = read_run(request.run, request.validation_pack, group.device)
    write_frame(request.out, result.rows, result.metadata())
    fingerprint_file.write(request.out, request.fingerprint, validation_fingerprint=result.validation.fingerprint)
    for point in result.missed:
        print(f"{result.run.spec.key}: {result.run.outcome} before step {point['step']}, so there is nothing at "
              f"fraction {point['fraction']:g} of training", file=sys.stderr)  # fmt: skip
    if result.end is not None:
        print(f"{result.run.spec.key}: read at its last finite weights, those of step {result.end}", file=sys.stderr)
    print(f"{result.run.spec.key}: {len(result.rows)} values -> {request.out}", file=sys.stderr)


def _read_checkpoint(request: argparse.Namespace) -> None:
    names = _choose_probes(request)
    sources = {"text": "--text", "token_ids": "--token-ids", "validation_pack": "--validation-pack"}
    flags = [flag for name, flag in sources.items() if getattr(request, name) is not None]
    if len(flags) > 1:
        raise PlumblineError(f"{flags[0]} and {flags[1]} are two texts; give one")
    from plumbline.evaluate.probes._one_checkpoint import read_single

    frame = read_single(request, names)
    print(f"{request.checkpoint}: {len(frame)} values -> {request.out}", file=sys.stderr)


def _choose_probes(request: argparse.Namespace) -> list[str]:
    """Names of the probes to read, checked. Those that compare two points need the other one."""
    probes = available("probe")
    if request.probes is None:
        return [name for name in probes if request.later_checkpoint is not None or not _compares_points(name)]
    names = [name.strip() for name in request.probes.split(",")]
    for name in names:
        if name not in probes:
            raise PlumblineError(
                f"--probes: there is no probe {name!r}{nearest(name, probes)} (known: {sorted(probes)})"
            )
        if names.count(name) > 1:
            raise PlumblineError(f"--probes: {name!r} is given more than once")
        if request.later_checkpoint is None and _compares_points(name):
            raise PlumblineError(f"--probes: {name!r} compares two points of training; give --later-checkpoint")
    return names


def _compares_points(name: str) -> bool:
    """Whether a probe compares two points of a run."""
    return "against" in options("probe", name)


if __name__ == "__main__":
    run(main)
