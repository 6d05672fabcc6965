"""What an audit finds without being told: no fault in sound tables, and the one that was put into others."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from plumbline.audit.paper.paper_audit import PaperAudit, audit_folder

from .made_up_tables import MadeUpTable, faulty, sound


def audited(folder: Path, text: str) -> PaperAudit:
    folder.mkdir(exist_ok=True)
    (folder / "t.csv").write_text(text)
    return audit_folder(folder)


def audits(folder: Path, make: object, seed: int, count: int) -> list[tuple[MadeUpTable, PaperAudit]]:
    draw = random.Random(seed)
    tables = [make(draw) for _ in range(count)]  # type: ignore[operator]
    return [(table, audited(folder, table.text())) for table in tables]


@pytest.mark.slow
def test_200_sound_tables_have_no_finding(tmp_path: Path) -> None:
    made = audits(tmp_path / "t", sound, 1, 200)
    alarms = [(table.text(), audit.contradictions) for table, audit in made if audit.contradictions]
    assert sum(len(audit.relations) for _, audit in made) > 150  # it does look
    assert len(alarms) == 0, alarms[0]


@pytest.mark.slow
def test_of_200_tables_with_one_fault_most_are_found(tmp_path: Path) -> None:
    made = audits(tmp_path / "t", faulty, 2, 200)
    found = sum(bool(audit.contradictions) for _, audit in made)
    assert found >= 180, found
