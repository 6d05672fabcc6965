"""Recomputes printed numbers that follow from other printed numbers. Needs neither torch nor pandas.

Without a folder: of the studies' papers; writes the CSV and, next to it, a Markdown page, and prints rows per paper and
verdict, and how many sentences with a number rows read. With a folder: of any paper, from its tables as CSV in that
folder (or read from LaTeX into it), against the checks in its `audit.toml` and those that tables allow without being
told. Of a folder it ends with 0 where nothing contradicts, 10 where numbers contradict each other, 15 where a relation
that no row's or column's name states does not hold (likely: look there), 16 where nothing was checked.
"""

from __future__ import annotations

import sys
from pathlib import Path

from plumbline.audit.audit_csv import (
    as_markdown,
    build,
    choose_studies,
    findings,
    ledger,
    read_coverage,
    sentences,
    summary,
    to_csv,
)
from plumbline.audit.audit_page import summarize_sentences, to_markdown
from plumbline.core import fingerprint_file
from plumbline.core.command_line import HIDDEN, Parser, run
from plumbline.core.errors import PlumblineError, UsageError, visible
from plumbline.core.files import atomic_write_text
from plumbline.specs import name_completers, study_folders
from plumbline.specs.study_config import paper_of
from plumbline.specs.yaml_files import ROOT


def arguments() -> Parser:
    """The parser of the verb's command line."""
    parser = Parser(__doc__)
    parser.add_argument(
        "folder", type=Path, nargs="?", help="any paper's tables as CSV; without it: the studies' papers"
    )
    parser.add_argument(
        "--out",
        type=Path,
        help="CSV to write, with a .md next to it (default: results/audit.csv, or audit/audit.csv in the folder)",
    )
    parser.add_argument(
        "--study",
        completer=name_completers.studies,
        action="append",
        default=[],
        help="only this study; may be repeated",
    )
    parser.add_argument("--fingerprint", default="", help=HIDDEN)
    parser.add_argument(
        "--from",
        dest="latex",
        type=Path,
        metavar="PAPER.tex",
        help="first read the tables of this LaTeX into the folder",
    )
    parser.add_argument("--checks", type=Path, help="checks to make (default: audit.toml in the folder)")
    parser.add_argument("--told-only", action="store_true", help="only the checks that are told")
    parser.add_argument("--json", action="store_true", help="print one object")
    return parser


def main() -> int:
    """Run the verb `plumbline audit` and return its exit code.

    Raises:
        PlumblineError: ``--out`` is not a CSV, a named study has no printed numbers, or a needed one is missing.
    """
    options = arguments().parse_args()
    if options.out is not None and options.out.suffix != ".csv":
        raise PlumblineError(f"--out {options.out} must end in .csv; the page next to it ends in .md")
    if options.folder is not None:
        if options.study or options.fingerprint:
            raise UsageError("--study and --fingerprint are for the studies' papers; leave them out, or the folder")
        from plumbline.audit.paper.command import run_audit

        return run_audit(options)
    for option, value in (("--from", options.latex), ("--checks", options.checks), ("--json", options.json)):
        if value:
            raise UsageError(f"{option} needs the folder of a paper's tables: plumbline audit {option} ... FOLDER")
    out = options.out or Path("results/audit.csv")
    studies = choose_studies(options.study)
    for study in studies:
        for warning in study_folders.misspelt(study_folders.folder(study, ROOT)):
            print(f"warning: {visible(warning)}", file=sys.stderr)
    computed = {study: ledger(study) for study in studies}
    rows = build(studies, computed=computed)
    atomic_write_text(out, to_csv(rows))
    findings_by_study, coverage = (
        {study: findings(study) for study in studies},
        {study: read_coverage(study, audit_rows=computed[study]) for study in studies},
    )
    sentences_by_study = {study: sentences(study, audit_rows=computed[study]) for study in studies}
    atomic_write_text(
        out.with_suffix(".md"),
        to_markdown(
            rows,
            studies,
            findings_by_study,
            coverage,
            {study: paper_of(study) for study in studies},
            sentences_by_study,
        ),
    )
    fingerprint_file.write(out, options.fingerprint, companions=[out.with_suffix(".md")])
    print(as_markdown(summary(rows, studies)))
    if any(sentences_by_study.values()):
        print(f"\n{summarize_sentences(sentences_by_study)}")
    print(f"rows: {out}\nopen {out.with_suffix('.md')}")
    return 0


if __name__ == "__main__":
    run(main)
