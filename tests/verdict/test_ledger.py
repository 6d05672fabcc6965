"""The ledger: what counts as a try, and what is noticed when somebody has been at the file."""

from __future__ import annotations

import json
import multiprocessing
import os
from pathlib import Path

import pytest

from plumbline.core.append_only_log import NO_HEAD
from plumbline.core.errors import PlumblineError
from plumbline.core.files import canonical_json, sha256_text
from plumbline.verdict import ledger
from plumbline.verdict.ledger import LedgerEntry, append, count_new_entries, read, read_statement, write_statement


def entry(name: str, **other) -> LedgerEntry:
    fields = {"kind": "numbers", "fingerprint": f"of {name}", "baseline": "base", "metric": "loss", "test": "pooled t"}
    return LedgerEntry(name=name, **(fields | other))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    append(tmp_path / "ledger.jsonl", [entry(name) for name in "abc"])
    return tmp_path / "ledger.jsonl"


def test_different_entries_against_a_baseline_are_tries(path: Path) -> None:
    grown = append(path, [entry("a"), entry("a", fingerprint="with more seeds"), entry("a", test="paired t")])
    grown = append(path, [entry("a", metric="accuracy"), entry("a", baseline="other")])
    assert len(grown) == 7 and grown.count_tries("base", "loss") == 6 and grown.count_tries("other", "loss") == 1
    assert read(path) == grown


@pytest.mark.parametrize("first", [{"kind": ledger.PRIMARY}, {"kind": "spec"}])
def test_other_metrics_do_not_add_to_tries(tmp_path: Path, first) -> None:
    entries = [entry("a", **first), entry("a"), *(entry("a", metric=f"m{number}") for number in range(3))]
    grown = append(tmp_path / "ledger.jsonl", entries)
    assert grown.find_primary_metric("base") == "loss"
    assert grown.count_tries("base", "loss") == 1 + (first["kind"] == "spec")
    assert grown.count_tries("base", "m0") == grown.count_tries("base", "loss") + 3, (
        "one that was not is paid for by all"
    )
    late = append(tmp_path / "late.jsonl", [entry("a"), entry("a", **first), entry("a", metric="m0")])
    assert late.find_primary_metric("base") is None, "named after a look"


def test_what_was_decided_is_no_try_and_is_kept(path: Path) -> None:
    decided = entry("a", verdict="keep", sentence="a improves loss by 1.", at="2026-01-01T00:00:00Z")
    grown = append(path, [decided, entry("d")])
    assert grown.count_tries("base", "loss") == 4 and read(path).entries[3] == decided


