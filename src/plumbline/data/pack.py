r"""Packs token shards into sequences of fixed length, with one manifest per size.

python -m plumbline.data.pack --token-shards tokens --shard-count 2 --tokenizer tokenizer.json \
    --documents documents.json --split train --context 128 --pack-size base=8000 --pack-size large=all \
    --out packs/context128

Documents follow one another, each with its separator, and are cut every `context` tokens wherever that falls: attention
may cross documents. Sequences lie in `<split>/shard-00000.bin ...`, raw little-endian ids, row after row. Every size is
a prefix of the largest one and shares its shards. Manifests are written last; the documents were shuffled when they
were gathered, so a prefix is a sample of the corpus.
"""

from __future__ import annotations

import hashlib
import math
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from plumbline.core import fingerprint_file
from plumbline.core.command_line import HIDDEN, Parser, run, token_id
from plumbline.core.errors import PlumblineError
from plumbline.core.files import open_atomically
from plumbline.data import hub_read_budget, npy
from plumbline.data.progress import ProgressCounter
from plumbline.data.tokenizer import Tokenizer

FORMAT = 1

#: Tokens that are in memory at once.
_BLOCK = 4_000_000


class TooFewTokens(PlumblineError):
    """One side of the corpus holds fewer tokens (`available`) than its largest pack wants (`needed`)."""

    def __init__(self, needed: int, available: int, message: str) -> None:
        super().__init__(message)
        self.needed, self.available = needed, available


