"""Takes W_Q out of a model, which gives the same logits without it.

CHECKPOINT is the folder of a finished run of ours, a file of its probe points, a folder that this verb wrote, or one in
Hugging Face form.

Which result of the query_free study applies is read off the architecture: Proposition 4.1 for one head (every layer,
any norms), Theorem 4.2 for no norms and a skip around attention only (every layer), Theorem 4.1 for no norms and skips
around both (the one layer of --only-layer). Where none applies, the reasons are given and nothing is written.

The new model is written next to what was measured (elimination.json), read again, and compared once more.
"""

from __future__ import annotations

import math
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from plumbline.core.command_line import Parser, run
from plumbline.core.errors import PlumblineError

#: Beyond it, float32 weights of the new model are too coarse to give the logits of the old one to three digits.
LARGEST_CONDITION = 1e5


def arguments() -> Parser:
    """The parser of the verb's command line."""
    parser = Parser(__doc__)
    parser.add_argument("checkpoint", type=Path, metavar="CHECKPOINT")
    parser.add_argument("--out", required=True, type=Path, help="folder to write; it must not exist")
    parser.add_argument("--only-layer", type=int, help="the one layer to take W_Q out of, from 0")
    parser.add_argument(
        "--max-condition-number",
        type=float,
        default=LARGEST_CONDITION,
        help=f"condition number of a W_Q that is still inverted (default {LARGEST_CONDITION:g})",
    )
    parser.add_argument("--sequences", type=int, default=4, help="random sequences to compare logits on (default 4)")
    parser.add_argument(
        "--tokens-per-sequence", type=int, help="tokens in each; default: the model's context, 256 at most"
    )
    return parser


def main() -> None:
    """Run the verb `python -m plumbline.studies.query_free.eliminate_query`."""
    options = arguments().parse_args()
    if os.path.lexists(options.out):
        raise PlumblineError(f"--out: {options.out} exists; name a new folder, or remove it")
    if options.sequences < 1 or (options.tokens_per_sequence is not None and options.tokens_per_sequence < 1):
        raise PlumblineError("--sequences and --tokens-per-sequence must be at least 1")
    if not 1 <= options.max_condition_number < math.inf:
        raise PlumblineError(f"--max-condition-number ({options.max_condition_number:g}) must be 1 or more, and finite")
    from .eliminate_checkpoint import eliminate
    from .elimination_source import open_source

    source = open_source(options.checkpoint)
    spec = source.spec
    if options.only_layer is not None and not 0 <= options.only_layer < spec.layers:
        raise PlumblineError(
            f"--only-layer: {options.checkpoint} has the layers 0 to {spec.layers - 1}, not {options.only_layer}"
        )
    if options.tokens_per_sequence is not None and options.tokens_per_sequence > spec.context:
        raise PlumblineError(
            f"--tokens-per-sequence: {options.checkpoint} reads {spec.context} at most, not "
            f"{options.tokens_per_sequence}"
        )
    temporary = options.out.with_name(f".{options.out.name}.{os.getpid()}")
    try:
        report = eliminate(
            source,
            temporary,
            layer=options.only_layer,
            limit=options.max_condition_number,
            sequences=options.sequences,
            length=min(spec.context, 256) if options.tokens_per_sequence is None else options.tokens_per_sequence,
        )
        os.rename(temporary, options.out)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    print("\n".join(format_report(report)))
    print(f"{options.checkpoint}: without W_Q -> {options.out}", file=sys.stderr)


def format_report(report: dict[str, Any]) -> list[str]:
    """The lines that the verb prints of a report: rule, condition numbers, differences of logits, parameters."""
    precision, logits, count = report["precision"], report["logits"], report["parameters"]
    numbers = ["singular" if value is None else f"{value:.3g}" for value in report["conditions"].values()]
    limit = f"limit {report['largest_condition']:g}" if report["inverted"] else "nothing is divided by it"
    lines = [
        f"{report['kind']}: W_Q goes from layer {', '.join(map(str, report['layers']))} by {report['rule']}",
        f"condition number of W_Q: {', '.join(numbers)} ({limit})",
        "logits with and without it, largest relative difference over "
        f"{report['sequences']} sequences of {report['tokens']} random tokens:",
        f"  float64, before weights are rounded: {logits['float64']:.2g}",
        f"  {precision}, as written and read again: {logits['as_used']:.2g} "
        f"(the original's own rounding: {logits['own_rounding']:.2g})",
        f"  with queries of zero instead, they would be apart by: {logits['no_queries']:.2g}",
        f"parameters: {count['before']:,} before, {count['after']:,} after ({count['after'] - count['before']:+,})",
    ]
    if report["untied"]:
        lines.append(f"a tied head was untied (Remark 4), with {count['head']:,} parameters")
    return lines


if __name__ == "__main__":
    run(main)
