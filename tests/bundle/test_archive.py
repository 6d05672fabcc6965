"""The archive: the same bytes from the same files, and distrust when it is read."""

from __future__ import annotations

import errno
import hashlib
import io
import lzma
import os
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from plumbline.bundle import archive, ro_crate
from plumbline.core.errors import PlumblineError

FILES = {
    "README.md": b"Hello.\n",
    "Snakefile": b"rule all:\n",
    "results/smoke/a b.csv": b"1,2\n",
    "work/smoke/x/metrics.parquet": bytes(3000),
}


def make_metadata() -> ro_crate.CrateMetadata:
    return ro_crate.CrateMetadata(name="Made up", description="For a test.", date="2026-01-02")


def write_changed(path: Path, files: dict[str, bytes | Path]) -> None:
    """An archive as somebody would make it whose crate fits files that do not fit one another."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(archive, "require_agreement", lambda *_: 0)
        archive.write(path, files, make_metadata())


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    path = tmp_path / "made.tar.xz"
    archive.write(path, FILES, make_metadata())
    return path


def members(path: Path) -> list[tuple[tarfile.TarInfo, bytes]]:
    with tarfile.open(path) as tar:
        return [(member, tar.extractfile(member).read()) for member in tar]  # type: ignore[union-attr]


def rewritten(path: Path, change: Callable[[list[tuple[tarfile.TarInfo, bytes]]], None]) -> Path:
    """The archive with other members, as somebody's tar would write it."""
    entries = members(path)
    change(entries)
    with tarfile.open(path, "w:xz") as tar:
        for member, content in entries:
            member.size = len(content) if member.isreg() else 0
            tar.addfile(member, io.BytesIO(content))
    return path


def test_the_same_files_give_the_same_bytes_and_come_back(tmp_path: Path, bundle: Path) -> None:
    """Whatever their order, times and modes; the crate comes first."""
    again: dict[str, bytes | Path] = {}
    for name, content in reversed(FILES.items()):
        path = tmp_path / "lies" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o600)
        os.utime(path, (1, len(again)))
        again[name] = path
    archive.write(tmp_path / "again.tar.xz", again, make_metadata())
    assert (tmp_path / "again.tar.xz").read_bytes() == bundle.read_bytes()
    assert [member.name for member, _ in members(bundle)] == [f"bundle/{name}" for name in (ro_crate.NAME, *FILES)]
    listed = archive.unpack(bundle, tmp_path / "out", {"results": "bundled"})
    assert listed.keys() == FILES.keys()
    assert (tmp_path / "out/bundled/smoke/a b.csv").read_bytes() == b"1,2\n"
    assert not (tmp_path / "out/results").exists()
    assert archive.read_file(bundle, "README.md") == b"Hello.\n"


