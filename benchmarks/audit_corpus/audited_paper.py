"""Audits one paper by the command `plumbline audit --from`, in this process, and counts what it read and said."""

from __future__ import annotations

import csv
import io
import json
import re
import runpy
import sys
import tempfile
import time
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.audit_corpus.stated_relations import TABULAR, reach

#: Kinds of what the audit says, by what its formula computes.
KINDS = {
    "average": r"\bmean\(",
    "spread": r"\b(?:std|pstd|sem|spread)\(",
    "total": r"\b(?:sum|total)\(|\+ .*\+ ",
    "mark": r"\b(?:max|min|second|best|least|rank)\w*\(",
    "percent": r"100\b.*/|/.*100\b",
    "difference": r" - ",
    "product": r"[*/]",
}


@dataclass(frozen=True, slots=True)
class Accusation:
    """A number that the audit says contradicts, or likely does."""

    answer: str
    finding: str
    kind: str
    source: str
    printed: str
    what: str


@dataclass(slots=True)
class AuditedPaper:
    """What an audit came to; `checked` has the place of every number that a check tests, and the check's kind."""

    code: int
    seconds: float
    tabulars: int
    tables: int = 0
    numbers: int = 0
    read: int = 0
    relations: int = 0
    not_read: int = 0
    accusations: list[Accusation] = field(default_factory=list)
    checked: set[tuple[str, str]] = field(default_factory=set)
    error: str = ""


def audit_paper(main: Path) -> AuditedPaper:
    """Audit a paper's LaTeX into a new folder."""
    texts = [re.sub(r"(?<!\\)%[^\n]*", "", file.read_text("utf-8", "replace")) for file in reach(main, main.parent)]
    tabulars = sum(len(re.findall(rf"\\begin\{{{TABULAR}\}}", text)) for text in texts)
    with tempfile.TemporaryDirectory() as folder:
        arguments, out, problems, before = sys.argv, io.StringIO(), io.StringIO(), time.process_time()
        sys.argv = ["plumbline audit", "--from", str(main), f"{folder}/paper", "--json"]
        code = 0
        try:
            with redirect_stdout(out), redirect_stderr(problems):
                runpy.run_module("plumbline.audit", run_name="__main__")
        except SystemExit as ended:
            code = int(ended.code or 0)
        finally:
            sys.argv = arguments
        seconds = time.process_time() - before
        rows = Path(folder) / "paper/audit/audit.csv"
        with rows.open(encoding="utf-8", newline="") if rows.is_file() else io.StringIO() as file:
            checked = {(row["source"], _name_kind(row["formula"])) for row in csv.DictReader(file)}
    if code in (1, 2):
        return AuditedPaper(code=code, seconds=seconds, tabulars=tabulars, error=problems.getvalue())
    report = json.loads(out.getvalue())
    accusations = [
        _read_accusation(answer, row)
        for answer, key in (("contradicts", "contradictions"), ("likely", "likely"))
        for row in report[key]
    ]
    accusations += [
        Accusation("likely", text, "doubted", text.partition(":")[0], "", text) for text in report.get("doubted", [])
    ]
    return AuditedPaper(
        code=code,
        seconds=seconds,
        tabulars=tabulars,
        tables=len(report["tables"]),
        numbers=report["printed"],
        read=report["read"],
        relations=len(report["relations"]),
        not_read=len(report["not_read"]),
        accusations=accusations,
        checked=checked,
    )


def _read_accusation(answer: str, row: dict[str, Any]) -> Accusation:
    return Accusation(
        answer=answer,
        finding=row["finding"],
        kind=_name_kind(row["formula"]),
        source=row["source"],
        printed=str(row["printed"]),
        what=f"{row['quantity']}: {row['formula'][:300]} gives {row['recomputed']}",
    )


def _name_kind(formula: str) -> str:
    names_apart = re.sub(r'"(?:[^"\\]|\\.)*"', "", formula)
    return next((kind for kind, pattern in KINDS.items() if re.search(pattern, names_apart)), "other")
