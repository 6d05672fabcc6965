"""Counts what audits find in made-up tables, untold: ``python -m tests.audit.paper.false_alarms 2000``."""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path

from plumbline.audit.paper.paper_audit import audit_folder

from .made_up_tables import faulty, sound


def main() -> None:
    count, seed = int(sys.argv[1]), 77
    with tempfile.TemporaryDirectory() as name:
        for make in (sound, faulty):
            draw = random.Random(seed)
            broken = likely = relations = 0
            for _ in range(count):
                (Path(name) / "t.csv").write_text(make(draw).text())
                audit = audit_folder(Path(name))
                broken += bool(audit.contradictions)
                likely += audit.answer == "likely"
                relations += len(audit.relations)
            print(
                f"{make.__name__}: {count} tables, {relations} relations held, {broken} tables with a contradiction, "
                f"{likely} more with a likely one"
            )


if __name__ == "__main__":
    main()
