"""Reads the source `hub`: a Hugging Face data set, streamed at a pinned commit; or a local folder in hub layout."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic_write_json
from plumbline.data.document import START, Document, StreamPosition, name_key

#: Next to a corpus's documents: the commit that an empty revision was resolved to, of which data set.
LOCK = "hub.lock"

_OTHERWISE = (
    "set `data.source` in config/config.yaml to packaged (no hub needed) or local, or let hub.path be a folder in hub "
    "layout (a copy of the data set's repository)"
)


def documents(
    *,
    corpus: str,
    path: str,
    configuration: str,
    split: str,
    revision: str,
    text_column: str,
    start: StreamPosition = START,
) -> Iterator[Document]:
    """Read the rows of one split, in the data set's order; a document's id is `<last part of path>/<row number>`.

    Args:
        corpus: whose documents they are, for messages.
        path: a data set's name on the hub, or a local folder with the same layout, which needs no revision or network.
        revision: the commit that `pin_revision` gives.
        start: the place from which to read on.

    Raises:
        PlumblineError: hub out of reach, no such data set, split or text column.
    """
    local = Path(path).is_dir()
    name = Path(path).resolve().name if local else path.rsplit("/", 1)[-1]
    for end, row in _stream_rows(corpus, path, configuration, split, "" if local else revision, start):
        number = end.number - 1
        if text_column not in row:
            raise PlumblineError(
                f"{name_key(corpus, 'hub.text_column')}: {path} has no column {text_column!r}; its columns are "
                f"{', '.join(row)}"
            )
        text = row[text_column]
        if not isinstance(text, str):
            raise PlumblineError(
                f"{name_key(corpus, 'hub.text_column')}: {text_column!r} in row {number} of {path} is not a string"
            )
        if text.strip():
            identity = f"{name}/{number:012d}"
            yield Document(id=identity, source=name, text=text, group=identity, end=end)


def pin_revision(*, corpus: str, path: str, configuration: str, revision: str, out: Path) -> str:
    """The commit that a corpus is read at: `revision`, or what an empty one meant when `out` was first filled.

    The newest commit is requested once and written to `LOCK` in `out` before anything is read, so that an interrupted
    fetch continues with it, and so does every later one. For another path or configuration the newest commit is asked
    for again.

    Raises:
        PlumblineError: a revision that is no full commit hash (a branch or tag can move), a hub out of reach, a lock
            that cannot be read.
    """
    where, lock = name_key(corpus, "hub.revision"), out / LOCK
    if revision and not _is_commit(revision):
        raise PlumblineError(
            f"{where}: {revision!r} is not a full commit hash (40 hex digits); branches and tags can move"
        )
    commit = read_locked_commit(out, path, configuration)
    if revision:
        if commit not in (None, revision):
            print(
                f"{where}: {path} is read at {revision}, which is another corpus than that of {commit}, which {lock} "
                "names; with an empty revision it would be that one",
                file=sys.stderr,
            )
        return revision
    if commit is None:
        commit = _fetch_newest(where, path)
        out.mkdir(parents=True, exist_ok=True)
        atomic_write_json(lock, {"path": path, "configuration": configuration, "commit": commit})
        print(f"{where}: empty; the newest commit of {path} is {commit}, written to {lock} and used from now on")
    return commit


def read_locked_commit(out: Path, path: str, configuration: str) -> str | None:
    """The commit that `LOCK` in `out` names for a data set; None if there is no lock, or it is of another data set.

    Raises:
        PlumblineError: the lock cannot be read.
    """
    lock = out / LOCK
    try:
        content = json.loads(lock.read_text(encoding="utf-8"))
        locked, commit = [content["path"], content["configuration"]], content["commit"]
        if not isinstance(commit, str) or not _is_commit(commit):
            raise ValueError(f"commit: {commit!r}")
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise PlumblineError(
            f"{lock}: has no path, configuration and commit ({type(error).__name__}: {error}); write them there "
            f"again (the commit is in documents.json next to it), or delete it to use the newest commit"
        ) from error
    return commit if locked == [path, configuration] else None


def _fetch_newest(where: str, path: str) -> str:
    """The commit that a data set of the hub stands at."""
    from huggingface_hub import HfApi  # here, because importing it takes time that other sources need not spend

    try:
        commit = HfApi().dataset_info(path).sha
    except Exception as error:
        if not _is_unreachable(error):
            raise
        raise PlumblineError(
            f"{where}: empty, and the hub cannot be asked for the newest commit of {path} ({_reason(error)}). Allow "
            f"one request (network, no HF_HUB_OFFLINE=1), or write a commit there, or {_OTHERWISE}"
        ) from error
    if not commit or not _is_commit(commit):
        raise PlumblineError(f"{where}: empty, and the hub names no commit for {path} ({commit!r}); write one there")
    return commit


def _is_commit(text: str) -> bool:
    return re.fullmatch(r"[0-9a-f]{40}", text) is not None


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {(str(error).strip() or 'no message').splitlines()[0]}"


def _stream_rows(
    corpus: str, path: str, configuration: str, split: str, revision: str, start: StreamPosition
) -> Iterator[tuple[StreamPosition, dict[str, Any]]]:
    """Stream rows with the place behind each; whatever the libraries below throw for want of a network or a data set
    becomes one message.

    Shard by shard, so that a place is exact whatever the library's own account of it: what a fetch that goes on reads
    a second time is the beginning of one file.
    """
    import datasets  # here, because importing it takes seconds that other sources need not spend

    _, done, number = start
    try:
        built = datasets.load_dataset_builder(path, name=configuration or None, revision=revision or None)
        _read_ahead_less(built)
        stream = built.as_streaming_dataset(split=split)
        shards = stream.num_shards
        for shard in range(start.shard, shards):
            part = stream.shard(num_shards=shards, index=shard, contiguous=True)
            for row in part.skip(done) if done else part:
                done, number = done + 1, number + 1
                yield StreamPosition(shard, done, number), row
            done = 0
    except ValueError as error:  # no such configuration or split
        raise PlumblineError(
            f"{name_key(corpus, 'hub')}: path {path}, configuration {configuration!r}, split {split!r}: {error}"
        ) from error
    except Exception as error:
        if not _is_unreachable(error):
            raise
        at_revision = f" at revision {revision}" if revision else ""
        raise PlumblineError(
            f"{name_key(corpus, 'hub.path')}: cannot read {path}{at_revision} ({_reason(error)}). "
            f"Check the network, the name and hub.revision, or {_OTHERWISE}"
        ) from error


def _read_ahead_less(built: Any) -> None:
    """Have Parquet files read a group of rows at a time.

    By default all of a file stays in memory until its last row is read, and a data set's files may have gigabytes.
    """
    if hasattr(built.config, "fragment_scan_options"):
        from pyarrow.dataset import ParquetFragmentScanOptions

        built.config.fragment_scan_options = ParquetFragmentScanOptions(pre_buffer=False, use_buffered_stream=True)


def _is_unreachable(error: Exception) -> bool:
    """Whether an error is the network's or the hub's.

    Not found, offline mode and refused connections are OSErrors. The HTTP client's own errors are not, and which client
    there is (requests, httpx, httpx2) changes with the hub library's version, so they are known by their package.
    """
    packages = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
    return isinstance(error, OSError) or any(
        package.startswith(("http", "requests", "aiohttp", "huggingface_hub")) for package in packages
    )
