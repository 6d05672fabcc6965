"""Reads the source `local`, a user's own folder: JSONL files with a text a line, a text file per document, or tokens.

Token files are found here and read by `plumbline.data.sources.tokens`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from plumbline.core.errors import PlumblineError
from plumbline.data import jsonl, token_files
from plumbline.data.document import START, Document, Row, StreamPosition, name_key

#: What is read of a folder; everything else in it is left alone.
SUFFIXES = (".jsonl", ".txt", *token_files.SUFFIXES)


def list_readable(folder: Path) -> list[Path]:
    """The files of a folder that this source can read, at any depth, by name; empty if there is no such folder."""
    return sorted(path for suffix in SUFFIXES for path in folder.rglob(f"*{suffix}") if path.is_file())


def files(folder: Path, corpus: str) -> list[Path]:
    """The files of a folder that a corpus is read from, all of one kind; `corpus` is named in messages.

    Raises:
        PlumblineError: there is no such folder, no such file in it, or files of two kinds: a README.txt next to JSONL
            is hardly a document, and leaving texts out silently would be worse.
    """
    where = name_key(corpus, "local.folder")
    if not folder.is_dir():
        raise PlumblineError(f"{where}: there is no folder {folder}")
    paths = list_readable(folder)
    if not paths:
        raise PlumblineError(
            f'{where}: no *.jsonl file (a line {{"text": ...}} for each document), no *.txt file (a document each) and '
            f"no token file (*.bin, *.npy) in {folder}"
        )
    of_a_kind = {path.suffix: path for path in paths}
    if len(of_a_kind) > 1:
        first, second = sorted(of_a_kind, key=SUFFIXES.index)[:2]
        raise PlumblineError(
            f"{where}: {folder} has both *{first} and *{second} files ({of_a_kind[first].relative_to(folder)}, "
            f"{of_a_kind[second].relative_to(folder)}); a folder has files of one kind, move the others elsewhere"
        )
    return paths


def documents(folder: Path, corpus: str, start: StreamPosition = START) -> Iterator[Row]:
    """Yield every line of every JSONL file, or every text file, of a folder as a document, in order.

    Args:
        start: the place to read on from: file, line and documents before it.

    Raises:
        PlumblineError: as `files`, or a file is not such a document, then or when a line is read; the message names
            file, line and key.
    """
    number = start.number
    for shard, path in enumerate(files(folder, corpus)):
        if shard < start.shard:
            continue
        name = path.relative_to(folder).as_posix()
        if path.suffix == ".jsonl":
            before = start.row if shard == start.shard else 0
            with open(path, "rb") as lines:
                for row, line in enumerate(lines, 1):
                    if row > before and line.strip():
                        number += 1
                        yield jsonl.Line(content=line, path=path, file=name, end=StreamPosition(shard, row, number))
        else:
            source = path.parent.relative_to(folder).as_posix()
            number += 1
            yield Document(
                id=name,
                source=folder.resolve().name if source == "." else source,
                text=_read_text(path),
                group=name,
                end=StreamPosition(shard + 1, 0, number),
            )


def _read_text(path: Path) -> str:
    """A text file's content, with line ends as everywhere here and without a byte order mark."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise PlumblineError(f"{path}: not text in UTF-8 ({error}); convert it") from error
    if not text.strip():
        raise PlumblineError(f"{path}: empty; every text file is a document, delete it or fill it")
    return text
