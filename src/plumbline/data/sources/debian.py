"""Reads the source `packaged_large`: the packaged corpus and the texts of five Debian packages (read, not installed).

SWORD commentaries: zCom modules, that is an index of zlib blocks (.?zs: offset, size, unpacked size), a verse table
(.?zv: block, start, length) and the blocks (.?zz), holding OSIS or ThML markup.
janeaustenr: an R lazy-load database of zlib streams, each a serialised character vector (one string a line of a novel).
foldoc: a dictd dictionary; an entry starts at a line that is not indented. anarchism: HTML pages.
"""

from __future__ import annotations

import contextlib
import gzip
import re
import struct
import subprocess
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from plumbline.core.errors import PlumblineError
from plumbline.data.document import Document
from plumbline.data.text_cleaning import html_text, prose, tidy, unwrap, without_tags


@contextlib.contextmanager
def unpack(archive: Path) -> Iterator[Path]:
    """Unpack a .deb into a temporary folder, which is removed when the block ends.

    Raises:
        PlumblineError: dpkg-deb is not installed, or cannot read the archive.
    """
    with tempfile.TemporaryDirectory() as folder:
        try:
            subprocess.run(["dpkg-deb", "-x", archive, folder], check=True, capture_output=True, text=True)
        except FileNotFoundError as error:
            raise PlumblineError(f"{archive}: reading a Debian package needs dpkg-deb (package dpkg)") from error
        except subprocess.CalledProcessError as error:
            raise PlumblineError(f"{archive}: {error.stderr.strip()}; delete it and fetch it again") from error
        yield Path(folder)


def documents(name: str, archive: Path) -> Iterator[Document]:
    """Read the documents of one of the five packages, named by `name`. A text that stands twice is kept once.

    Raises:
        PlumblineError: the archive cannot be read or holds no text.
    """
    texts: set[str] = set()
    with unpack(archive) as root:
        for label, group, text in _READERS[name](root):
            if text not in texts:
                texts.add(text)
                yield Document(id=f"{name}/{label}", source=name, text=text, group=f"{name}/{group}")
    if not texts:
        raise PlumblineError(f"{archive}: no text found in it; fetch the pinned version of {name} again")


def _anarchism(root: Path) -> Iterator[tuple[str, str, str]]:
    for page in sorted(root.glob("usr/share/doc/anarchism/html/*.html")):
        text = prose(html_text(page.read_text("utf-8", "replace")))
        if len(text) > 500:
            yield page.stem, page.stem, text


def _make_sword_reader(pattern: str, letter: str, verse: str) -> Callable[[Path], Iterator[tuple[str, str, str]]]:
    """A reader of a zCom module; one document a block (a book or chapter), its verses in order."""

    def read(root: Path) -> Iterator[tuple[str, str, str]]:
        for index in sorted(root.glob(pattern)):
            packed = index.with_suffix(f".{letter}zz").read_bytes()
            table = index.with_suffix(f".{letter}zv").read_bytes()
            extents = struct.iter_unpack("<III", index.read_bytes())
            blocks = [zlib.decompress(packed[offset : offset + size]) for offset, size, _ in extents]
            entry = struct.calcsize(verse)
            verses: set[tuple[int, int]] = set()
            for block, start, length in struct.iter_unpack(verse, table[: len(table) // entry * entry]):
                if length and block < len(blocks) and (block, start) not in verses:
                    verses.add((block, start))
                    text = prose(_strip_markup(blocks[block][start : start + length].decode("utf-8", "replace")))
                    if len(text) > 200:
                        yield f"{index.stem}-{block}-{start}", f"{index.stem}-{block}", text

    return read


def _strip_markup(text: str) -> str:
    """OSIS or ThML to paragraphs: footnotes go, blocks and line breaks become empty lines."""
    text = re.sub(r"<note\b.*?</note>", "", text, flags=re.DOTALL)
    text = re.sub(r"</?(?:p|lb|lg|l|title|div|br|item|list)\b[^>]*>", "\n\n", text)
    return tidy(without_tags(text))


def _austen(root: Path) -> Iterator[tuple[str, str, str]]:
    """One document a chapter. Group: the chapter (six novels are too few to hold out one)."""
    database = (root / "usr/lib/R/site-library/janeaustenr/data/Rdata.rdb").read_bytes()
    end = 0
    for match in re.finditer(rb"(?=x[\x9c\xda\x01\x5e])", database):
        if match.start() < end:
            continue
        stream = zlib.decompressobj()
        try:
            content = stream.decompress(database[match.start() :])
        except zlib.error:
            continue
        end = len(database) - len(stream.unused_data)
        lines = _find_character_vector(content)
        if lines:
            title = lines[0].strip().lower().replace(" ", "-")
            chapters = re.split(r"\n(?=(?:CHAPTER|Chapter|VOLUME|Volume) [0-9IVXL]+)", "\n".join(lines))
            for number, chapter in enumerate(chapters):
                text = unwrap(chapter)
                if len(text) > 1000:
                    yield f"{title}-{number}", f"{title}-{number}", text


def _find_character_vector(content: bytes) -> list[str]:
    """The first long vector of strings in an XDR serialisation of R: STRSXP (16), then CHARSXP (9) each."""
    start = content.find(b"\x00\x00\x00\x10")
    while start != -1:
        position, strings = start + 8, []
        with contextlib.suppress(struct.error, UnicodeDecodeError, ValueError):
            (count,) = struct.unpack(">i", content[start + 4 : start + 8])
            for _ in range(count):
                flags, length = struct.unpack(">ii", content[position : position + 8])
                if flags & 0xFF != 9:
                    raise ValueError("not a string: this was not a vector of them")
                position += 8
                strings.append(content[position : position + max(0, length)].decode())
                position += max(0, length)
            if count > 100:
                return strings
        start = content.find(b"\x00\x00\x00\x10", start + 1)
    return []


def _foldoc(root: Path) -> Iterator[tuple[str, str, str]]:
    dictionary = gzip.decompress((root / "usr/share/dictd/foldoc.dict.dz").read_bytes()).decode("utf-8", "replace")
    for number, entry in enumerate(re.split(r"\n(?=\S)", dictionary)):
        head, _, body = entry.partition("\n")
        plain = re.sub(r"[{}]", "", re.sub(r"<[^<>]*>\s*", "", body))
        text = prose(unwrap(plain), least_characters=60)
        if len(text) > 150 and not head.startswith("00-"):
            yield f"{number:05d}", f"{number:05d}", text


_READERS: dict[str, Callable[[Path], Iterator[tuple[str, str, str]]]] = {
    "sword-comm-tdavid": _make_sword_reader("usr/share/sword/modules/comments/zcom/tdavid/ot.czs", "c", "<III"),
    "sword-comm-mhcc": _make_sword_reader("usr/share/sword/modules/comments/zcom/mhcc/*.bzs", "b", "<IIH"),
    "anarchism": _anarchism,
    "r-cran-janeaustenr": _austen,
    "dict-foldoc": _foldoc,
}
