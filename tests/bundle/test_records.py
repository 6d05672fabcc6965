"""Records: a bundle that names its commit, and those that are kept here."""

from __future__ import annotations

import errno
import json
import math
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from plumbline.bundle import archive, description, rebuild, records, ro_crate, verify
from plumbline.core.errors import PlumblineError
from plumbline.core.files import sha256_file
from tests.bundle.test_archive import make_metadata

SAID: dict[str, Any] = {
    "format": description.FORMAT,
    "configuration": {"preset": "smoke", "studies": ["transfer"], "work": "work"},
    "called": "work/smoke",
    "results": "results/smoke",
    "commit": "ab" * 20,
    "committed": "2026-01-02",
    "edited": False,
    "finished": None,
    "openblas": None,
    "versions": {},
    "products": [],
}


def bundle(path: Path, **changes: Any) -> Path:
    content = msgspec.json.encode(msgspec.convert(SAID | changes, description.BundleDescription))
    archive.write(path, {description.NAME: content}, make_metadata())
    return path


def test_a_bundle_of_a_commit_is_kept_once(tmp_path: Path) -> None:
    file, folder = bundle(tmp_path / "made.tar.xz"), tmp_path / "records/first"
    records.keep_bundle(folder, file, "A first one.")
    record = records.read_record(folder)
    assert (record.commit, record.words, record.sha256) == ("ab" * 20, "A first one.", sha256_file(file))
    assert record.format == description.FORMAT
    assert records.list_records(tmp_path / "records") == ["first"]
    with pytest.raises(PlumblineError, match="is not overwritten"):
        records.keep_bundle(folder, file, "Again.")
    (folder / "bundle.tar.xz").write_bytes(bundle(file, called="elsewhere").read_bytes())
    with pytest.raises(PlumblineError, match=r"archive.*record\.json"):
        records.read_record(folder)
    facts = json.loads((folder / records.SAYS).read_text())
    facts |= {"sha256": sha256_file(file), "commit": "cd" * 20}
    (folder / records.SAYS).write_text(json.dumps(facts))
    with pytest.raises(PlumblineError, match="another commit"):
        records.read_record(folder)


@pytest.mark.parametrize("change", [{"preset": "paper"}, {"studies": ["quack"]}, {"bytes": 1}, {"products": 2}])
def test_a_record_that_describes_another_bundle_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    path = records.keep_bundle(tmp_path / "records/first", bundle(tmp_path / "made.tar.xz"), "A first one.")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"words": "In other words."}))
    assert records.read_record(path.parent).words == "In other words."
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(PlumblineError, match=f"another {next(iter(change))} than its archive"):
        records.read_record(path.parent)
    told = {Path(row.path).name: row for row in verify.verify([path.parent])}
    assert told[records.SAYS].status == "changed" and f"another {next(iter(change))}" in told[records.SAYS].why


def test_a_full_disk_of_records_is_named_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, folder = bundle(tmp_path / "made.tar.xz"), tmp_path / "records/first"

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copyfileobj", fail)
        with pytest.raises(OSError, match="No space left") as error:
            records.keep_bundle(folder, file, "A first one.")
    assert error.value.filename == str(folder) and not list(folder.parent.iterdir())
    assert records.keep_bundle(folder, file, "A first one.") == folder / records.SAYS
    assert [path.name for path in folder.parent.iterdir()] == ["first"]


