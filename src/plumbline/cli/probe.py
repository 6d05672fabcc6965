"""Reads probes of runs by their names too: ``plumbline probe --run transfer/base/qknorm/s42``; the rest is `probes`."""

from __future__ import annotations

import argparse

from plumbline.core import command_line
from plumbline.probes import __main__ as probes
from plumbline.project import named_run
from plumbline.specs.yaml_files import PRESETS


def arguments() -> argparse.ArgumentParser:
    """Build the command-line parser of `plumbline probe`."""
    parser = probes.arguments()
    parser.add_argument("--preset", choices=PRESETS, help=named_run.PRESET_HELP)
    return parser


def main() -> None:
    """Run `plumbline probe`."""
    given = arguments().parse_args()
    if given.run is not None:
        run = named_run.find(given.run, given.preset)
        given.run, given.validation_pack = run.folder, given.validation_pack or run.validation_pack
    elif not given.checkpoint.is_dir():
        run = named_run.find(given.checkpoint, given.preset)
        given.checkpoint = run.folder
        if given.token_ids is None and given.validation_pack is None:
            given.tokenizer = given.tokenizer or run.tokenizer
    probes.carry_out(given)


if __name__ == "__main__":
    command_line.run(main)
