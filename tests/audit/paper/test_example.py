"""The example: tables of one of our papers, audited as a folder, have the verdicts of the study's own rows."""

from __future__ import annotations

from pathlib import Path

from plumbline.audit.audit_csv import build
from plumbline.audit.paper.paper_audit import audit_folder

#: Checks of the example whose rows the study calls otherwise, or has no row for.
OWN = {"t2_sorted"}


def test_a_folder_of_our_tables_has_the_verdicts_of_the_study(repository: Path) -> None:
    audit = audit_folder(repository / "examples/audit/transfer", untold=False)
    study = {row["id"]: row for row in build(["transfer"], repository)}
    compared = 0
    for row in audit.rows:
        if row["id"] in OWN:
            continue
        own = study[row["id"].replace(".", "_")]
        # A study's copy with as many digits is the same number; the example's has the range of a rounded one.
        ends = () if own["evidence_kind"] == "copy" else ("recomputed_low", "recomputed_high")
        for column in ("printed", "verdict", "recomputed", *ends):
            assert row[column] == own[column], (row["id"], column)
        compared += 1
    assert compared == 111
    assert sorted(row["id"] for row in audit.contradictions) == ["t2_p.hyper", "t3_rank_base.attnres"]


def test_what_is_found_without_being_told_is_right_in_our_papers(repository: Path, tmp_path: Path) -> None:
    """Every contradiction that the five papers' tables give without instructions is a mismatch of the studies' too."""
    expected = {("transfer", "table2", "hyper", "p_bonf")}
    actual = set()
    for study in ("transfer", "premature", "query_free"):
        (tmp_path / study).mkdir()
        for path in (repository / "studies" / study / "published").glob("*.csv"):
            if path.stem != "prose":
                (tmp_path / study / path.name).write_bytes(path.read_bytes())
        audit = audit_folder(tmp_path / study)
        assert audit.relations or study == "query_free"
        actual |= {(study, *str(row["quantity"]).split(", ")) for row in audit.contradictions}
    assert actual == expected


def test_the_example_is_what_the_study_prints(repository: Path) -> None:
    folder = repository / "examples/audit/transfer"
    for path in folder.glob("*.csv"):
        assert path.read_bytes() == (repository / "studies/transfer/published" / path.name).read_bytes()
