"""``python -m plumbline.tables STUDY TARGET``: one table from finished runs."""

from __future__ import annotations

import argparse
from importlib import import_module, util
from pathlib import Path
from typing import Any

from plumbline.cli import PlumblineError, run
from plumbline.studies import sheet
from plumbline.studies.config import PRESETS, ROOT
from plumbline.tables import render
from plumbline.tables.published import Published
from plumbline.tables.runs import expected_runs, load


def arguments(description: str, kind: str) -> argparse.ArgumentParser:
    """The flags that tables and figures share."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("study")
    parser.add_argument("target", help=f"a {kind} of config/studies/STUDY.yaml")
    parser.add_argument("--preset", choices=PRESETS, default="demo")
    parser.add_argument("--work", type=Path, help="where the runs are (default work/PRESET)")
    parser.add_argument("--expected", help="JSON list of runs, or its file (default: the target's groups)")
    parser.add_argument("--published", type=Path, help="printed numbers (default config/published/STUDY)")
    parser.add_argument("--out", type=Path, required=True)
    return parser


def target_groups(study: sheet.Study, target: str, kind: str) -> list[str]:
    """The run groups that the study's YAML gives a target of this kind."""
    entry = study.sheet["targets"].get(target)
    if entry is None or entry["kind"] != kind:
        known = [name for name, entry in study.sheet["targets"].items() if entry["kind"] == kind]
        raise PlumblineError(f"config/studies/{study.name}.yaml: targets: no {kind} {target!r} (there are {known})")
    return entry["runs"]


def registry(package: str, study: str, name: str) -> Any:
    """What a study's module inside `package` calls `name`: its tables, figures, measures."""
    if util.find_spec(f"{package}.{study}") is None:
        raise PlumblineError(f"{package} has no module for the study {study!r} yet")
    return getattr(import_module(f"{package}.{study}"), name)


def main() -> None:
    """Read the runs, make the table, write its files."""
    given = arguments(__doc__ or "", "table").parse_args()
    study = sheet.load(given.study, given.preset)
    groups = target_groups(study, given.target, "table")
    tables = registry("plumbline.tables", given.study, "TABLES")
    if given.target not in tables:
        raise PlumblineError(f"plumbline.tables.{given.study} has no {given.target!r} (there are {sorted(tables)})")
    frames = load(expected_runs(given.expected, study, groups), given.work or Path("work") / given.preset)
    published = Published(given.published or ROOT / "config" / "published" / given.study)
    table = tables[given.target](frames, study, published)
    for path in render.write(table, frames, given.out):
        print(path)


if __name__ == "__main__":
    run(main)
