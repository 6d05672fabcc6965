"""Builds pages of the existing results of a preset, as a folder that opens from disk: ``plumbline report``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from plumbline.core import fingerprint_file
from plumbline.core.command_line import HIDDEN, Parser, run
from plumbline.core.errors import PlumblineError
from plumbline.project import load, packed_bundle
from plumbline.report import write_report
from plumbline.report.results_on_disk import ResultsOnDisk
from plumbline.specs.yaml_files import PRESETS, ROOT, load_config


def arguments() -> Parser:
    """Build the command-line parser of `plumbline report`."""
    parser = Parser(__doc__)
    parser.add_argument("--preset", choices=PRESETS, help="default: config/config.yaml's")
    help_text = "as snakemake --config: a part of a nested value leaves the others unchanged"
    parser.add_argument("--config", nargs="+", action="extend", default=[], metavar="KEY=VALUE", help=help_text)
    parser.add_argument("--configuration-json", metavar="JSON", help=HIDDEN)
    parser.add_argument(
        "--out", type=Path, metavar="FOLDER/index.html", help="default: results/PRESET/report/index.html"
    )
    parser.add_argument("--fingerprint", default="", help=HIDDEN)
    return parser


def main() -> None:
    """Run `plumbline report`: write the report's pages.

    Raises:
        PlumblineError: `--out` is not an index.html, or its folder holds something that is not a report.
    """
    options = arguments().parse_args()
    try:
        planned = load(_load_configuration(options))
    except PlumblineError as error:
        if packed := packed_bundle.read(ROOT):
            raise PlumblineError(f"{error}; {packed.remedy}") from error
        raise
    out = options.out or Path(planned.paths.report)
    _require_own_folder(out)
    if not options.fingerprint:  # the workflow has made what it shows
        ResultsOnDisk(project=planned).require_something()
    pages = write_report.build_report(planned, out)
    fingerprint_file.write(out, options.fingerprint)
    print(f"{out} ({pages} pages)")


def _require_own_folder(out: Path) -> None:
    """The folder is replaced as a whole."""
    if out.name != "index.html":
        raise PlumblineError(f"--out {out}: the first page of a report is index.html; name FOLDER/index.html")
    folder = out.parent
    if folder.is_dir() and any(folder.iterdir()) and not (folder / "report.js").exists():
        raise PlumblineError(f"--out {out}: {folder} holds something else, and would be replaced; name another folder")


def _load_configuration(options: argparse.Namespace) -> dict[str, Any]:
    config: dict[str, Any] = json.loads(options.configuration_json) if options.configuration_json else load_config()
    if options.config:
        from plumbline.project import config_arguments

        config = config_arguments.change_config(config, options.config)
    return config | ({"preset": options.preset} if options.preset else {})


if __name__ == "__main__":
    run(main)
