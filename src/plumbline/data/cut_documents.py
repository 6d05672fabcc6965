"""Puts documents on their side of the split, cuts them into pieces and writes these as the shuffle takes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from plumbline.data.document import Document, Row, StreamPosition
from plumbline.data.read_cache import StreamTotals
from plumbline.data.split import By, DocumentShuffle, encode, is_held_out
from plumbline.data.text_cleaning import pieces

#: Documents that a process is given at a time, and their size.
_BATCH, _BATCH_SIZE = 256, 1_000_000


class Piece(NamedTuple):
    """A piece of a document, or all of it.

    Attributes:
        file, parts: what goes to which file of the shuffle.
    """

    text_bytes: int
    file: int
    parts: Iterable[bytes]


class CutDocument(NamedTuple):
    """A document in pieces on its side of the split; `end`: the place after it in its source."""

    split: str
    source: str
    text_bytes: int
    pieces: list[Piece]
    end: StreamPosition | None


@dataclass(frozen=True, kw_only=True, slots=True)
class CutRule:
    """How documents are held out, and the size of their pieces (0: whole)."""

    validation_percent: float
    held_out_by: By
    piece_bytes: int

    def cut(self, document: Document) -> CutDocument:
        """Put a document on its side of the split, cut into pieces where they are requested."""
        unit = document.group if self.held_out_by == "group" else document.id
        split = document.side or ("validation" if is_held_out(unit, self.validation_percent) else "train")
        texts = list(pieces(document.text, self.piece_bytes)) if self.piece_bytes else [document.text]
        cut = []
        for number, text in enumerate(texts):
            identity = document.id if len(texts) == 1 else f"{document.id}#{number:03d}"
            file, parts = encode(identity, document.source, text, document.tokens)
            cut.append(Piece(text_bytes=len(text.encode()), file=file, parts=parts))
        size = len(document.text.encode())
        return CutDocument(split=split, source=document.source, text_bytes=size, pieces=cut, end=document.end)


@dataclass(frozen=True, kw_only=True, slots=True)
class CutBatch:
    """Some rows of a source to be cut.

    Attributes:
        joined: whether a piece is one part, to go to another process; else a long text is not held twice.
    """

    rows: list[Row]
    rule: CutRule
    joined: bool

    def results(self, report: Callable[[int], None]) -> Iterator[list[CutDocument]]:
        """Yield all of them, cut; `report` is told how many are."""
        cut = []
        for count, row in enumerate(self.rows, 1):
            document = self.rule.cut(row.read())
            if self.joined:
                document.pieces[:] = [_join(piece) for piece in document.pieces]
            cut.append(document)
            report(count)
        yield cut

    def describe(self, count: int) -> str:
        """Name the document after the first `count`."""
        return self.rows[min(count, len(self.rows) - 1)].name


class DocumentSplitter:
    """Puts cut documents into the shuffle of their side, and counts them."""

    def __init__(self, shuffles: dict[str, DocumentShuffle], tally: StreamTotals) -> None:
        """`shuffles`: of each side; `tally` is counted on."""
        self.shuffles, self.tally = shuffles, tally

    def take(self, document: CutDocument) -> None:
        """Put the pieces of one document into the shuffle of its side."""
        tally, split = self.tally, document.split
        for piece in document.pieces:
            self.shuffles[split].put(piece.file, piece.parts)
            tally.sources.setdefault(split, Counter())[document.source] += 1
            tally.sizes[split] += piece.text_bytes
        tally.taken[split] += 1
        tally.last = document.text_bytes
        tally.bytes += tally.last


def make_batches(rows: Iterable[Row], rule: CutRule, *, several: bool) -> Iterator[CutBatch]:
    """Put rows together for processes of their own, where there are several; else each is by itself."""
    batch, size = list[Row](), 0
    for row in rows:
        batch.append(row)
        size += row.size
        if not several or len(batch) == _BATCH or size >= _BATCH_SIZE:
            yield CutBatch(rows=batch, rule=rule, joined=several)
            batch, size = [], 0
    if batch:
        yield CutBatch(rows=batch, rule=rule, joined=several)


def _join(piece: Piece) -> Piece:
    return Piece(text_bytes=piece.text_bytes, file=piece.file, parts=[b"".join(piece.parts)])
