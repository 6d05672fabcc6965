"""A paper's tables as printed: every number is in a cell, in the colour of what the audit's rows come to."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from plumbline.audit import audit_csv
from plumbline.audit.coverage import list_printed_cells
from plumbline.audit.printed_html import (
    CONTRADICTS,
    HOLDS,
    LIKELY,
    READ,
    STYLE,
    UNCHECKED,
    ShownNumber,
    ShownTable,
    judge_row,
    write_table,
)
from plumbline.audit.printed_tables import PrintedTables
from plumbline.core import fingerprint_file
from plumbline.specs.yaml_files import ROOT

STUDIES = ("key_norms", "premature", "quack", "query_free", "transfer")


@pytest.fixture(scope="module")
def audit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("audit") / "audit.csv"
    path.write_text(audit_csv.to_csv(audit_csv.build(STUDIES)), encoding="utf-8")
    fingerprint_file.write(path, "made here")
    return path


def count(html: str) -> dict[str, int]:
    return {kind: int(number) for number, kind in re.findall(r'class="swatch [\w ]+">(\d+) ([\w ]+)<', html)}


@pytest.mark.parametrize("study", STUDIES)
def test_every_printed_number_is_shown_once_as_the_audit_has_it(audit: Path, study: str) -> None:
    printed = PrintedTables.read(study, ROOT, audit)
    assert printed is not None
    coverage = audit_csv.read_coverage(study)
    counts = count(printed.counts)
    assert sum(counts.values()) == coverage.printed == len(list_printed_cells(printed.published))
    assert counts.get(UNCHECKED, 0) == coverage.printed - coverage.read
    tables = [html for _, _, html in printed.tables]
    for kind in counts:
        assert sum(count(html.partition("<div")[0]).get(kind, 0) for html in tables) == counts[kind]
    broken = {row["cells"] for row in printed.rows if judge_row(row) in (CONTRADICTS, LIKELY) and row["cells"]}
    assert counts.get(CONTRADICTS, 0) + counts.get(LIKELY, 0) == len(broken)


def test_a_number_shows_its_relation_and_interval_and_leads_to_what_is_said_of_it(audit: Path) -> None:
    printed = PrintedTables.read("transfer", ROOT, audit)
    assert printed is not None
    table = next(html for _, name, html in printed.tables if name == "Table 2")
    body, _, remarks = table.partition("</table>")
    (label,) = re.findall(
        r'<a id="table2-geglu-ffn-delta" href="#table2-geglu-ffn-delta-said"[^>]*aria-label="([^"]*)"', body
    )
    row = next(
        row for row in printed.rows if row["cells"] == "table2.geglu_ffn.delta" and judge_row(row) == CONTRADICTS
    )
    assert label.startswith("0.001: mismatch") and row["quantity"] in label and " to " in label
    assert 'id="table2-geglu-ffn-delta-said"' in remarks and 'href="#table2-geglu-ffn-delta"' in remarks
    assert not re.findall(r"<script|<img", table)


def test_a_number_that_no_row_looks_at_has_no_colour(audit: Path) -> None:
    printed = PrintedTables.read("transfer", ROOT, audit)
    assert printed is not None
    kept = [row for row in printed.rows if "table2" not in row["cells"] + row["reads"]]
    unread = PrintedTables(published=printed.published, rows=kept)
    table = next(html for _, name, html in unread.tables if name == "Table 2")
    assert list(count(table)) == [UNCHECKED] and not re.findall(f'class="(?:{HOLDS}|{READ}|{LIKELY})"', table)


def test_an_audit_that_was_edited_or_is_of_other_papers_has_no_page(audit: Path, tmp_path: Path) -> None:
    assert PrintedTables.read("mine", ROOT, audit) is None
    assert PrintedTables.read("transfer", ROOT, tmp_path / "audit.csv") is None


def test_a_column_of_texts_is_on_the_left_with_its_head() -> None:
    def cell(text: str, kind: str = "") -> list[ShownNumber]:
        return [ShownNumber(text=text, kind=kind)]

    rows = [
        [cell("a"), cell("Smith et al."), cell("0.5", UNCHECKED), cell("")],
        [cell("b"), cell("ours"), cell("n/a"), cell("")],
    ]
    html = write_table(ShownTable(name="Table 1", columns=["method", "source", "loss", "none"], rows=rows))
    texts = re.findall(r'<t[hd] class="text">([^<]*)<', html)
    assert texts == ["source", "Smith et al.", "ours"], "a number's column has texts on the right"
    assert ".printed-table .text{text-align:left}" in STYLE
