"""Writes `benchmarks/audit_corpus.md` from `measured.jsonl`: what each measuring found, side by side.

`python -m benchmarks.audit_corpus.write_page`, after a measuring with `--keep`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from benchmarks.audit_corpus.corpus_files import HERE, SPLITS, read_labels, read_papers

HEAD = """# The audit on papers that others wrote

{papers} papers of public repositories, by commit and file in `audit_corpus/papers.csv`; their text is not here. `work`
is what the audit was worked on with, `extra` papers were looked at for false alarms alone, `last` are opened once,
`back` are kept back. Measured by `python -m benchmarks.audit_corpus FOLDER`, whose docstring says how. {labels} accused
places have a verdict by hand, with its reason, in `audit_corpus/labels.csv`; "none" are tables without a relation.

In turn on the 40 papers of `work` (`python -m benchmarks.audit_corpus.paired_seconds FOLDER SRC SRC SRC`, best of two
rounds): 8.0 CPU seconds at 8ee81478, which read no text; 14.0 at 9b29aaec; 8.7 with a search that computes nothing
twice and tokens that are read in half the time, the text included.
"""


def main() -> None:
    """Write the page."""
    measured = [json.loads(line) for line in (HERE / "measured.jsonl").read_text(encoding="utf-8").splitlines()]
    papers = read_papers()
    families = sorted({paper.family for paper in papers})
    counts = Counter((paper.family, paper.split) for paper in papers)
    parts = [
        HEAD.format(papers=len(papers), labels=len(read_labels())),
        _table(["family", *SPLITS], [[family, *(counts[family, split] for split in SPLITS)] for family in families]),
    ]
    for split in SPLITS:
        runs = [run for run in measured if run["split"] == split]
        if runs:
            parts += [f"\n## {split}, {runs[0]['papers']} papers\n", *_describe(runs)]
    (HERE.parent / "audit_corpus.md").write_text("\n".join(parts), encoding="utf-8")


def _describe(runs: Sequence[dict[str, Any]]) -> list[str]:
    """The parts of a split's section."""
    whens = [run["when"] for run in runs]
    names = {
        "tabulars": "tabulars there",
        "tables": "tables read",
        "numbers": "numbers read",
        "in_checks": "numbers in a check",
        "relations": "relations",
        "seconds": "CPU seconds of all",
    }
    rows = [[name, *(run[key] for run in runs)] for key, name in names.items()]
    for code, answer in {
        "0": "nothing contradicts",
        "10": "contradicts",
        "15": "likely",
        "16": "nothing checked",
    }.items():
        rows.append([f"papers that end with {code} ({answer})", *(run["codes"].get(code, 0) for run in runs)])
    parts = [_table(["", *whens], rows), ""]
    said = {(row[0], "all" if row[1].startswith("all") else row[1]) for run in runs for row in run["precision"]}
    rows = [
        [f"{answer}: {kind}", *(_find(run["precision"], answer, kind) for run in runs)] for answer, kind in sorted(said)
    ]
    parts += [_table(["accused places by hand: true, false, unclear", *whens], rows), ""]
    planted = [run for run in runs if "recall" in run]
    if planted:
        kinds = dict.fromkeys("all" if row[0].startswith("all") else row[0] for run in planted for row in run["recall"])
        rows = [[kind, *(_found(run["recall"], kind) for run in planted)] for kind in kinds]
        heads = [
            f"{run['when']} ({run['without']} papers without, {run['fewer']} with fewer than ten)" for run in planted
        ]
        parts += [_table(["planted: contradicts + likely of faults", *heads], rows), ""]
    if any(run.get("seen") for run in runs):
        kinds = dict.fromkeys(row[0] for run in runs for row in run["seen"])
        rows = [
            [kind, *(next((f"{r[2]} of {r[1]}" for r in run["seen"] if r[0] == kind), "") for run in runs)]
            for kind in kinds
        ]
        parts += [_table(["relations seen by a reader in 45 tables: checked", *whens], rows), ""]
    return parts


def _find(precision: Sequence[Sequence[Any]], answer: str, kind: str) -> str:
    row = next((row for row in precision if row[0] == answer and row[1].split(":")[0] == kind), None)
    if row is None:
        return ""
    return f"{row[2]}, {row[3]}, {row[4]}" + (f"; {row[1].partition(': ')[2]}" if ": " in row[1] else "")


def _found(recall: Sequence[Sequence[Any]], kind: str) -> str:
    row = next((row for row in recall if row[0].split(":")[0] == kind), None)
    if row is None:
        return ""
    return f"{row[2]} + {row[3]} of {row[1]}" + (f"; {row[0].partition(': ')[2]}" if kind == "all" else "")


def _table(head: Sequence[Any], rows: Sequence[Sequence[Any]]) -> str:
    lines = [f"| {' | '.join(map(str, row))} |" for row in (head, *rows)]
    return "\n".join([lines[0], f"|{'|'.join(['---'] * len(head))}|", *lines[1:]])


if __name__ == "__main__":
    main()
