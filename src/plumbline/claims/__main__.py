"""``python -m plumbline.claims STUDY``: a verdict on every claim of a study."""

from __future__ import annotations

import argparse
from pathlib import Path

from plumbline.claims.judge import judge, to_csv, to_markdown
from plumbline.cli import PlumblineError, run
from plumbline.files import atomic_write_text
from plumbline.studies import sheet
from plumbline.studies.config import PRESETS, ROOT, read_yaml
from plumbline.tables.__main__ import registry
from plumbline.tables.published import Published
from plumbline.tables.runs import expected_runs, load


def main() -> None:
    """Read runs and claims; write csv, and md beside it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("study")
    parser.add_argument("--preset", choices=PRESETS, default="demo")
    parser.add_argument("--work", type=Path, help="where the runs are (default work/PRESET)")
    parser.add_argument("--expected", help="JSON list of runs, or its file (default: all runs of the study)")
    parser.add_argument("--published", type=Path, help="printed numbers (default config/published/STUDY)")
    parser.add_argument("--out", type=Path, required=True, help="results/STUDY/claims.csv")
    given = parser.parse_args()
    study = sheet.load(given.study, given.preset)
    measures = registry("plumbline.claims", given.study, "MEASURES")
    evidence = registry("plumbline.claims", given.study, "Evidence")
    published = Published(given.published or ROOT / "config" / "published" / given.study)
    claims = read_yaml(published.directory / "claims.yaml")
    unknown = sorted(set(measures) - {claim["id"] for claim in claims})
    if unknown:
        raise PlumblineError(f"{published.directory / 'claims.yaml'}: there is no claim {unknown[0]!r}")
    runs = expected_runs(given.expected, study, study.sheet["runs"])
    frames = load(runs, given.work or Path("work") / given.preset)
    rows = judge(claims, measures, evidence(frames, study, published))
    atomic_write_text(given.out.with_suffix(".md"), to_markdown(rows, study.sheet["title"], study.preset))
    atomic_write_text(given.out, to_csv(rows))
    print(given.out)


if __name__ == "__main__":
    run(main)
