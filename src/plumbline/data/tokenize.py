"""Tokenises one shard of a document file, so that a corpus can be tokenised in parallel and piecewise.

python -m plumbline.data.tokenize --documents train.jsonl --tokenizer tokenizer.json --shard-number 0 --shard-count 4 \
    --out FILE.npy [--local-texts-folder DIR --corpus NAME --document-end ID [--token-files-dtype uint16]]

Shard i of n holds the documents whose lines begin in the i-th of n equal byte ranges of the file: the shards in order
are the documents in order, and no job reads more than its own range. Each document is followed by the separator.
With a folder of token files nothing is encoded: the ids are those that lie there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from plumbline.core import fingerprint_file
from plumbline.core.command_line import HIDDEN, Parser, run, token_id
from plumbline.core.errors import PlumblineError
from plumbline.core.files import open_atomically, path_or_none
from plumbline.data import jsonl, token_files
from plumbline.data.progress import ProgressCounter
from plumbline.data.sources import tokens
from plumbline.data.text_cleaning import spans
from plumbline.data.tokenizer import Tokenizer
from plumbline.data.verify_files import verify_documents

#: Documents handed to the tokenizer at once, and their characters: enough to keep all cores busy. What the tokenizer
#: keeps of a text while it works is a hundred times the text, so a longer document is handed over in parts.
_BATCH, _CHARACTERS, _PART = 512, 4_000_000, 500_000


def lines_of_shard(path: Path, shard: int, shards: int) -> Iterator[tuple[int, bytes]]:
    """Yield (byte offset, line) for the lines that begin in the shard's byte range."""
    size = path.stat().st_size
    start, end = size * shard // shards, size * (shard + 1) // shards
    with open(path, "rb") as file:
        if start:
            # A line that begins at `start` is ours: step back one byte, so that its predecessor's line end is skipped.
            file.seek(start - 1)
            file.readline()
        offset = file.tell()
        while offset < end and (line := file.readline()):
            yield offset, line
            offset += len(line)


@dataclass(slots=True)
class DocumentCounter:
    """A counter of the documents tokenised so far."""

    count: int = 0


def tokenize(
    documents: Path, tokenizer: Tokenizer, shard: int, shards: int, counted: DocumentCounter | None = None
) -> Iterator[np.ndarray]:
    """Tokenise a shard, some documents at a time, into arrays of `tokenizer.dtype`; `counted` counts the documents."""
    batch: list[str] = []
    ends: list[bool] = []  # whether a document ends with the part
    characters = 0
    end = np.array([tokenizer.eot], dtype=tokenizer.dtype).tobytes()
    with ProgressCounter(f"tokenize {documents.name} shard {shard} of {shards}", "documents") as progress:

        def flush() -> np.ndarray:
            nonlocal characters
            pieces = [ids + end if last else ids for ids, last in zip(tokenizer.word_encoder.encode(batch), ends)]
            progress.add(sum(ends))
            batch.clear()
            ends.clear()
            characters = 0
            return np.frombuffer(b"".join(pieces), dtype=tokenizer.dtype)

        for offset, line in lines_of_shard(documents, shard, shards):
            if not line.strip():
                continue
            parts = list(spans(jsonl.parse(line, f"{documents}: byte {offset}").text, _PART))
            if counted is not None:
                counted.count += 1
            for number, part in enumerate(parts, 1):
                batch.append(part)
                ends.append(number == len(parts))
                characters += len(part)
                if len(batch) == _BATCH or characters >= _CHARACTERS:
                    yield flush()
        yield flush()


def save(path: Path, chunks: Iterable[np.ndarray], dtype: np.dtype) -> int:
    """Write arrays one after another as one .npy file that appears whole; returns the number of tokens."""

    def header(total: int) -> None:
        """As long for any number of tokens."""
        fields = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": (total,)}
        np.lib.format.write_array_header_1_0(file, fields)

    with open_atomically(path) as file:
        header(0)
        begins, total = file.tell(), 0
        for chunk in chunks:
            file.write(chunk.tobytes())
            total += len(chunk)
        file.seek(0)
        header(total)
        assert file.tell() == begins
    return total


def main(arguments: list[str] | None = None) -> None:
    """Run the verb `python -m plumbline.data.tokenize`."""
    parser = Parser(__doc__)
    parser.add_argument("--documents", required=True, type=Path, help="train.jsonl or validation.jsonl")
    parser.add_argument("--tokenizer", required=True, type=Path, help="tokenizer.json")
    parser.add_argument("--shard-number", required=True, type=int, help="number of the shard, from 0")
    parser.add_argument("--shard-count", required=True, type=int, help="number of shards in all")
    parser.add_argument("--out", required=True, type=Path, help="FILE.npy")
    parser.add_argument("--local-texts-folder", type=path_or_none, help="of the token files with the documents")
    parser.add_argument("--corpus", default="", metavar="NAME", help="a file of config/corpora, named in messages")
    parser.add_argument(
        "--token-files-dtype",
        choices=token_files.DTYPES,
        default="",
        help="token files: type of the ids, if no file states it",
    )
    parser.add_argument("--document-end", type=token_id, metavar="ID", help="token files: the id that ends a document")
    parser.add_argument("--fingerprint", default="", help=HIDDEN)
    options = parser.parse_args(arguments)
    if not 0 <= options.shard_number < options.shard_count:
        raise PlumblineError(
            f"--shard-number {options.shard_number}: shards are numbered 0 to {options.shard_count - 1}"
        )
    if not options.documents.is_file():
        raise PlumblineError(f"--documents: there is no file {options.documents}; rerun the rule `documents`")
    tokenizer = Tokenizer(options.tokenizer, options.document_end)
    fingerprint_file.read_verified(options.tokenizer)
    documents_sha256 = verify_documents(options.documents)
    if options.local_texts_folder is None:
        counted = DocumentCounter()
        count = save(
            options.out,
            tokenize(options.documents, tokenizer, options.shard_number, options.shard_count, counted),
            tokenizer.dtype,
        )
        documents = counted.count
    else:
        lines = lines_of_shard(options.documents, options.shard_number, options.shard_count)
        chunks, documents = tokens.of_lines(
            lines,
            options.documents,
            options.local_texts_folder,
            dtype=options.token_files_dtype,
            tokenizer=tokenizer,
            corpus=options.corpus,
        )
        count = save(options.out, chunks, tokenizer.dtype)
    fingerprint_file.write(
        options.out, options.fingerprint, tokenizer_sha256=tokenizer.fingerprint, documents_sha256=documents_sha256
    )
    print(f"{options.out}: {documents:,} documents, {count:,} tokens")


if __name__ == "__main__":
    run(main)