def pack(
    tokens: Sequence[Path],
    tokenizer: Tokenizer,
    *,
    split: str,
    context: int,
    sizes: dict[str, int | None],
    sequences_per_shard: int,
    corpus: dict[str, Any],
    out: Path,
    fingerprint: str = "",
) -> dict[str, dict[str, Any]]:
    """Write the shards of packs and then their manifests; returns the manifests by name.

    Args:
        tokens: token shards, in order.
        sizes: number of sequences of each pack, or None for all that there are.
        corpus: content of documents.json.
        fingerprint: the fingerprint of what this is made of, which manifests repeat; empty by hand.

    Raises:
        PlumblineError: a token shard is missing, damaged or of another tokenizer, or a size exceeds the corpus.
    """
    fingerprint_file.read_verified(tokenizer.path)
    _require_made_from(tokens, tokenizer, corpus["splits"][split]["sha256"])
    shards = [_open(path, tokenizer) for path in tokens]
    total = sum(shard.tokens for shard in shards)
    available = total // context
    counts = {name: available if size is None else size for name, size in sizes.items()}
    for name, count in counts.items():
        if not 1 <= count <= available:
            raise TooFewTokens(
                max(1, *counts.values()) * context,
                total,
                f"pack {name!r} asks for {count:,} sequences of {context} tokens, but {split} holds {available:,} "
                f"({total:,} tokens): ask for 1 to {available:,} or `all`, or gather more documents",
            )
    for name in sizes:
        (out / f"{name}.json").unlink(missing_ok=True)  # it vouches for shards that are about to be replaced
    entries, ends = _write(
        shards, tokenizer, out / split, context=context, counts=counts, sequences_per_shard=sequences_per_shard
    )
    manifests = {}
    for name, count in sorted(counts.items(), key=lambda item: item[1]):
        tokens_kept = count * context
        shard_count = -(-count // sequences_per_shard)
        discarded = total - available * context
        manifests[name] = {
            "format": FORMAT,
            "fingerprint": fingerprint,
            "name": name,
            "split": split,
            "context": context,
            "dtype": tokenizer.dtype.str,
            "vocabulary": tokenizer.vocabulary,
            "separator": tokenizer.eot,
            "tokenizer_sha256": tokenizer.fingerprint,
            "sequences": count,
            "tokens": tokens_kept,
            "documents": ends[name],
            "available": {"sequences": available, "tokens": total, "documents": ends[""]},
            # Discarded: the tail that does not fill a sequence. Unused: whole sequences beyond the size requested.
            "discarded": {"tokens": discarded, "percent": round(100 * discarded / total, 6)},
            "unused": {"sequences": available - count, "tokens": (available - count) * context},
            "sequences_per_shard": sequences_per_shard,
            "shards": entries[:shard_count],
            "corpus": {key: corpus[key] for key in ("source", "collections", "split_rule", "piece_bytes")}
            | {"name": corpus["corpus"], "documents_sha256": corpus["splits"][split]["sha256"]},
        }
    for name, manifest in manifests.items():
        fingerprint_file.write_facts(out / f"{name}.json", manifest)
    return manifests


def _require_made_from(tokens: Sequence[Path], tokenizer: Tokenizer, documents_sha256: str) -> None:
    """Refuse token shards that are not the files that were written, or were made with another tokenizer or from other
    documents; what does not state it is named on stderr."""
    now = {
        "tokenizer_sha256": (str(tokenizer.path), tokenizer.fingerprint),
        "documents_sha256": ("documents.json", documents_sha256),
    }
    unknown = []
    for path in tokens:
        if not path.is_file():
            continue  # for who opens it
        facts = fingerprint_file.read_verified(path)
        for key, (name, sha256) in now.items():
            if facts.get(key) not in (None, sha256):
                raise PlumblineError(
                    f"token shard {path} was not made with {name} as it is now: {fingerprint_file.sidecar_path(path)} "
                    f"says {key} {facts[key]}, and now it is {sha256}: restore that one, or delete the shard and rerun "
                    "the rule `tokenize` for it"
                )
        unknown += [path] if not facts.get("tokenizer_sha256") else []
    if unknown:
        print(
            f"{unknown[0]}{f' and {len(unknown) - 1} more' if len(unknown) > 1 else ''}: nothing beside it says with "
            "which tokenizer it was made; only its ids are compared",
            file=sys.stderr,
        )


@dataclass(frozen=True)
class _TokenShard:
    """A file of tokens: where they begin in it, and how many there are."""

    path: Path
    begins: int
    tokens: int


def _open(path: Path, tokenizer: Tokenizer) -> _TokenShard:
    """Check a token shard, and that this tokenizer made it, as far as its ids can show."""
    remedy = "rerun the rule `tokenize` for it"
    if not path.is_file():
        raise PlumblineError(f"token shard {path} is missing: {remedy}")
    try:
        shard = npy.map_array(path)
    except ValueError as error:
        raise PlumblineError(f"token shard {path} is truncated or damaged ({error}): {remedy}") from error
    if shard.ndim != 1 or shard.dtype != tokenizer.dtype or (len(shard) and shard[-1] != tokenizer.eot):
        raise PlumblineError(
            f"token shard {path} was not made with {tokenizer.path} (it should be a row of {tokenizer.dtype.str} ids "
            f"that ends with the separator {tokenizer.eot}): {remedy}"
        )
    return _TokenShard(path, path.stat().st_size - shard.nbytes, len(shard))


class _TokenStream:
    """The tokens of all shards, one after another.

    They are read, not mapped: what is mapped counts as memory of the process, up to the whole corpus.

    Attributes:
        documents: name of each of `limits` -> documents that begin before it, of what was read.
    """

    def __init__(self, shards: Sequence[_TokenShard], tokenizer: Tokenizer, limits: dict[str, float]) -> None:
        self.documents = dict.fromkeys(limits, 0)
        self._tokenizer, self._limits = tokenizer, limits
        self._shards = iter(shards)
        self._shard, self._start = _TokenShard(Path(), 0, 0), 0
        self._position, self._is_after_separator = 0, True

    def read(self, count: int) -> np.ndarray:
        """Read the next tokens, at most so many and at most `_BLOCK`; none at the end alone."""
        while self._start == self._shard.tokens:
            shard = next(self._shards, None)
            if shard is None:
                return np.empty(0, self._tokenizer.dtype)
            self._shard, self._start = shard, 0
        path, dtype = self._shard.path, self._tokenizer.dtype
        length = min(count, _BLOCK, self._shard.tokens - self._start)
        block = np.fromfile(path, dtype, length, offset=self._shard.begins + self._start * dtype.itemsize)
        if len(block) < length:
            raise PlumblineError(f"token shard {path} became shorter while it was read: rerun the rule `tokenize`")
        if block.max() >= self._tokenizer.vocabulary:
            raise PlumblineError(
                f"a token shard holds the id {block.max()}, {self._tokenizer.path} has only "
                f"{self._tokenizer.vocabulary} entries: rerun the rule `tokenize`"
            )
        self._count_documents(block)
        self._start += length
        self._position += length
        return block

    def _count_documents(self, block: np.ndarray) -> None:
        """A document begins at a token whose predecessor is a separator."""
        ends = block == self._tokenizer.eot
        for name, limit in self._limits.items():
            inside = int(min(len(block), max(0, limit - self._position)))
            if inside:
                self.documents[name] += int(self._is_after_separator) + int(np.count_nonzero(ends[: inside - 1]))
        self._is_after_separator = bool(ends[-1])


def _write(
    shards: Sequence[_TokenShard],
    tokenizer: Tokenizer,
    folder: Path,
    *,
    context: int,
    counts: dict[str, int],
    sequences_per_shard: int,
) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """Write the largest size's shards.

    Returns the shards' manifest entries, and how many documents begin inside each size ("": in the whole corpus).
    """
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("shard-*.bin"):
        old.unlink()
    entries: list[dict[str, Any]] = []
    stream = _TokenStream(shards, tokenizer, {name: count * context for name, count in counts.items()} | {"": math.inf})
    largest = max(counts.values())
    with ProgressCounter(f"pack {folder}", "sequences", largest) as progress:
        for first in range(0, largest, sequences_per_shard):
            rows = min(sequences_per_shard, largest - first)
            name, digest, left = f"shard-{len(entries):05d}.bin", hashlib.sha256(), rows * context
            with open_atomically(folder / name) as file:
                while left:
                    block = stream.read(left)
                    file.write(block.data)
                    digest.update(block.data)
                    left -= len(block)
            entries.append(
                {
                    "file": f"{folder.name}/{name}",
                    "sequences": rows,
                    "bytes": rows * context * tokenizer.dtype.itemsize,
                    "sha256": digest.hexdigest(),
                }
            )
            progress.add(rows)
        while len(stream.read(_BLOCK)):  # for the documents of the whole corpus
            pass
    return entries, stream.documents


def _sizes(texts: Sequence[str]) -> dict[str, int | None]:
    sizes: dict[str, int | None] = {}
    for text in texts:
        match = re.fullmatch(r"([a-z0-9_]+)=(all|\d+)", text)
        if match is None:
            raise PlumblineError(f"--pack-size {text!r}: give NAME=SEQUENCES, or NAME=all (a name: a-z, 0-9 and _)")
        if match[1] in sizes:
            raise PlumblineError(f"--pack-size {text!r}: there is a pack {match[1]!r} already; names must differ")
        sizes[match[1]] = None if match[2] == "all" else int(match[2])
    return sizes


def main(arguments: list[str] | None = None) -> None:
    """Run the verb `python -m plumbline.data.pack`."""
    from plumbline.data.manifest import read_documents

    parser = Parser(__doc__)
    parser.add_argument(
        "--token-shards", required=True, nargs="+", type=Path, help="token shards, in order, or their folder"
    )
    parser.add_argument(
        "--shard-count", type=int, help="how many shards of the split are in the folder of --token-shards"
    )
    parser.add_argument("--tokenizer", required=True, type=Path, help="tokenizer.json that made them")
    parser.add_argument(
        "--document-end", type=token_id, metavar="ID", help="the separator, if not that of <|endoftext|>"
    )
    parser.add_argument("--documents", required=True, type=Path, help="documents.json of the corpus")
    parser.add_argument("--split", required=True, choices=["train", "validation"], help="which side the tokens are of")
    parser.add_argument("--context", required=True, type=int, help="tokens in a sequence")
    parser.add_argument(
        "--pack-size", required=True, action="append", metavar="NAME=SEQUENCES|all", help="a pack and its sequences"
    )
    parser.add_argument("--sequences-per-shard", type=int, default=131072, help="sequences in a file (default 131072)")
    parser.add_argument("--out", required=True, type=Path, help="folder of the manifests and shards")
    parser.add_argument("--fingerprint", default="", help=HIDDEN)
    options = parser.parse_args(arguments)
    if options.context < 2 or options.sequences_per_shard < 1:
        raise PlumblineError("--context must be at least 2 (an input and a target), --sequences-per-shard at least 1")
    tokens = options.token_shards
    if options.shard_count is not None:  # thousands of names are too long for a command line
        tokens = [
            folder / f"{options.split}-{shard:04d}.npy" for folder in tokens for shard in range(options.shard_count)
        ]
    corpus = read_documents(options.documents)
    try:
        manifests = pack(
            tokens,
            Tokenizer(options.tokenizer, options.document_end),
            split=options.split,
            context=options.context,
            sizes=_sizes(options.pack_size),
            sequences_per_shard=options.sequences_per_shard,
            corpus=corpus,
            out=options.out,
            fingerprint=options.fingerprint,
        )
    except TooFewTokens as error:
        raise PlumblineError(
            f"{error}{hub_read_budget.record_shortfall(options.documents, corpus, error.needed, error.available)}"
        ) from error
    for name, manifest in manifests.items():
        print(
            f"{options.out / name}.json: {manifest['sequences']:,} sequences, {manifest['tokens']:,} tokens, "
            f"{manifest['documents']:,} documents, {manifest['discarded']['tokens']} tokens discarded "
            f"({manifest['discarded']['percent']:.4f} %)"
        )


if __name__ == "__main__":
    run(main)