def test_an_entry_is_made_with_its_page_or_not_at_all(path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(RuntimeError), ledger.append_provisionally(path, [entry("d")]) as grown:
        assert grown.count_tries("base", "loss") == 4
        raise RuntimeError("the page cannot be written")
    assert path.read_bytes() == before
    with ledger.append_provisionally(path, [entry("d")]) as grown:
        pass
    assert read(path) == grown


def test_the_same_entry_again_writes_nothing(path: Path) -> None:
    before = path.read_bytes()
    assert len(append(path, [entry("c"), entry("a"), entry("a")])) == 3 and path.read_bytes() == before


def test_announced_tries_are_paid_for_from_the_first_on_and_stay(path: Path) -> None:
    assert append(path, [entry("d", planned_tries=20)]).count_tries("base", "loss") == 20
    assert append(path, [entry("e", planned_tries=2)]).count_tries("base", "loss") == 20
    assert append(path, [entry(f"f{number}") for number in range(30)]).count_tries("base", "loss") == 35


def test_tries_announced_later_are_paid_for_too(path: Path) -> None:
    entries = [entry(name, planned_tries=20) for name in "ab"]
    grown = append(path, entries)
    assert (
        grown.count_tries_made("base", "loss"),
        grown.count_planned_tries("base", "loss"),
        grown.count_tries("base", "loss"),
    ) == (3, 20, 20)
    assert len(grown) == 4 and append(path, [*entries, entry("c", planned_tries=5), entry("c")]) == grown == read(path)


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


@pytest.mark.parametrize(
    ("attack", "line"),
    [
        (lambda rows: [rows[0].replace('"a"', '"z"'), *rows[1:]], 1),
        (lambda rows: [rows[0], rows[2]], 2),
        (lambda rows: rows[1:], 1),
        (lambda rows: [rows[0], rows[0], rows[1], rows[2]], 2),
        (lambda rows: [rows[1], rows[0], rows[2]], 1),
        (lambda rows: [rows[0], "", rows[1], rows[2]], 2),
        (lambda rows: [rows[0], rows[1].replace(":", ": ", 1), rows[2]], 2),
        (lambda rows: [rows[0], "[]", rows[2]], 2),
        (lambda rows: [rows[0], json.dumps({"name": "b"}), rows[2]], 2),
    ],
)
def test_a_line_that_was_touched_is_named(path: Path, attack, line: int) -> None:
    path.write_text("\n".join(attack(lines(path))) + "\n")
    touched = path.read_bytes()
    for act in (lambda: read(path), lambda: append(path, [entry("d")])):
        with pytest.raises(PlumblineError, match=rf"ledger\.jsonl, line {line}\b"):
            act()
    assert path.read_bytes() == touched


def page_of(path: Path) -> Path:
    page = path.with_name("page.md")
    page.write_text(f"# Verdict\n\n{write_statement(read(path), path.parent)}\n\nmore\n")
    return page


def count_new(path: Path, page: Path) -> int:
    statement = read_statement(page)
    assert statement is not None
    return count_new_entries(read(path), page, statement)


def test_a_page_notices_a_cut_tail_and_counts_what_came(path: Path) -> None:
    page = page_of(path)
    assert count_new(path, page) == 0
    append(path, [entry("d")])
    assert count_new(path, page) == 1
    path.write_text("".join(f"{line}\n" for line in lines(path)[:2]))
    assert len(read(path)) == 2  # the file alone is in order
    with pytest.raises(PlumblineError, match=r"has 2.*had 3"):
        count_new(path, page)


def test_a_page_notices_a_chain_that_was_computed_anew(path: Path) -> None:
    page, previous, forged = page_of(path), NO_HEAD, []
    for number, line in enumerate(lines(path), start=1):
        record = {key: value for key, value in json.loads(line).items() if key != "hash"}
        record |= {"previous": previous, "name": f"harmless {number}"}
        previous = sha256_text(canonical_json(record))
        forged.append(canonical_json({**record, "hash": previous}))
    path.write_text("".join(f"{line}\n" for line in forged))
    assert len(read(path)) == 3
    with pytest.raises(PlumblineError, match="line 3"):
        count_new(path, page)
    path.unlink()
    with pytest.raises(PlumblineError, match="has 0 entries"):
        count_new(path, page)


def test_a_torn_last_line_is_put_aside_and_nothing_else_is_lost(path: Path, capsys) -> None:
    whole = path.read_bytes()
    begin = whole.rstrip(b"\n").rfind(b"\n") + 1
    for length in (1, 20, len(whole) - begin - 2):
        path.write_bytes(whole[: begin + length])
        assert [each.name for each in append(path, [entry("d")]).entries] == ["a", "b", "d"]
        assert "line 3 is incomplete" in capsys.readouterr().err
    assert sorted(len(aside.read_bytes()) for aside in path.parent.glob("*.torn*"))[:2] == [1, 20]


def test_a_reader_puts_a_torn_last_line_aside_too(path: Path, capsys) -> None:
    path.write_bytes(path.read_bytes()[:-20])
    assert [each.name for each in read(path).entries] == ["a", "b"]
    assert "line 3 is incomplete" in capsys.readouterr().err
    assert len(list(path.parent.glob("*.torn*"))) == 1 and len(append(path, [])) == 2 and not capsys.readouterr().err


def test_a_lost_newline_loses_no_entry(path: Path) -> None:
    path.write_bytes(path.read_bytes().removesuffix(b"\n"))
    assert len(read(path)) == 3 and len(append(path, [entry("d")])) == 4 and len(read(path)) == 4


def enter(path: Path, who: int) -> None:
    for number in range(15):
        append(path, [entry(f"{who}.{number}"), entry("everyone's")])


def test_appends_at_the_same_time_are_all_there(tmp_path: Path) -> None:
    path, context = tmp_path / "ledger.jsonl", multiprocessing.get_context("fork")
    processes = [context.Process(target=enter, args=(path, who)) for who in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert {each.name for each in read(path).entries} == {
        "everyone's",
        *(f"{who}.{number}" for who in range(4) for number in range(15)),
    }
    assert len(read(path)) == 61


def test_a_full_disk_enters_nothing(path: Path, monkeypatch) -> None:
    before, whole = path.read_bytes(), os.write
    monkeypatch.setattr(os, "write", lambda descriptor, content: whole(descriptor, content[:10]))
    with pytest.raises(PlumblineError, match="nothing was entered"):
        append(path, [entry("d")])
    assert path.read_bytes() == before


def test_what_is_no_page_says_nothing(tmp_path: Path) -> None:
    assert read_statement(tmp_path / "absent.md") is None
    (tmp_path / "other.md").write_text("# Notes\n")
    assert read_statement(tmp_path / "other.md") is None
