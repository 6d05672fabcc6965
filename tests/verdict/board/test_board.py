"""A board's pages open from disk, fit a phone, say what was checked, and show what luck alone would give."""

from __future__ import annotations

import hashlib
import io
import json
import re
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest

from benchmarks import gate_faults
from plumbline.core.run_files import id_of_spec
from plumbline.verdict import __main__ as verdict_verb
from plumbline.verdict.board import __main__ as board_verb
from plumbline.verdict.board.board_page import draw_progress
from plumbline.verdict.board.board_rows import Board, BoardRow, make_board, parse_day
from plumbline.verdict.board.progress import compute_luck_band, place_records
from plumbline.verdict.evidence import RunEvidence
from plumbline.verdict.gate.examined_records import ExaminedRecord
from plumbline.verdict.gate.judgement import judge_board, pool_noise
from plumbline.verdict.gate.rules import read_rules
from plumbline.verdict.sources.records import Printed, Record
from tests.report import headless_browser
from tests.run_in_process import run

HOSTILE = "<script>alert(1)</script> \x1b[2J {{ 7 * 7 }}"


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    """The board of four records, one of whose headlines is wrong and one of whose names is hostile."""
    rng, folder = np.random.default_rng(3), tmp_path / "records"
    folder.mkdir()
    runs = gate_faults.make_runs(rng, 5)
    gate_faults.write_table(folder, runs, "3.2711", 2900, 5, rng)
    for log in (folder / "results/new").iterdir():
        log.write_text(log.read_text().replace("step:3000/3000", "step:2900/2900"))
    page = folder / "README.md"
    page.write_text(page.read_text().replace("| 2 |", f"| 2 {HOSTILE} |"))
    (tmp_path / "rules.toml").write_text(
        gate_faults.TABLE_RULES + '[predecessor]\nalpha = 0.01\nslope = 4.5e-5\nsource = "x"\n'
    )
    out = tmp_path / "pages"
    process = run(board_verb.main, folder, "--rules", tmp_path / "rules.toml", "--out", out, cwd=tmp_path)
    assert process.returncode == 0, process.stderr
    return out


def test_a_row_says_the_tier_and_nothing_of_others_is_markup(pages: Path) -> None:
    board = json.loads((pages / "board.json").read_text())
    assert [each["tier"] for each in board["records"]] == ["logs checked"] * 3 + ["claimed"]
    assert board["records"][3]["does_not_hold"] == ["headline"] and board["tiers"]["claimed"] == 1
    for name in ("index.html", "progress.svg", "card.svg"):
        text = (pages / name).read_text()
        assert "<script" not in text and "\x1b" not in text and "49" not in re.findall(r"2 &lt;script.{60}", text)
        assert not re.findall(r"""(?:src|href|url\()=?["']?(?:https?:)?//""", text)


def test_the_band_is_the_law_of_the_best_of_so_many_tries() -> None:
    rng = np.random.default_rng(0)
    best = 3600 + 8 * rng.standard_normal((100_000, 20)).min(axis=1)
    low, high = compute_luck_band(20, 3600, 8, lower=True)
    assert np.quantile(best, [0.05, 0.95]) == pytest.approx([low, high], abs=0.15)
    assert compute_luck_band(20, 0.0, 1.0, lower=False)[0] == pytest.approx(
        -compute_luck_band(20, 0.0, 1.0, lower=True)[0]
    )


def test_a_board_of_nulls_stays_in_its_band() -> None:
    rng, beyond = np.random.default_rng(4), 0
    for _ in range(400):
        values = [3600.0, *(3600 + 8 * rng.standard_normal(19))]
        rows = [BoardRow(name=str(at), claimed=float(value)) for at, value in enumerate(values)]
        last = [point for point in place_records(Board(title="x", headline="y", rows=rows, error=8.0)) if point.best][
            -1
        ]
        beyond += last.value < compute_luck_band(19, 3600, 8, lower=True)[0]
    assert beyond / 400 == pytest.approx(0.05, abs=0.03)


def test_a_board_without_noise_or_records_is_drawn_too() -> None:
    row = BoardRow(name="x")
    for rows in ([], [row], [BoardRow(name="y", claimed=3.0, date="2026-01-02")]):
        text = draw_progress(Board(title="t", headline="h", rows=rows, error_words="the noise is not known"))
        assert text.startswith("<svg") and "no band of luck" in text and "nan" not in text


