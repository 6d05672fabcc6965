"""The corpus of public papers: its lists fit each other, and its judge of planted faults reads what it should."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from benchmarks.audit_corpus.corpus_files import read_labelled_tables, read_labels, read_papers
from benchmarks.audit_corpus.planted_faults import plant
from benchmarks.audit_corpus.stated_relations import find_relations, read_tables

TABLE = r"""
\begin{tabular}{lrrrr}
Model & A & B & C & Avg \\
\midrule
one & 70.0 & 61.2 & 50.0 & 60.4 \\
two & 72.0 & \textbf{64.0} & 50.1 & 62.0 \\
three & 71.0 & 60.0 & \textbf{53.0} & 61.3 \\
four & \textbf{75.0} & 60.0 & 51.0 & \textbf{%s} \\
\end{tabular}
"""


def test_every_label_and_table_is_of_a_paper_that_is_listed() -> None:
    papers = read_papers()
    names = {paper.name for paper in papers if paper.split in ("work", "extra", "last")}
    splits = Counter(paper.split for paper in papers)
    assert len(papers) == len({paper.name for paper in papers}) and splits["work"] >= 40 and splits["last"] == 20
    assert {len(paper.commit) for paper in papers} == {40}
    labels = read_labels()
    assert {label.paper for label in labels.values()} <= names
    assert {label.verdict for label in labels.values()} <= {"true", "false", "unclear"}
    assert all(label.reason for label in labels.values())
    assert {table.paper for table in read_labelled_tables()} <= names


def test_the_judge_reads_averages_and_marks_that_hold() -> None:
    relations = list(find_relations(read_tables(TABLE % "62.0")))
    assert Counter(relation.kind for relation in relations) == {"average": 4, "best": 4}


def test_the_judge_takes_an_average_that_is_off_for_none() -> None:
    relations = list(find_relations(read_tables(TABLE % "63.0")))
    assert Counter(relation.kind for relation in relations) == {"average": 3, "best": 4}


def test_a_planted_fault_breaks_one_relation(tmp_path: Path) -> None:
    main = tmp_path / "main.tex"
    main.write_text(TABLE % "62.0", encoding="utf-8")
    sound = read_tables(main.read_text(encoding="utf-8"))
    faults = plant(main, tmp_path, "made up")
    assert len(faults) == 10 and {fault.kind for fault in faults} == {"digit", "average", "swap", "bold"}
    for fault in faults:
        lines = zip(fault.text.splitlines(), main.read_text(encoding="utf-8").splitlines(), strict=True)
        assert 1 <= sum(now != was for now, was in lines) <= 2
        changed = read_tables(fault.text)
        assert any(relation.holds(sound) and not relation.holds(changed) for relation in find_relations(sound))
    assert [fault.text for fault in plant(main, tmp_path, "made up")] == [fault.text for fault in faults]


def test_marks_with_one_exception_are_no_relation() -> None:
    assert {relation.kind for relation in find_relations(read_tables(TABLE % "59.0"))} == {"average"}
