"""Builds pages of what was made, as a folder that opens from disk: ``plumbline report``.

In a folder with a `plumbline.toml`, or below one, they show what was tried there, with every run: `.plumbline/report`.
In a project they show the existing results of a preset: `results/PRESET/report`. Of any other FOLDER they show the
audits, verdicts and records below it: `FOLDER/report`.
"""

from __future__ import annotations

import argparse
import json
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from plumbline.core import fingerprint_file
from plumbline.core.command_line import HIDDEN, Parser, run
from plumbline.core.errors import PlumblineError, UsageError
from plumbline.project import load, packed_bundle
from plumbline.report.report_site import list_foreign, require_writable
from plumbline.specs.yaml_files import PRESETS, ROOT, load_config
from plumbline.verdict.own_trainer.find_folder import NAME as TRAINER_FILE
from plumbline.verdict.own_trainer.find_folder import find_trainer_folder
from plumbline.verdict.own_trainer.folder import Folder
from plumbline.verdict.sources.bounded_reading import list_files_below

#: What a folder has in which a project is, or was used.
OF_A_PROJECT = ("Snakefile", "workflow", "config", "results")


def arguments() -> Parser:
    """Build the command-line parser of `plumbline report`."""
    parser = Parser(__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="of a trainer, audits, verdicts or records; default: here")
    parser.add_argument("--preset", choices=PRESETS, help="default: config/config.yaml's")
    help_text = "as snakemake --config: a part of a nested value leaves the others unchanged"
    parser.add_argument("--config", nargs="+", action="extend", default=[], metavar="KEY=VALUE", help=help_text)
    parser.add_argument("--configuration-json", metavar="JSON", help=HIDDEN)
    parser.add_argument("--out", type=Path, metavar="FOLDER/index.html", help="where the first page is written")
    text = "in a folder with a plumbline.toml: write the pages again while runs go on"
    parser.add_argument("--watch", action="store_true", help=text)
    parser.add_argument("--fingerprint", default="", help=HIDDEN)
    return parser


def main() -> None:
    """Run `plumbline report`: write the pages of a trainer's folder, of a project or of any other folder.

    Raises:
        UsageError: an option is of another kind of place.
        PlumblineError: `--out` is not an index.html, or its folder holds something that is not a report, or cannot be
            written.
    """
    options = arguments().parse_args()
    of_project = options.preset or options.config or options.configuration_json
    if options.folder is not None and of_project:
        raise UsageError("--preset and --config are of a project; leave them out, or FOLDER")
    folder = options.folder or (None if of_project else find_trainer_folder())
    if folder is not None and (folder / TRAINER_FILE).is_file():
        _report_trainer(folder, options)
    elif options.watch:
        raise UsageError(f"--watch is of a folder with {TRAINER_FILE}, and there is none")
    elif folder is not None or (not (of_project or Path("Snakefile").exists()) and _holds_audits_or_records()):
        _report_folder(folder or Path(), options)
    elif not (of_project or any(map(os.path.exists, OF_A_PROJECT))):
        raise PlumblineError(
            f"{Path.cwd()} has nothing to report: no {TRAINER_FILE} (plumbline setup-trainer writes one, plumbline try "
            "tries a change), no audit (plumbline audit --from PAPER.tex FOLDER), record or project (plumbline init)"
        )
    else:
        _report_project(options)


def _holds_audits_or_records() -> bool:
    from plumbline.report.workbench.collected_pages import AUDIT
    from plumbline.verdict.board.project_board import RECORD

    names = (AUDIT, RECORD)
    return any(path.name in names for path in list_files_below(Path(), names))


def _report_trainer(root: Path, options: argparse.Namespace) -> None:
    from plumbline.report.workbench.write_workbench import watch, write_workbench

    own_folder = Folder(root).own
    if not own_folder.is_dir():  # which git would see, made here
        raise PlumblineError(f"{own_folder} is not there: nothing was tried in {root} yet; plumbline try -m WORDS does")
    out = options.out or own_folder / "report" / "index.html"
    _require_own_folder(out)
    if options.watch:
        watch(root, out)
    print(f"{out} ({write_workbench(root, out)} pages)")


def _report_folder(folder: Path, options: argparse.Namespace) -> None:
    from plumbline.report.workbench.write_workbench import write_collected

    out = options.out or folder / "report" / "index.html"
    _require_own_folder(out)
    print(f"{out} ({write_collected(folder, out)} pages)")


def _report_project(options: argparse.Namespace) -> None:
    if find_spec("pandas") is None:
        raise ModuleNotFoundError(name="pandas")
    from plumbline.report import write_report
    from plumbline.report.results_on_disk import ResultsOnDisk

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
    if folder.is_dir() and (names := list_foreign(folder)):
        raise PlumblineError(
            f"--out {out}: {folder} holds something else ({', '.join(names[:3])}), and would be replaced; move that "
            "away, or name another folder"
        )
    require_writable(out)


def _load_configuration(options: argparse.Namespace) -> dict[str, Any]:
    config: dict[str, Any] = json.loads(options.configuration_json) if options.configuration_json else load_config()
    if options.config:
        from plumbline.project import config_arguments

        config = config_arguments.change_config(config, options.config)
    return config | ({"preset": options.preset} if options.preset else {})


if __name__ == "__main__":
    run(main)
