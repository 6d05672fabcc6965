"""Where documents come from. Each source yields `Document`s; what becomes of them is `plumbline.data.documents`'."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


def key(corpus: str, name: str) -> str:
    """How messages call a key of a corpus's file."""
    return f"config/corpora/{corpus}.yaml: {name}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """One text of a corpus.

    `id` is unique in the corpus; `source` names the collection; `group` is what is held out together (documents of one
    group are on the same side of the split). `tokens`: where its ids lie, if it has some already. `side`: of the split,
    where its source decides that; else empty.
    """

    id: str
    source: str
    text: str
    group: str
    tokens: dict[str, Any] | None = None
    side: str = ""
