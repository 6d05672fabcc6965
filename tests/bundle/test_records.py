"""Records: a bundle that names its commit, and those that are kept here."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from plumbline.bundle import archive, description, rebuild, records, ro_crate
from plumbline.core.errors import PlumblineError
from plumbline.core.files import sha256_file
from tests.bundle.test_archive import described

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
    said = msgspec.json.encode(msgspec.convert(SAID | changes, description.BundleDescription))
    archive.write(path, {description.NAME: said}, described())
    return path


def test_a_bundle_of_a_commit_is_kept_once(tmp_path: Path) -> None:
    made, folder = bundle(tmp_path / "made.tar.xz"), tmp_path / "records/first"
    records.keep(folder, made, "A first one.")
    kept = records.read(folder)
    assert (kept.commit, kept.words, kept.sha256) == ("ab" * 20, "A first one.", sha256_file(made))
    assert kept.format == description.FORMAT
    assert records.names(tmp_path / "records") == ["first"]
    with pytest.raises(PlumblineError, match="is not overwritten"):
        records.keep(folder, made, "Again.")
    (folder / "bundle.tar.xz").write_bytes(bundle(made, called="elsewhere").read_bytes())
    with pytest.raises(PlumblineError, match=r"is not the archive that record\.json names"):
        records.read(folder)
    said = json.loads((folder / records.SAYS).read_text())
    said |= {"sha256": sha256_file(made), "commit": "cd" * 20}
    (folder / records.SAYS).write_text(json.dumps(said))
    with pytest.raises(PlumblineError, match="gives another format, commit or number"):
        records.read(folder)


def test_a_record_that_cannot_be_checked_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("damaged", "later", "whole"):
        records.keep(tmp_path / name, bundle(tmp_path / "made.tar.xz"), "One of three.")
    (tmp_path / "damaged" / records.SAYS).write_text("{")
    archived = {description.NAME: json.dumps(SAID | {"format": "9" * 100_000}).encode()}
    archive.write(tmp_path / "later/bundle.tar.xz", archived, described())
    said = json.loads((tmp_path / "later" / records.SAYS).read_text())
    said["sha256"] = sha256_file(tmp_path / "later/bundle.tar.xz")
    (tmp_path / "later" / records.SAYS).write_text(json.dumps(said))
    checked: list[str] = []

    def rebuilt(kept: Path, folder: Path, **how: Any) -> rebuild.RebuildResult:
        checked.append(kept.parent.name)
        said = msgspec.convert(SAID, description.BundleDescription)
        return rebuild.RebuildResult(said=said, verdicts={}, failed={}, otherwise=())

    monkeypatch.setattr(rebuild, "rebuild", rebuilt)
    monkeypatch.setattr(sys, "argv", ["records", "check", "--records", str(tmp_path)])
    assert records.main() == 1 and checked == ["whole"]
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("error: damaged: ") and "does not say what the record is about" in first
    assert second.startswith("error: later: ") and "is a bundle of format '9" in second and len(second) < 1000


def test_a_record_of_no_format_can_be_kept_again(tmp_path: Path) -> None:
    records.keep(tmp_path / "first", bundle(tmp_path / "made.tar.xz"), "A first one.")
    said = json.loads((tmp_path / "first" / records.SAYS).read_text())
    del said["format"]
    (tmp_path / "first" / records.SAYS).write_text(json.dumps(said))
    remedy = (
        r"does not say which `format` .* -m plumbline[.]bundle[.]records keep first MOVED/bundle\.tar\.xz --why-kept"
    )
    with pytest.raises(PlumblineError, match=remedy):
        records.read(tmp_path / "first")


@pytest.mark.parametrize("changes", [{"commit": None, "edited": None}, {"edited": True}])
def test_what_no_commit_has_is_not_kept(tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(PlumblineError, match="uncommitted sources"):
        records.keep(tmp_path / "records/first", bundle(tmp_path / "made.tar.xz", **changes), "A first one.")


def test_the_records_that_are_here_are_whole(repository: Path) -> None:
    """Every file is the one that its crate lists; that products come out equal is for `records check`."""
    page = (repository / "records/README.md").read_text()
    for name in records.names(repository / "records"):
        folder = repository / "records" / name
        kept = records.read(folder)
        assert kept.bytes == (folder / "bundle.tar.xz").stat().st_size < 5_000_000
        assert f"| [{name}]({name}/record.json) |" in page and kept.commit[:7] in page
        with pytest.raises(PlumblineError, match="has no nothing"):  # having read all of it
            archive.read_one(folder / "bundle.tar.xz", "nothing")
        assert ro_crate.NAME and kept.studies


#: What is computed by linear algebra while it is made, whose last digit is the processor's (records/README.md): the
#: residuals of quack's lemma, and the claim that quotes them.
COMPUTED = {"quack/lemma1", "quack/claims"}


def _not_equal(found: rebuild.RebuildResult) -> list[str]:
    return [name for name, verdict in found.verdicts.items() if verdict != rebuild.EQUAL]


@pytest.mark.slow
def test_every_page_of_each_record_comes_out_equal(repository: Path, tmp_path: Path) -> None:
    """All of its products by the code of its commit, with the packages that are here, but for `COMPUTED`."""
    for name in records.names(repository / "records"):
        kept = records.read(repository / "records" / name)
        if description.git(repository, "cat-file", "-e", f"{kept.commit}^{{commit}}") is None:
            pytest.skip(f"{kept.commit}, the commit of {name}, is not in this clone's history")
        bundle = repository / "records" / name / "bundle.tar.xz"
        found = rebuild.rebuild(bundle, tmp_path / name, jobs=2, at_commit=True, any_versions=True)
        if found.otherwise and not found.whole:
            pytest.skip(f"{name} was made with other packages: {'; '.join(found.otherwise)}")
        other = {Path(name).parent.name + "/" + Path(name).name.partition(".")[0] for name in _not_equal(found)}
        assert other <= COMPUTED, rebuild.told(found)
        said = description.parse(archive.read_one(bundle, description.NAME), name)
        assert len(said.products) == kept.products <= len(found.verdicts)
        assert rebuild.MISSING not in found.verdicts.values() and not found.failed


def test_a_product_of_each_record_is_made_again(repository: Path, tmp_path: Path) -> None:
    """By the package of its commit, which today's verb calls: a page that needs no run stands for all products."""
    for name in records.names(repository / "records"):
        kept = repository / "records" / name / "bundle.tar.xz"
        said = description.parse(archive.read_one(kept, description.NAME), name)
        if description.git(repository, "cat-file", "-e", f"{said.commit}^{{commit}}") is None:
            pytest.skip(f"{said.commit}, the commit of {name}, is not in this clone's history")
        page = next(each for each in said.products if each.kind == "interpretations")
        folder, small = tmp_path / name, tmp_path / f"{name}.tar.xz"
        archive.unpack(kept, folder, {})
        files: dict[str, bytes | Path] = {
            path.relative_to(folder).as_posix(): path
            for place in (
                folder / "config",
                folder / "studies",
                folder / "workflow",
                *folder.glob(f"{said.results}/{page.path}.*"),
            )
            for path in (place, *place.rglob("*"))
            if path.is_file()
        }
        files[description.NAME] = msgspec.json.encode(msgspec.structs.replace(said, products=[page]))
        archive.write(small, files, described())
        found = rebuild.rebuild(small, tmp_path / f"{name}-again", at_commit=True, any_versions=True)
        assert found.verdicts and not found.failed and rebuild.MISSING not in found.verdicts.values()
