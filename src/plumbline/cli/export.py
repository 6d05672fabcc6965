"""Writes a finished run as a folder that other tools load, without Plumbline: ``plumbline export RUN --format hf``.

A Llama is written as a Llama. Any other model is written with the code that it runs, and is loaded by
``AutoModelForCausalLM.from_pretrained(FOLDER, trust_remote_code=True)``. Before the folder is moved into place it is
loaded in a process without Plumbline, and its logits are compared. A folder with other files in it is refused.
"""

from __future__ import annotations

from pathlib import Path

from plumbline.core import command_line
from plumbline.core.errors import PlumblineError
from plumbline.project import named_run
from plumbline.specs import name_completers
from plumbline.specs.yaml_files import PRESETS


def arguments() -> command_line.Parser:
    """Build the command-line parser of `plumbline export`."""
    parser = command_line.Parser(__doc__)
    parser.add_argument(
        "run", metavar="RUN", completer=name_completers.or_files(name_completers.runs), help=named_run.HELP
    )
    parser.add_argument("--format", required=True, choices=["hf"], help="hf: a folder for transformers")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="default: exports/PRESET/STUDY-SCALE-METHOD-sSEED")
    parser.add_argument("--tokenizer", type=Path, help="tokenizer.json of its corpus (default: the workflow's)")
    parser.add_argument(
        "--card-scores", type=Path, help="scores.parquet, for the model card (default: the workflow's, if they exist)"
    )
    parser.add_argument("--preset", choices=PRESETS, help=named_run.PRESET_HELP)
    parser.add_argument("--force", action="store_true", help="replace an export of another run, or a changed one")
    parser.add_argument("--no-check", action="store_true", help="do not load the folder to compare logits")
    return parser


def main() -> None:
    """Run `plumbline export`: write the folder, and print where it is."""
    options = arguments().parse_args()
    run_files = named_run.find(options.run, options.preset)
    if not (run_files.folder / "outcome.json").is_file() and (run_files.folder / "config.json").is_file():
        raise PlumblineError(
            f"{options.run} is in Hugging Face form already; plumbline export writes a finished run in that form"
        )
    from plumbline.model.export.write_export import export_hf
    from plumbline.model.finished_run import FinishedRun

    spec, tokenizer = FinishedRun.read(run_files.folder).spec, options.tokenizer or run_files.tokenizer
    if tokenizer is None:
        raise PlumblineError("--tokenizer is missing; give the tokenizer.json of the run's corpus")
    out = options.out or Path("exports") / spec.preset / spec.key.replace("/", "-")
    scores = options.card_scores or run_files.scores
    export = export_hf(
        run_files.folder, out, tokenizer=tokenizer, scores=scores, force=options.force, compare=not options.no_check
    )
    size = sum(path.stat().st_size for path in out.iterdir())
    label = "a Llama" if export.form == "llama" else "with its own code (trust_remote_code=True)"
    if export.difference is None:
        compared = "logits not compared"
    else:
        compared = f"logits differ by {export.difference:.2g} at most" if export.difference else "equal logits"
    print(f"{out}: {label}, {size / 1e6:.1f} MB, {compared}")


if __name__ == "__main__":
    command_line.run(main)
