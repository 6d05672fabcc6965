"""``python -m plumbline.figures STUDY TARGET``: one figure from finished runs."""

from __future__ import annotations

from pathlib import Path

from plumbline.cli import PlumblineError, run
from plumbline.figures import style
from plumbline.studies import sheet
from plumbline.studies.config import ROOT
from plumbline.tables.__main__ import arguments, registry, target_groups
from plumbline.tables.published import Published
from plumbline.tables.runs import expected_runs, load


def main() -> None:
    """Read the runs, draw the figure, write png, svg and csv."""
    given = arguments(__doc__ or "", "figure").parse_args()
    study = sheet.load(given.study, given.preset)
    groups = target_groups(study, given.target, "figure")
    figures = registry("plumbline.figures", given.study, "FIGURES")
    if given.target not in figures:
        raise PlumblineError(f"plumbline.figures.{given.study} has no {given.target!r} (there are {sorted(figures)})")
    frames = load(expected_runs(given.expected, study, groups), given.work or Path("work") / given.preset)
    published = Published(given.published or ROOT / "config" / "published" / given.study)
    for path in style.save(figures[given.target](frames, study, published), given.out):
        print(path)


if __name__ == "__main__":
    run(main)
