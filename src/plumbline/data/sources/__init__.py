"""Where documents come from. Each source yields `Document`s; what becomes of them is `plumbline.data.documents`'."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple


def key(corpus: str, name: str) -> str:
    """How messages call a key of a corpus's file."""
    return f"config/corpora/{corpus}.yaml: {name}"


class Position(NamedTuple):
    """A place between two rows of a stream: shard (a file), rows of it that are behind, and rows behind in all."""

    shard: int = 0
    row: int = 0
    number: int = 0


#: Before the first row.
START = Position()


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """One text of a corpus.

    `id` is unique in the corpus; `source` names the collection; `group` is what is held out together (documents of one
    group are on the same side of the split). `tokens`: where its ids lie, if it has some already. `side`: of the split,
    where its source decides that; else empty. `end`: the place behind it, in a source that can be gone on with there.
    """

    id: str
    source: str
    text: str
    group: str
    tokens: dict[str, Any] | None = None
    side: str = ""
    end: Position | None = None