@pytest.mark.parametrize(
    ("text", "iso"),
    [
        ("2026/04/26", "2026-04-26"),
        ("2026-03-19T10:00:00Z", "2026-03-19"),
        ("05/28/24", "2024-05-28"),
        ("Jan 29 2026", "2026-01-29"),
        ("2026-13-40", None),
        ("2019", None),
    ],
)
def test_dates_are_read_as_boards_write_them(text: str, iso: str | None) -> None:
    day = parse_day(text)
    assert (day.isoformat() if day else None) == iso


def test_a_project_s_own_records_and_verdicts_are_a_board(repository: Path, tmp_path: Path) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "records").symlink_to(repository / "records")
    assert run(board_verb.main, folder, cwd=tmp_path).returncode == 1  # a link is not followed: nothing is there
    verdict = {
        "sentence": "`mine` improves by 0.02.",
        "verdict": "keep",
        "p": 0.001,
        "at": "2026-01-02T03:04:05Z",
        "runs": [1],
    }
    (folder / "mine.json").write_text(json.dumps(verdict))
    (folder / "mine.md").write_text("# mine\n")
    (folder / "other.json").write_text("{}")
    assert run(board_verb.main, folder, "--out", tmp_path / "a", cwd=tmp_path).returncode == 0
    (row,) = json.loads((tmp_path / "a/board.json").read_text())["records"]
    assert (row["record"], row["verdict"], row["p_predecessor"]) == ("mine", "keep", 0.001)
    assert row["tier"] == "claimed"  # anybody can write such a file: no log was read
    assert run(board_verb.main, repository / "records", "--out", tmp_path / "b", cwd=tmp_path).returncode == 0
    records = json.loads((tmp_path / "b/board.json").read_text())["records"]
    assert records and all(each["tier"] == "logs checked" for each in records)


def rows(folder: Path, tmp_path: Path) -> list[dict]:
    process = run(board_verb.main, folder, "--out", tmp_path / "out", cwd=tmp_path)
    assert process.returncode == 0, process.stderr
    return json.loads((tmp_path / "out/board.json").read_text())["records"]


def test_page_of_plumbline_verdict_is_row_bound_to_its_ledger(tmp_path: Path) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    values = {"base": (3.21, 3.22, 3.215), "x": (3.11, 3.12, 3.115)}
    lines = ["method,seed,loss", *[f"{name},{at},{each}" for name, of in values.items() for at, each in enumerate(of)]]
    (folder / "r.csv").write_text("\n".join(lines) + "\n")
    flags = (folder / "r.csv", "--baseline", "base", "--metric", "loss", "--lower-is-better")
    assert run(lambda: verdict_verb.main(), *flags, cwd=tmp_path).returncode == 0
    (row,) = rows(folder, tmp_path)
    assert (row["record"], row["tier"], row["verdict"]) == ("r", "claimed", "keep")
    assert row["lines"][0].startswith("`x` improves `loss` by 0.1") and 0 < row["p_predecessor"] < 1e-4
    assert row["lines"][1] == "Its ledger is the one that it was made with."
    for name in ("a", "b"):
        items = [{"doc_id": at, "filter": "none", "acc": float(at < 9 or name == "a")} for at in range(20)]
        (folder / name).mkdir()
        (folder / name / "samples_t.jsonl").write_text("".join(json.dumps(each) + "\n" for each in items))
    options = (folder / "a", "--baseline", folder / "b", "--metric", "acc", "--higher-is-better")
    assert run(lambda: verdict_verb.main(), *options, cwd=tmp_path).returncode == 0
    by_item = rows(folder, tmp_path)[0]
    assert (by_item["record"], by_item["verdict"]) == ("a", "keep") and by_item["p_predecessor"] < 1e-3
    assert by_item["lines"][1].startswith("Not known, ") and ": prompts" in by_item["lines"][1], (
        "what stands next to it"
    )
    (folder / "a.verdict.md").unlink()
    (folder / "ledger.jsonl").unlink()
    (row,) = rows(folder, tmp_path)
    assert row["does_not_hold"] == ["ledger"] and "ledger.jsonl has 0 entries" in row["lines"][1]