def test_record_that_cannot_be_checked_does_not_stop_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("damaged", "later", "whole"):
        records.keep_bundle(tmp_path / name, bundle(tmp_path / "made.tar.xz"), "One of three.")
    (tmp_path / "damaged" / records.SAYS).write_text("{")
    archived = {description.NAME: json.dumps(SAID | {"format": "9" * 100_000}).encode()}
    archive.write(tmp_path / "later/bundle.tar.xz", archived, make_metadata())
    info = json.loads((tmp_path / "later" / records.SAYS).read_text())
    info["sha256"] = sha256_file(tmp_path / "later/bundle.tar.xz")
    (tmp_path / "later" / records.SAYS).write_text(json.dumps(info))
    checked: list[str] = []

    def rebuilt(file: Path, folder: Path, **options: Any) -> rebuild.RebuildResult:
        checked.append(file.parent.name)
        info = msgspec.convert(SAID, description.BundleDescription)
        return rebuild.RebuildResult(summary=info, verdicts={}, failed={}, otherwise=())

    monkeypatch.setattr(rebuild, "rebuild_bundle", rebuilt)
    folders = [str(tmp_path / name) for name in ("damaged", "later", "whole")]
    monkeypatch.setattr(sys, "argv", ["verify", "--rebuild", *folders])
    assert verify.main() == 1 and checked == ["whole"]
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("error: damaged: ") and "the record is about" in first
    monkeypatch.setattr(sys, "argv", ["verify", "--rebuild", folders[2]])
    assert verify.main() == 16, "nothing was compared"
    assert second.startswith("error: later: ") and "bundle of format '9" in second and len(second) < 1000


