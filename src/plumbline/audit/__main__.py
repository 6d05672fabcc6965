"""`python -m plumbline.audit`: recompute printed numbers that follow from others. Needs no torch.

Writes the CSV and, beside it, a Markdown page; prints rows per document and verdict.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from plumbline import record
from plumbline.audit.page import to_markdown
from plumbline.audit.report import build, choose, covered, findings, summary, to_csv
from plumbline.cli import PlumblineError, run
from plumbline.files import atomic_write_text


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m plumbline.audit", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/audit.csv"), help="CSV to write; .md lies beside")
    parser.add_argument("--study", action="append", default=[], help="only this document; may be repeated")
    parser.add_argument("--made-of", default="", help="what a plan says this is made of, to be recorded")
    arguments = parser.parse_args()
    if arguments.out.suffix != ".csv":
        raise PlumblineError(f"--out {arguments.out} must end in .csv; the page beside it ends in .md")
    studies = choose(arguments.study)
    frame = build(studies)
    atomic_write_text(arguments.out, to_csv(frame))
    told, read = {study: findings(study) for study in studies}, {study: covered(study) for study in studies}
    atomic_write_text(arguments.out.with_suffix(".md"), to_markdown(frame, studies, told, read))
    record.write(arguments.out, arguments.made_of)
    print(summary(frame, studies).to_markdown())
    print(f"\n{arguments.out}\n{arguments.out.with_suffix('.md')}")
    return 0


if __name__ == "__main__":
    run(main)
