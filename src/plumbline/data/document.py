"""Describes a document of a corpus and its place in a stream, and names keys of the corpus's file in messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol


def name_key(corpus: str, name: str) -> str:
    """Name a key of a corpus's file as messages do."""
    return f"config/corpora/{corpus}.yaml: {name}"


class Row(Protocol):
    """What a source yields: a document, or what it is read from, so that the reading may be left to another process."""

    @property
    def name(self) -> str:
        """What messages call it."""
        ...

    @property
    def size(self) -> int:
        """Its size, in bytes or characters."""
        ...

    def read(self) -> Document:
        """The document."""
        ...


class StreamPosition(NamedTuple):
    """A place between two rows of a stream: the shard (a file), rows read of that shard, and rows read in all."""

    shard: int = 0
    row: int = 0
    number: int = 0


#: Before the first row.
START = StreamPosition()


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """One text of a corpus.

    Attributes:
        id: unique in the corpus.
        source: the collection that it is from.
        group: what is held out together: documents of one group are on the same side of the split.
        tokens: where its token ids are, if it has some already.
        side: the side of the split, where the source decides that; else empty.
        end: the place after it, in a source that can be read on from there.
    """

    id: str
    source: str
    text: str
    group: str
    tokens: dict[str, Any] | None = None
    side: str = ""
    end: StreamPosition | None = None

    @property
    def name(self) -> str:
        """Its id: what messages call it."""
        return self.id

    @property
    def size(self) -> int:
        """Its characters."""
        return len(self.text)

    def read(self) -> Document:
        """The document itself."""
        return self