def outside(entries: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    entries[1][0].name = "bundle/../../outside"


def absolute(entries: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    entries[1][0].name = "/tmp/outside"


def list_outside(entries: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    """The crate itself lists it, so that the two agree."""
    entries[0] = (entries[0][0], entries[0][1].replace(b'"README.md"', b'"../outside"'))
    entries[1][0].name = "bundle/../outside"


def link(entries: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    entries[1][0].type, entries[1][0].linkname = tarfile.SYMTYPE, "/etc/passwd"


def edit_content(entries: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    entries[1] = (entries[1][0], b"Jello.\n")


def add_member(entries: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    entries.append((tarfile.TarInfo("bundle/more"), b"more"))


def twice(entries: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    entries.append(entries[1])


def drop_member(entries: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    del entries[-1]


def endless(entries: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    """Longer than Python turns into a number."""
    entries[0] = (entries[0][0], entries[0][1].replace(b'"contentSize": "7"', b'"contentSize": "%s"' % (b"7" * 5000)))


def headless(entries: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    del entries[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (outside, "outside of the folder"),
        (absolute, "outside of the folder"),
        (list_outside, "outside of the folder"),
        (link, "not a plain file"),
        (edit_content, "README.md.*not the file.*ro-crate-metadata.json"),
        (add_member, "'bundle/more' is not listed"),
        (twice, "README.md.*twice"),
        (drop_member, "lacks 1 of its 4 files"),
        (endless, "README.md.*size.*sha256"),
        (headless, "begin.*bundle/ro-crate-metadata.json"),
    ],
)
def test_what_somebody_changed_is_refused_and_leaves_nothing(
    tmp_path: Path, bundle: Path, change: Callable[[list[tuple[tarfile.TarInfo, bytes]]], None], message: str
) -> None:
    folder = tmp_path / "deep" / "out"
    with pytest.raises(PlumblineError, match=message):
        archive.unpack(rewritten(bundle, change), folder, {})
    assert not folder.exists() and not list(tmp_path.rglob("outside"))


@pytest.mark.parametrize(
    "damage",
    [
        lambda whole: whole[: len(whole) // 2],
        lambda whole: whole[:-8],
        lambda whole: whole[:400] + bytes([whole[400] ^ 1]) + whole[401:],
        lambda whole: b"",
        lambda whole: b"PK\3\4 is another kind of archive",
        lambda whole: lzma.compress(b"no tar"),
        lambda whole: whole + b"junk",
        lambda whole: whole + lzma.compress(b"another"),
        lambda whole: lzma.compress(lzma.decompress(whole) + b"junk"),
        lambda whole: lzma.compress(lzma.decompress(whole)[:-4] + b"junk"),
    ],
    ids=[
        "half",
        "its end lost",
        "one bit",
        "empty",
        "zip",
        "no tar",
        "junk",
        "another",
        "junk within",
        "junk in its end",
    ],
)
def test_what_is_damaged_or_foreign_is_refused(tmp_path: Path, bundle: Path, damage: Callable[[bytes], bytes]) -> None:
    bundle.write_bytes(damage(bundle.read_bytes()))
    with pytest.raises(PlumblineError, match=r"cannot be read .*copy it again|does not begin with"):
        archive.unpack(bundle, tmp_path / "out", {})
    assert not (tmp_path / "out").exists()


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path, bundle: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes").write_text("mine")
    with pytest.raises(PlumblineError, match="there is something already"):
        archive.unpack(bundle, tmp_path / "mine", {})
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes"]


def test_a_file_that_changes_meanwhile_is_no_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "metrics"
    path.write_bytes(b"before")
    monkeypatch.setattr(archive, "sha256_file", lambda path: "0" * 64)
    with pytest.raises(PlumblineError, match=r"changed.*packed"):
        archive.write(tmp_path / "made.tar.xz", {"metrics": path}, make_metadata())
    assert not (tmp_path / "made.tar.xz").exists()


@pytest.mark.parametrize("name", ["config/a\\b.md", "config/\udcff.md", "../a.md", "a//b.md"])
def test_a_name_that_is_not_unpacked_is_not_packed(name: str, tmp_path: Path) -> None:
    with pytest.raises(PlumblineError, match=r"is no name that can be unpacked.*rename the file"):
        archive.write(tmp_path / "made.tar.xz", {name: b"1"}, make_metadata())
    assert not (tmp_path / "made.tar.xz").exists()


def bomb(path: Path, name: str = "results/big.csv", size: int = 40 << 20) -> Path:
    """A file of zeros, a seven-thousandth of its size."""
    entries = [ro_crate.ArchivedFile(name, size, hashlib.sha256(bytes(size)).hexdigest())]
    metadata = ro_crate.to_json(ro_crate.build_crate(entries, make_metadata())).encode()
    with tarfile.open(path, "w:xz", preset=0) as tar:
        for inside, content in ((ro_crate.NAME, metadata), (name, bytes(size))):
            member = tarfile.TarInfo(f"{archive.TOP}/{inside}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path


def test_what_would_fill_a_disk_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle, out, sparse = bomb(tmp_path / "made.tar.xz"), tmp_path / "out", tmp_path / "sparse"
    with sparse.open("wb") as file:
        file.truncate(40 << 20)
    free = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: free._replace(free=1 << 20))
    with pytest.raises(PlumblineError, match=r"--into.*the 1.*take 41,943,040.*and 1,048,576"):
        archive.unpack(bundle, out, {})
    monkeypatch.undo()
    monkeypatch.setattr(archive, "FREELY", 1 << 20)
    message = r"bytes would become 41,943,040 \(results/big.csv 41,943,040\), .* no bundle"
    for attack in (
        lambda: archive.unpack(bundle, out, {}),
        lambda: archive.read_file(bundle, "results/big.csv"),
        lambda: archive.write(tmp_path / "again.tar.xz", {"results/big.csv": sparse}, make_metadata()),
    ):
        with pytest.raises(PlumblineError, match=message):
            attack()
    assert not out.exists() and not (tmp_path / "again.tar.xz").exists()


def test_no_file_that_is_read_whole_may_be_large(tmp_path: Path) -> None:
    bundle = bomb(tmp_path / "made.tar.xz", "plumbline.json")
    with pytest.raises(PlumblineError, match=r"plumbline\.json has 41,943,040 bytes"):
        archive.read_file(bundle, "plumbline.json")
    for kind in (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME):  # which tarfile reads into memory
        header = tarfile.TarInfo("x")
        header.type, header.size = kind, 4 << 30
        bundle.write_bytes(lzma.compress(header.tobuf() + bytes(1 << 20)))
        with pytest.raises(PlumblineError, match=r"read \(a header of 4,294,967,296 bytes\)"):
            archive.unpack(bundle, tmp_path / "out", {})


def test_a_sparse_file_is_no_plain_one(tmp_path: Path, bundle: Path) -> None:
    """Of which tar itself would make as many zeros as it states."""
    entries = members(bundle)
    metadata, readme = entries[0][1], b"results"
    header = tarfile.TarInfo("bundle/README.md")
    header.type, header.size = tarfile.GNUTYPE_SPARSE, len(readme)
    block = bytearray(header.tobuf(format=tarfile.GNU_FORMAT))
    block[386:410], block[483:495] = b"00000000000\0%011o\0" % len(readme), b"%011o\0" % len(readme)
    block[148:156] = b"%06o\0 " % (sum(block[:148]) + 8 * 32 + sum(block[156:512]))
    with io.BytesIO() as raw:
        with tarfile.open(fileobj=raw, mode="w") as tar:
            first = entries[0][0]
            first.size = len(metadata)
            tar.addfile(first, io.BytesIO(metadata))
            raw.write(bytes(block) + readme.ljust(512, b"\0"))
        bundle.write_bytes(lzma.compress(raw.getvalue()))
    with pytest.raises(PlumblineError, match=r"'bundle/README\.md'.*plain"):
        archive.unpack(bundle, tmp_path / "out", {})


def test_a_full_disk_is_named_with_the_file(tmp_path: Path, bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shutil, "copyfileobj", full)
    with pytest.raises(OSError, match="No space left") as error:
        archive.unpack(bundle, tmp_path / "out", {})
    assert error.value.filename == f"{tmp_path}/out/README.md" and not (tmp_path / "out").exists()