@pytest.mark.parametrize("changes", [{"commit": None, "edited": None}, {"edited": True}])
def test_what_no_commit_has_is_not_kept(tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(PlumblineError, match="uncommitted sources"):
        records.keep_bundle(tmp_path / "records/first", bundle(tmp_path / "made.tar.xz", **changes), "A first one.")


def test_the_records_that_are_here_are_whole(repository: Path) -> None:
    """Every file is the one that its crate lists; that products are equal is for `plumbline verify --rebuild`."""
    page = (repository / "records/README.md").read_text()
    for name in records.list_records(repository / "records"):
        folder = repository / "records" / name
        record = records.read_record(folder)
        assert record.bytes == (folder / "bundle.tar.xz").stat().st_size < 5_000_000
        assert f"| [{name}]({name}/record.json) |" in page and record.commit[:7] in page
        with pytest.raises(PlumblineError, match="has no nothing"):  # having read all of it
            archive.read_file(folder / "bundle.tar.xz", "nothing")
        assert ro_crate.NAME and record.studies


#: What is computed by linear algebra while it is made, whose last digits are the processor's, and the files with these
#: digits or with a hash of such a file: numbers agree within this share (8e-14 at most was seen in float64, 1.4e-8 in
#: float32), or, where what is told is itself a rounding error (3.405e-12, and 3.406e-12), within `RESIDUAL`.
FLOAT64, FLOAT32, RESIDUAL = 1e-11, 1e-7, 1e-11
COMPUTED = {
    "results/evening/transfer/noise_floor.csv": FLOAT64,
    "results/evening/transfer/noise_floor.provenance.json": FLOAT64,
    "results/demo/premature/theory.csv": FLOAT64,
    "results/demo/premature/theory.provenance.json": FLOAT64,
    "results/demo/quack/lemma1.csv": FLOAT64,
    "results/demo/quack/lemma1.provenance.json": FLOAT64,
    "results/demo/quack/claims.csv": FLOAT64,
    "results/demo/quack/claims.md": FLOAT64,
    "results/demo/quack/fig2.svg": FLOAT64,
    "results/demo/query_free/claims.csv": FLOAT64,
    "results/demo/query_free/claims.md": FLOAT64,
    "results/demo/query_free/initial_scores.csv": FLOAT32,
    "results/demo/query_free/initial_scores.provenance.json": FLOAT64,
    "results/demo/query_free/table1.csv": FLOAT64,
    "results/demo/query_free/table1.md": FLOAT64,
    "results/demo/query_free/table1.provenance.json": FLOAT64,
    "results/demo/query_free/table1.tex": FLOAT64,
}
#: What hangs on last digits without being a number: the hash of a table, the name of a clip path (of its corners),
#: and in Markdown how wide a column is.
FOLLOWS = (
    (re.compile(r'("csv_sha256": )"[0-9a-f]{64}"'), r'\1""'),
    (re.compile(r"(?<=[\"#])p[0-9a-f]{10}(?=[\")])"), "p"),
    (re.compile(r" +(?=\|)|(?<=\|:)-+|(?<=\|)-+"), ""),
)
NUMBER = re.compile(r"(?<![\w.])[-+]?\d+\.?\d*(?:e[-+]?\d+)?(?![\w.])")


def _same_but_for_rounding(own: str, brought: str, share: float = FLOAT64) -> bool:
    """Whether two texts have the same words, and numbers that rounding alone explains."""
    if NUMBER.split(own) != NUMBER.split(brought):
        return False
    pairs = zip(NUMBER.findall(own), NUMBER.findall(brought), strict=True)
    return all(
        first == two or (re.search(r"[.e]", first + two) is not None and _close(float(first), float(two), share))
        for first, two in pairs
    )


def _close(first: float, two: float, share: float) -> bool:
    return math.isclose(first, two, rel_tol=share, abs_tol=RESIDUAL)


def _not_equal(verdicts: dict[str, str], folder: Path) -> list[str]:
    """The files of a rebuild that differ, except for what rounding explains in those of `COMPUTED`."""
    other = [name for name, verdict in verdicts.items() if verdict != rebuild.EQUAL]
    return [name for name in other if not (name in COMPUTED and _equals_but_for_rounding(folder, name))]


def _equals_but_for_rounding(folder: Path, name: str) -> bool:
    """Whether a file that was made again has the words and, except for rounding, the numbers of the one brought."""
    if not (folder / name).is_file():
        return False
    paths = (folder / name, folder / rebuild.BROUGHT / name.removeprefix("results/"))
    own, brought = (path.read_text(encoding="utf-8") for path in paths)
    for pattern, instead in FOLLOWS:
        own, brought = pattern.sub(instead, own), pattern.sub(instead, brought)
    return _same_but_for_rounding(own, brought, COMPUTED[name])


def test_rounding_is_told_from_another_number() -> None:
    row = "drawn,0.013215989264924895,840.361837928718,yes,3.405e-12,64,s42"
    assert _same_but_for_rounding(row.replace("4895", "4875").replace("3.405", "3.406"), row)
    for first, two in (("yes", "no"), ("0.0132159892", "0.0132159893"), ("840.36183", "840.36184"), (",64,", ",65,")):
        assert not _same_but_for_rounding(row.replace(first, two), row), (first, two)
    assert not _same_but_for_rounding(row.replace("3.405e-12", "3.405e-10"), row)
    assert not _same_but_for_rounding(row.replace("s42", "s43"), row)


@pytest.mark.slow
def test_a_page_of_each_kind_of_each_record_comes_out_equal(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the code of its commit, with the packages that are here, byte by byte, except for rounding in `COMPUTED`; with
    PLUMBLINE_RECORDS=all every page, as `plumbline verify --rebuild` does."""
    parse = description.parse_description
    if os.environ.get("PLUMBLINE_RECORDS") != "all":
        monkeypatch.setattr(
            description, "parse_description", lambda content, place: _first_of_each_kind(parse(content, place))
        )
    for name in records.list_records(repository / "records"):
        bundle = repository / "records" / name / "bundle.tar.xz"
        info = description.parse_description(archive.read_file(bundle, description.NAME), name)
        if description.run_git(repository, "cat-file", "-e", f"{info.commit}^{{commit}}") is None:
            pytest.skip(f"{info.commit}, the commit of {name}, is not in this clone's history")
        rebuilt = rebuild.rebuild_bundle(bundle, tmp_path / name, jobs=2, at_commit=True, any_versions=True)
        prefixes = tuple(f"{info.results}/{page.path}." for page in info.products)
        verdicts = {path: verdict for path, verdict in rebuilt.verdicts.items() if path.startswith(prefixes)}
        unequal = _not_equal(verdicts, tmp_path / name)
        if rebuilt.otherwise and unequal:
            pytest.skip(f"{name} was made elsewhere: {'; '.join(rebuilt.otherwise)}")
        assert not unequal, rebuild.format_result(rebuilt)
        assert 4 <= len(info.products) <= len(verdicts)
        assert rebuild.MISSING not in verdicts.values() and not rebuilt.failed


def _first_of_each_kind(info: description.BundleDescription) -> description.BundleDescription:
    pages = {page.kind: page for page in reversed(info.products)}
    return msgspec.structs.replace(info, products=list(pages.values()))
