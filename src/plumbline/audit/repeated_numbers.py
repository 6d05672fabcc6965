"""Checks what a text says again: numbers of its tables, and the numbers of tables and sections that it refers to."""

from __future__ import annotations

from collections.abc import Collection

from plumbline.audit.audit_rows import AuditRows, Basis


def check_repeats(ledger: AuditRows) -> None:
    """Compare each number of `repeats.csv`, which a sentence repeats, with the cell of the table that it names.

    A sentence may say a fall by its size: where it prints no sign, the cell's does not count.
    """
    table = ledger.table("repeats")
    tables, rows, columns, where = (table.texts(name) for name in ("table", "row", "column", "where"))
    for name in table.rows:
        printed, original = table[name, "printed"], ledger.table(tables[name])[rows[name], columns[name]]
        if printed.value > 0 > original.value:
            original = original.without_sign()
        place = tables[name].replace("table", "table ")
        label = f"{columns[name]} of {rows[name]} in the text is that of {place}"
        ledger.copy(f"repeat_{name}", label, f"{where[name]}, {place}", printed, original)


def check_references(ledger: AuditRows, other_interpretation: Collection[str] = ()) -> None:
    """Compare the number of each table, section or statement that `references.csv` has the text refer to with where it
    stands.

    Args:
        other_interpretation: references that can be meant another way.
    """
    table = ledger.table("references")
    where, about = table.texts("where"), table.texts("about")
    for name in table.rows:
        printed, stands = (table[name, column].exactly() for column in ("printed", "stands"))
        basis: Basis = "other interpretation" if name in other_interpretation else "follows"
        ledger.check(f"reference_{name}", about[name], where[name], printed, stands, basis=basis)