def pack_bundle(folder: Path, files: dict[str, bytes], **other: str) -> None:
    """A bundle by hand: what its list states about its files, some of it `other` than it is."""
    graph = [
        {"@id": name, "contentSize": str(len(text)), "sha256": other.get(name, hashlib.sha256(text).hexdigest())}
        for name, text in files.items()
    ]
    folder.mkdir(parents=True)
    with tarfile.open(folder / "bundle.tar.xz", "w:xz") as tar:
        for name, text in {"ro-crate-metadata.json": json.dumps({"@graph": graph}).encode(), **files}.items():
            entry = tarfile.TarInfo(f"bundle/{name}")
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text))
    sha256 = hashlib.sha256((folder / "bundle.tar.xz").read_bytes()).hexdigest()
    (folder / "record.json").write_text(json.dumps({"words": "x", "products": 1, "commit": "c", "sha256": sha256}))


@pytest.mark.parametrize(
    ("way", "tier", "message"),
    [
        ("whole", "logs checked", "hashes that it lists"),
        ("another hash", "claimed", "run/manifest.json has another"),
        ("another archive", "claimed", "than the recorded"),
        ("no archive", "claimed", "archive is not there"),
        ("no runs", "claimed", "no run is in"),
        ("no manifest", "claimed", "run/manifest.json is no manifest"),
        ("another run's id", "claimed", "run/manifest.json was changed"),
        ("no bundle", "claimed", "archive is no bundle"),
    ],
)
def test_logs_are_checked_and_have_hashes(tmp_path: Path, way: str, tier: str, message: str) -> None:
    folder = tmp_path / "records/a"
    name = "README.md" if way == "no runs" else "run/manifest.json"
    manifest = {"run_id": id_of_spec({"a": 1}), "spec": {"a": 2 if way == "another run's id" else 1}}
    content = b"{}" if way == "no manifest" else json.dumps(manifest).encode()
    pack_bundle(folder, {name: content}, **({name: "0" * 64} if way == "another hash" else {}))
    archive = folder / "bundle.tar.xz"
    if way == "another archive":
        archive.write_bytes(archive.read_bytes() + b"\0")
    elif way == "no archive":
        archive.unlink()
    elif way == "no bundle":
        archive.write_bytes(b"words")
        record = json.loads((folder / "record.json").read_text())
        record["sha256"] = hashlib.sha256(b"words").hexdigest()
        (folder / "record.json").write_text(json.dumps(record))
    (row,) = rows(tmp_path / "records", tmp_path)
    assert row["tier"] == tier and message in row["lines"][1]


def board_of_made_up(records: int) -> list[ExaminedRecord]:
    rng = np.random.default_rng(0)
    board = []
    for order in range(records):
        values = 3.28 - order * 1e-5 + rng.normal(0, 1e-3, 3)
        runs = tuple(
            RunEvidence(value=float(each), file=Path(f"{order}/{at}"), place=0) for at, each in enumerate(values)
        )
        headline = Printed(float(values.mean()), 8)
        board.append(ExaminedRecord(record=Record(name=str(order), order=order, headline=headline), values=runs))
    return board


def test_the_work_of_a_board_is_in_proportion_to_its_records(tmp_path: Path) -> None:
    (tmp_path / "rules.toml").write_text(gate_faults.SUBMISSION_RULES + '[predecessor]\nalpha = 0.01\nsource = "x"\n')
    rules = read_rules(str(tmp_path / "rules.toml"))

    def calls(records: int) -> int:
        board, count = board_of_made_up(records), 0

        def count_call(_frame: object, event: str, _argument: object) -> None:
            nonlocal count
            count += event == "call"

        sys.setprofile(count_call)
        try:
            place_records(make_board(judge_board(board, rules), rules, pool_noise(board)))
        finally:
            sys.setprofile(None)
        return count

    calls(10)  # what is read once
    few, many = calls(25), calls(100)
    assert many < 4.4 * few, (few, many)


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("dark", [False, True])
def test_the_page_fits_the_window_and_asks_for_nothing(pages: Path, width: int, dark: bool) -> None:
    program = headless_browser.find_browser()
    if program is None:
        pytest.skip("no Chromium")
    browser = headless_browser.Browser(program)
    try:
        browser.look(width=width, dark=dark)
        browser.open(pages / "index.html")
        assert browser.run("document.documentElement.scrollWidth") <= width
        assert browser.run("document.images.length === 1 && document.images[0].naturalWidth > 0")
        assert browser.complaints == []
        assert [url for url in browser.requests if not url.startswith((pages.as_uri(), "data:", "about:"))] == []
    finally:
        browser.close()
