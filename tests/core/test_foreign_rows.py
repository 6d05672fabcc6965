"""Rows that somebody else wrote: a stray quote swallows none, and what is no file of rows is refused in a sentence."""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.audit.paper.paper_table import read_tables
from plumbline.core.errors import PlumblineError
from plumbline.core.foreign_rows import TAB, read_ordinary_text, split_rows
from plumbline.specs import own_methods_file
from plumbline.verdict import ledger
from plumbline.verdict.sources import bounded_reading, lm_eval_items, row_files
from plumbline.verdict.sources.row_files import read_rows

HEAD = "method,metric,scale,value\n"
#: Texts in which a cell swallows rows, and the lines that the refusal names.
SWALLOWED = {
    "in the last column": (HEAD + 'a,loss,s,"1\nb,loss,s,2\nc,loss,s,3"\nd,loss,s,4\n', "lines 2 to 4"),
    "one row, in the last column": (HEAD + 'a,loss,s,"1\nb,loss,s,2"\nc,loss,s,3\n', "lines 2 to 3"),
    "in the first column": (HEAD + '"a,loss,s,1\nb,loss,s,2\nc",loss,s,3\n', "lines 2 to 4"),
    "one row, in the first column": (HEAD + '"a,loss,s,1\nb",loss,s,2\nc,loss,s,3\n', "lines 2 to 3"),
    "in the head": ('method,metric,scale,"value\na,loss,s,1\nb,loss,s,2"\n', "lines 1 to 3"),
    "after an empty line, with CRLF": (HEAD + '\r\na,loss,s,"1\r\nb,loss,s,2\r\nc,loss,s,3"\r\n', "lines 3 to 5"),
    "to the end": (HEAD + 'a,loss,s,1\nb,loss,s,"2\nc,loss,s,3\n', "lines 3 to 4"),
}


@pytest.mark.parametrize(("text", "lines"), SWALLOWED.values(), ids=SWALLOWED)
def test_every_reader_of_rows_refuses_a_cell_that_swallows_some(tmp_path: Path, text: str, lines: str) -> None:
    (tmp_path / "t.csv").write_bytes(text.encode())
    for read in (
        lambda: read_rows(tmp_path / "t.csv"),
        lambda: read_tables(tmp_path),
        lambda: own_methods_file.read_printed_results("t.csv", "study.yaml", ["a", "b", "c", "d"], ["s"], tmp_path),
    ):
        with pytest.raises(PlumblineError, match=rf"t\.csv, {lines}: .*quote"):
            read()


def test_line_ends_within_a_note_are_read(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('method,note,seed,loss\na,"went well,\nreally ""well""",1,3.5\n\nb,"x",2,4\n')
    read = read_rows(tmp_path / "t.csv")
    assert [row.line for row in read.rows] == [2, 5] and [row.cells["loss"] for row in read.rows] == ["3.5", "4"]
    assert read.rows[0].cells["note"] == 'went well,\nreally "well"'


def test_quotes_between_tabs() -> None:
    text = 'method\tloss\tnote\n"a"\t1\t"GeLU" at last\nb\t"2"\t"open\nc\t3\tclosed"\n'
    assert [cells for _, cells in split_rows(Path("t.tsv"), text, TAB)] == [
        ["method", "loss", "note"],
        ["a", "1", '"GeLU" at last'],
        ["b", "2", '"open'],
        ["c", "3", 'closed"'],
    ]


@given(st.lists(st.lists(st.text('ab "\n1', max_size=6), min_size=3, max_size=3), min_size=1, max_size=5))
def test_what_a_writer_of_csv_wrote_is_read_back(rows: list[list[str]]) -> None:
    file = io.StringIO(newline="")
    csv.writer(file).writerows(rows)
    assert [cells for _, cells in split_rows(Path("t.csv"), file.getvalue(), ",")] == rows


def pipe(path: Path) -> None:
    os.mkfifo(path)


NO_ROWS = {
    "a named pipe": (pipe, "is a named pipe, and no ordinary file"),
    "a folder": (Path.mkdir, "is a folder"),
    "a device": (lambda path: path.symlink_to("/dev/zero"), "is a device"),
    "gone": (lambda path: path.symlink_to("nowhere"), "cannot be read"),
    "gzip": (lambda path: path.write_bytes(b"\x1f\x8b\x08"), "is compressed"),
    "xlsx": (lambda path: path.write_bytes(b"PK\x03\x04"), "is a zip archive, as .xlsx is"),
    "parquet": (lambda path: path.write_bytes(b"PAR1"), "is Parquet"),
    "UTF-16": (lambda path: path.write_bytes("method".encode("utf-16")), "is UTF-16 text; save it as UTF-8"),
    "binary": (lambda path: path.write_bytes(b"a\0b"), "is no text"),
    "Latin-1": (lambda path: path.write_bytes(b"caf\xe9,1\n"), "is not UTF-8 text"),
    "empty": (lambda path: path.write_bytes(b""), "has no rows"),
    "a head alone": (lambda path: path.write_text("method,loss\n"), "has no rows"),
}


@pytest.mark.parametrize(("make", "message"), NO_ROWS.values(), ids=NO_ROWS)
def test_what_is_no_file_of_rows_ends_in_a_sentence(tmp_path: Path, make, message: str) -> None:
    make(tmp_path / "t.csv")
    with pytest.raises(PlumblineError, match=message):
        read_rows(tmp_path / "t.csv")


@pytest.mark.parametrize(
    "read",
    [
        read_rows,
        ledger.read,
        lambda path: ledger.append(path, []),
        ledger.read_statement,
        bounded_reading.read_text,
        lambda path: lm_eval_items.read_model(path.parent, ""),
    ],
    ids=["rows", "ledger", "its end", "page", "gate", "lm-eval"],
)
def test_no_reader_waits_for_a_named_pipe(tmp_path: Path, read) -> None:
    os.mkfifo(tmp_path / "results.json")
    (tmp_path / "samples_task.jsonl").write_text("{}\n")
    with pytest.raises(PlumblineError, match="is a named pipe"):
        read(tmp_path / "results.json")


def test_a_file_has_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_files, "MOST_ROWS", 2)
    rows = "1,2\n" * 3
    for name, text in (("t.csv", "a,b\n" + rows), ("t.jsonl", '{"a": 1}\n' * 3), ("t.json", '[{"a":1},{},{}]')):
        (tmp_path / name).write_text(text)
        with pytest.raises(PlumblineError, match="more than 2 rows"):
            read_rows(tmp_path / name)
    with pytest.raises(PlumblineError, match="more than 0 MiB"):
        read_ordinary_text(tmp_path / "t.csv", 10)
