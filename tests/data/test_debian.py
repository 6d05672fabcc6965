"""The layouts inside the Debian packages, each on a made-up one."""

from __future__ import annotations

import contextlib
import gzip
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from plumbline.core.errors import PlumblineError
from plumbline.data.sources import debian

SENTENCE = "This is a sentence of some words that reads like prose. "


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a package unpacks to; no package is needed."""

    @contextlib.contextmanager
    def unpack(archive: Path) -> Iterator[Path]:
        yield tmp_path

    monkeypatch.setattr(debian, "unpack", unpack)
    return tmp_path


def put(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("name", "index", "letter", "verse"),
    [
        ("sword-comm-tdavid", "usr/share/sword/modules/comments/zcom/tdavid/ot.czs", "c", "<III"),
        ("sword-comm-mhcc", "usr/share/sword/modules/comments/zcom/mhcc/nt.bzs", "b", "<IIH"),
    ],
)
def test_sword(root: Path, name: str, index: str, letter: str, verse: str) -> None:
    verses = [f"<p>Verse {word}. {SENTENCE * 5}<note>not this</note></p>".encode() for word in ("one", "two", "three")]
    blocks = [zlib.compress(verses[0] + verses[1]), zlib.compress(verses[2])]
    table = [
        (0, 0, len(verses[0])),
        (0, 0, len(verses[0])),
        (0, len(verses[0]), len(verses[1])),
        (1, 0, len(verses[2])),
    ]
    put(root / index, b"".join(struct.pack("<III", len(blocks[0]) * n, len(blocks[n]), 0) for n in (0, 1)))
    put((root / index).with_suffix(f".{letter}zz"), b"".join(blocks))
    put((root / index).with_suffix(f".{letter}zv"), b"".join(struct.pack(verse, *row) for row in table))
    documents = list(debian.documents(name, Path("x.deb")))
    assert [document.text.split(".")[0] for document in documents] == ["Verse one", "Verse two", "Verse three"]
    assert len({document.id for document in documents}) == 3
    assert documents[0].group == documents[1].group != documents[2].group
    assert not any("note" in document.text or "not this" in document.text for document in documents)


def test_anarchism(root: Path) -> None:
    page = f"<html><head><title>no</title></head><body><p>{SENTENCE * 12}</p><pre>no</pre></body></html>"
    put(root / "usr/share/doc/anarchism/html/secA1.html", page.encode())
    (document,) = debian.documents("anarchism", Path("x.deb"))
    assert (document.id, document.text) == ("anarchism/secA1", (SENTENCE * 12).strip())


def test_austen(root: Path) -> None:
    lines = ["A TITLE", "", *[f"CHAPTER {n}" if n % 60 == 0 else SENTENCE.strip() for n in range(120)]]
    strings = b"".join(struct.pack(">ii", 9, len(line)) + line.encode() for line in lines)
    vector = b"head" + struct.pack(">ii", 16, len(lines)) + strings
    put(root / "usr/lib/R/site-library/janeaustenr/data/Rdata.rdb", b"size" + zlib.compress(vector) + b"size")
    documents = list(debian.documents("r-cran-janeaustenr", Path("x.deb")))
    assert [document.id for document in documents] == [f"r-cran-janeaustenr/a-title-{chapter}" for chapter in (1, 2)]
    assert [document.text.split(" This")[0] for document in documents] == ["CHAPTER 0", "CHAPTER 60"]


def test_foldoc(root: Path) -> None:
    entries = f"00-database\n   {SENTENCE * 4}\nword\n   <jargon> {SENTENCE * 2}\n   {{other}} {SENTENCE * 2}\n"
    entries += "short\n   No.\n"
    put(root / "usr/share/dictd/foldoc.dict.dz", gzip.compress(entries.encode()))
    (document,) = debian.documents("dict-foldoc", Path("x.deb"))
    assert document.text.startswith("This is a sentence") and "other This" in document.text


def test_nothing_found_and_a_damaged_package(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PlumblineError, match=r"x\.deb: no text found"):
        list(debian.documents("anarchism", Path("x.deb")))
    monkeypatch.undo()
    put(tmp_path / "bad.deb", b"half")
    with pytest.raises(PlumblineError, match=r"bad\.deb: "):
        list(debian.documents("anarchism", tmp_path / "bad.deb"))
