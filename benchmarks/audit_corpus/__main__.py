"""The bar of `plumbline audit`: what it reads and says of public papers, what of it is true, and what it misses.

`papers.csv` lists the papers by repository, commit and file; `python -m benchmarks.audit_corpus.fetch_sources FOLDER`
brings their LaTeX. Precision is by hand: `labels.csv` says of each accused place whether the paper's own numbers do
contradict there. Recall is of faults planted into real tables, ten a paper, the seeds fixed by the paper's name; a
small judge that shares no code with the audit must read a relation there, stated by a name or by the marks of all
columns, that held before and does not after. A fault is found if the audit then accuses a number of that file that it
did not accuse before. Seconds are of the CPU, in one process, without its start.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.audit_corpus.audited_paper import Accusation, AuditedPaper, audit_paper
from benchmarks.audit_corpus.corpus_files import (
    HERE,
    SPLITS,
    Paper,
    format_share,
    read_labelled_tables,
    read_labels,
    read_papers,
)
from benchmarks.audit_corpus.planted_faults import KINDS, Fault, plant
from benchmarks.machine_description import describe

#: Where a measuring is kept, for the page: a line of JSON each.
MEASURED = HERE / "measured.jsonl"


def arguments() -> argparse.ArgumentParser:
    """The parser of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", type=Path, help="the folder with a folder of LaTeX for each paper")
    parser.add_argument("--split", choices=SPLITS, default="work")
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME", help="only these papers")
    parser.add_argument("--planted", action="store_true", help="plant faults as well")
    parser.add_argument("--said", action="store_true", help="print every accused place with its label")
    parser.add_argument("--keep", metavar="WHEN", help=f"add what was measured to {MEASURED.name} under this name")
    return parser


def main() -> int:
    """Measure, print, and return 1 if an accused place has no label."""
    options = arguments().parse_args()
    papers = [paper for paper in read_papers(options.split) if not options.only or paper.name in options.only]
    audit_paper(papers[0].main(options.sources))  # so that no paper's seconds contain the imports
    audits = {paper: audit_paper(paper.main(options.sources)) for paper in papers}
    rows = [_count_paper(paper, audit) for paper, audit in audits.items()]
    columns = ("tabulars", "read tables", "numbers", "in checks", "relations", "findings", "accused", "code", "CPU s")
    print(_format_table(("paper", "family", *columns), rows))
    labelled = list(_label(audits))
    precision = _count_precision(labelled)
    print(f"\n{_format_table(('said', 'kind', 'true', 'false', 'unclear', 'no label'), precision)}")
    codes = Counter(audit.code for audit in audits.values())
    seconds = [audit.seconds for audit in audits.values()]
    print(f"\nexit codes {dict(sorted(codes.items()))}; CPU s a paper {min(seconds):.2f} to {max(seconds):.2f}")
    if options.said:
        for name, said, verdict in labelled:
            print(f"\n{verdict}: {name}, {said.answer}, {said.source}, printed {said.printed}\n  {said.what}")
    seen = _count_seen(audits)
    if seen:
        print(f"\n{_format_table(('relations seen by a reader', 'tables', 'checked there'), seen)}")
    measured = {
        "when": options.keep,
        "machine": describe(with_torch=False),
        "split": options.split,
        "papers": len(papers),
        "tabulars": sum(audit.tabulars for audit in audits.values()),
        "tables": sum(audit.tables for audit in audits.values()),
        "numbers": sum(audit.numbers for audit in audits.values()),
        "in_checks": sum(audit.read for audit in audits.values()),
        "relations": sum(audit.relations for audit in audits.values()),
        "codes": dict(sorted(codes.items())),
        "seconds": round(sum(seconds), 1),
        "precision": precision,
        "seen": seen,
    }
    if options.planted:
        found = [
            (paper, fault, answer)
            for paper, audit in audits.items()
            for fault, answer in _try_faults(paper, audit, options.sources)
        ]
        measured["recall"] = _count_recall(found)
        measured["without"] = sum(all(other != paper for other, _, _ in found) for paper in audits)
        measured["fewer"] = sum(0 < sum(other == paper for other, _, _ in found) < 10 for paper in audits)
        print(f"\n{_format_table(('planted', 'faults', 'contradicts', 'likely', 'passed over'), measured['recall'])}")
        print(f"\npapers without a fault {measured['without']}, with fewer than ten {measured['fewer']}")
        if options.said:
            for source, fault, answer in found:
                print(
                    f"{answer or 'passed over'}: {source.name}, {fault.kind}, {fault.file.name}:{fault.line}, "
                    f"{fault.was.strip()[:40]} for {fault.now.strip()[:40]}"
                )
    if options.keep:
        with MEASURED.open("a", encoding="utf-8") as file:
            file.write(json.dumps(measured) + "\n")
    return int(any(verdict == "no label" for _, _, verdict in labelled))


