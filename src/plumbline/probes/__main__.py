"""Reads probe values of a run at its probe points, or of any checkpoint, into one frame.

``--run`` reads a finished run at all of its probe points: offline probes read the weights that it kept, and the values
of online probes during training are added. Of a run that diverged the points that it reached are read, and as its end
its last finite weights at their own step; later points are named in the frame's metadata and on stderr.

``--checkpoint`` reads one model, with every probe's default options: the folder of a run, or of a Llama,
Mistral, Qwen2, GPT-2 or GPT-NeoX in Hugging Face form, as `save_pretrained` writes it.
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
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--run", type=Path, help="folder of a finished run")
    which.add_argument("--checkpoint", type=Path, help="folder of one model: a run, or in Hugging Face form")
    parser.add_argument(
        "--validation-pack", type=Path, help="manifest of a validation pack (with --run: the run's own)"
    )
    parser.add_argument("--out", type=Path, help="probes.parquet to write")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--fingerprint", default="", help=HIDDEN)
    one = parser.add_argument_group("with --checkpoint")
    one.add_argument("--text", type=Path, help="UTF-8 text to read; default: Python's own language reference")
    one.add_argument("--token-ids", type=Path, help=".npy of token ids, (T) or (B, T), to read instead of a text")
    one.add_argument("--tokenizer", type=Path, help="tokenizer.json; default: the one in a Hugging Face folder")
    one.add_argument("--sequences", type=int, help="how many sequences (default 8)")
    one.add_argument("--context", type=int, help="tokens in a sequence; default: the model's, 1024 at most")
    one.add_argument("--probes", help="names, separated by commas; default: all that this model has")
    one.add_argument("--later-checkpoint", type=Path, help="folder of the same model trained longer, for locality")
    one.add_argument("--picture", type=Path, help="PNG to draw: every value by layer, the null dashed")
    return parser


def main() -> None:
    """Run the verb `plumbline probe`."""
    carry_out(arguments().parse_args())


def carry_out(given: argparse.Namespace) -> None:
    """Do what the command line asks for.

    Raises:
        PlumblineError: an option is missing or does not fit, or what it names cannot be read.
    """
    for option in ("run", "checkpoint"):
        folder = getattr(given, option)
        if folder is not None and not folder.exists():
            raise PlumblineError(f"--{option}: there is no folder {folder}; name the one of a finished run, such as "
                                 "work/demo/runs/transfer/base/baseline/s42")  # fmt: skip
    if given.out is None:
        raise PlumblineError("--out is missing; name the file to write, such as --out probes.parquet")
    if given.checkpoint is not None:
        _checkpoint(given)
        return
    others = ("text", "token_ids", "tokenizer", "sequences", "context", "probes", "later_checkpoint", "picture")
    unfit = [f"--{name.replace('_', '-')}" for name in others if getattr(given, name) is not None]
    if unfit or given.validation_pack is None:
        needed = (
            "leave out " + ", ".join(unfit) if unfit else "give --validation-pack, the manifest of its validation pack"
        )
        raise PlumblineError(f"--run reads the probes of the run's spec where it says; {needed}")
    _run(given)


def _run(given: argparse.Namespace) -> None:
    from plumbline.model.distributed import ranks
    from plumbline.model.numerics import numerics
    from plumbline.probes import write
    from plumbline.probes._offline import read_run

    with ranks(given.device) as group:
        numerics(group.device)
        found = read_run(given.run, given.validation_pack, group.device)
    write(given.out, found.rows, found.metadata())
    fingerprint_file.write(given.out, given.fingerprint, validation_fingerprint=found.validation.fingerprint)
    for point in found.missed:
        print(f"{found.run.spec.key}: {found.run.outcome} before step {point['step']}, so there is nothing at fraction "
              f"{point['fraction']:g} of training", file=sys.stderr)  # fmt: skip
    if found.end is not None:
        print(f"{found.run.spec.key}: read at its last finite weights, those of step {found.end}", file=sys.stderr)
    print(f"{found.run.spec.key}: {len(found.rows)} values -> {given.out}", file=sys.stderr)


def _checkpoint(given: argparse.Namespace) -> None:
    names = _chosen(given)
    sources = {"text": "--text", "token_ids": "--token-ids", "validation_pack": "--validation-pack"}
    flags = [flag for name, flag in sources.items() if getattr(given, name) is not None]
    if len(flags) > 1:
        raise PlumblineError(f"{flags[0]} and {flags[1]} are two texts; give one")
    from plumbline.probes._one_checkpoint import read_single

    frame = read_single(given, names)
    print(f"{given.checkpoint}: {len(frame)} values of {len(names)} probes -> {given.out}", file=sys.stderr)


def _chosen(given: argparse.Namespace) -> list[str]:
    """Names of the probes to read, checked. Those that compare two points need the other one."""
    known = available("probe")
    if given.probes is None:
        return [name for name in known if given.later_checkpoint is not None or not _two_points(name)]
    names = [name.strip() for name in given.probes.split(",")]
    for name in names:
        if name not in known:
            raise PlumblineError(f"--probes: there is no probe {name!r}{nearest(name, known)} (known: {sorted(known)})")
        if names.count(name) > 1:
            raise PlumblineError(f"--probes: {name!r} is given more than once")
        if given.later_checkpoint is None and _two_points(name):
            raise PlumblineError(f"--probes: {name!r} compares two points of training; give --later-checkpoint")
    return names


def _two_points(name: str) -> bool:
    """Whether a probe compares two points of a run."""
    return "against" in options("probe", name)


if __name__ == "__main__":
    run(main)
