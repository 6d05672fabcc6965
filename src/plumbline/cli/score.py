"""Scores runs by their names too: ``plumbline score transfer/base/qknorm/s42``; the rest is `evaluate.score_models`."""

from __future__ import annotations

from pathlib import Path

from plumbline.core import command_line
from plumbline.evaluate import score_models
from plumbline.project import named_run
from plumbline.specs.yaml_files import PRESETS


def arguments() -> command_line.Parser:
    """Build the command-line parser of `plumbline score`."""
    parser = score_models.arguments()
    parser.add_argument("--preset", choices=PRESETS, help=named_run.PRESET_HELP)
    return parser


def main() -> None:
    """Run `plumbline score`.

    Raises:
        PlumblineError: a model was not scored; of several, after all others were.
    """
    options = arguments().parse_args()

    def find_model(model: Path) -> score_models.ModelToScore:
        run = named_run.find(model, None if model.is_dir() else options.preset, options.suite)
        return score_models.ModelToScore(run.folder, run.tokenizer, run.items)

    score_models.score_all(options, find_model)


if __name__ == "__main__":
    command_line.run(main)