def _count_paper(paper: Paper, audit: AuditedPaper) -> tuple[object, ...]:
    findings = len({said.finding for said in audit.accusations})
    counts = (audit.tabulars, audit.tables, audit.numbers, audit.read, audit.relations, findings)
    return (paper.name, paper.family, *counts, len(audit.accusations), audit.code, f"{audit.seconds:.2f}")


def _label(audits: dict[Paper, AuditedPaper]) -> Iterable[tuple[str, Accusation, str]]:
    """Every accused place with what a reader said of it."""
    labels = read_labels()
    for paper, audit in audits.items():
        for said in audit.accusations:
            label = labels.get((paper.name, said.source, said.printed))
            yield paper.name, said, label.verdict if label else "no label"


def _count_precision(labelled: Sequence[tuple[str, Accusation, str]]) -> list[tuple[object, ...]]:
    """Accused places by answer and kind, and the share that is true with its interval."""
    rows: list[tuple[object, ...]] = []
    for answer in ("contradicts", "likely"):
        verdicts = {kind: Counter[str]() for kind in sorted({said.kind for _, said, _ in labelled})}
        for _, said, verdict in labelled:
            if said.answer == answer:
                verdicts[said.kind][verdict] += 1
        total = sum(verdicts.values(), Counter[str]())
        for kind, count in [
            *((k, c) for k, c in verdicts.items() if c),
            (_share(total["true"], total["false"]), total),
        ]:
            rows.append((answer, kind, *(count[verdict] for verdict in ("true", "false", "unclear", "no label"))))
    return rows


def _count_seen(audits: dict[Paper, AuditedPaper]) -> list[tuple[object, ...]]:
    """Relations that a reader saw hold in tables drawn by chance, by kind, and how many have a check of their kind."""
    by_name = {paper.name: audit for paper, audit in audits.items()}
    counts: dict[str, Counter[bool]] = {}
    for table in read_labelled_tables():
        if table.paper in by_name:
            checked = {kind for source, kind in by_name[table.paper].checked if table.holds(source)}
            for kind in table.kinds.split() or ["none"]:
                counts.setdefault(kind, Counter())[kind in checked or (kind == "none" and bool(checked))] += 1
    return [(kind, count.total(), count[True]) for kind, count in sorted(counts.items())]


def _share(true: int, false: int) -> str:
    return f"all: {format_share(true, false)}".removesuffix(": ")


def _try_faults(paper: Paper, sound: AuditedPaper, sources: Path) -> Iterable[tuple[Fault, str]]:
    """Plant each fault of a paper, and say how the audit answers: contradicts, likely, or nothing new."""
    before = Counter((said.source, said.printed, said.finding) for said in sound.accusations)
    main = paper.main(sources)
    faults = plant(main, main.parent, paper.name)
    if not faults:
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / paper.name
        shutil.copytree(main.parent, copy)
        for fault in faults:
            place = copy / fault.file.relative_to(main.parent)
            text = place.read_bytes()
            place.write_text(fault.text, encoding="utf-8", errors="surrogateescape")
            said = [
                accusation
                for accusation in audit_paper(copy / main.name).accusations
                if (accusation.source, accusation.printed, accusation.finding) not in before
                and accusation.source.rpartition(":")[0] in ("", str(fault.file.relative_to(main.parent)))
            ]
            place.write_bytes(text)
            answers = {accusation.answer for accusation in said}
            yield fault, "contradicts" if "contradicts" in answers else "likely" if answers else ""


def _count_recall(tried: Sequence[tuple[Paper, Fault, str]]) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for kind in KINDS:
        answers = Counter(answer for _, fault, answer in tried if fault.kind == kind)
        if answers:
            rows.append((kind, answers.total(), answers["contradicts"], answers["likely"], answers[""]))
    answers = Counter(answer for _, _, answer in tried)
    share = _share(answers.total() - answers[""], answers[""])
    return [*rows, (share, answers.total(), answers["contradicts"], answers["likely"], answers[""])]


def _format_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    texts = [tuple(map(str, row)) for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    lines = [
        "| " + " | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) + " |" for row in texts
    ]
    return "\n".join([lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]])


if __name__ == "__main__":
    raise SystemExit(main())
