"""Reads the source `local` where its folder holds token files: documents are cut at an id, and keep their token ids.

The line of a document in JSONL has its text, for people and for proxy items, and where its ids are: file, start, stop,
and the CRC-32 of their bytes. It does not have the ids: a corpus of 5 billion (10 GB in uint16) would be some 30 GB
longer with ids as JSON and 13 GB in base 64, twice while it is shuffled, and this is half a GB. The price is that
`tokenize` needs the folder, and reads it at random; the checksum states whether it still finds what was cut. Names are
relative to the folder, so that the same files give the same lines on every machine.
"""

from __future__ import annotations

import functools
import json
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from plumbline.core import fingerprint_file
from plumbline.core.errors import PlumblineError
from plumbline.data import npy, token_files
from plumbline.data.document import Document, name_key
from plumbline.data.progress import ProgressCounter
from plumbline.data.tokenizer import Tokenizer

T = TypeVar("T")

#: Ids read in one go; ids and documents handed to the decoder; ids of a document that are decoded as one: a text
#: may be a little off where a longer one is cut, its ids are not.
_BLOCK, _BATCH, _DOCUMENTS, _PART = 1 << 22, 1 << 20, 4096, 1 << 18
#: Ids of a file from which on it tells that they are halves: fewer may be so by chance.
_TELLING = 64
#: Files mapped at once; each costs a file descriptor.
_OPEN = 256


def open_ids(path: Path, dtype: str, corpus: str) -> np.ndarray:
    """Memory-map the ids of a token file: one row of whole numbers.

    Args:
        dtype: the type of ids that the corpus's file states, or empty.
        corpus: for messages.

    Raises:
        PlumblineError: the file is empty, truncated, of another type than is stated, or no row of whole numbers.
    """
    ids = _open_npy(path) if path.suffix == ".npy" else _open_bin(path, dtype, corpus)
    if not len(ids):
        raise PlumblineError(f"{path}: holds no ids; delete it, or write it again")
    if dtype and ids.dtype.newbyteorder("=") != np.dtype(dtype):
        raise PlumblineError(
            f"{name_key(corpus, 'local.dtype')}: {dtype}, but {path} states that its ids are {ids.dtype.name}; "
            "remove the key if all files state their type, or give files of one type"
        )
    return ids


def _open_bin(path: Path, dtype: str, corpus: str) -> np.ndarray:
    header = token_files.header(path)
    if header is not None:
        return _map_ids(path, header[0], token_files.HEADER_BYTES)
    if not dtype:
        raise PlumblineError(f"{name_key(corpus, 'local.dtype')}: missing; {path} has no header that says its type")
    size = path.stat().st_size
    if size % np.dtype(dtype).itemsize:
        raise PlumblineError(
            f"{path}: {size:,} bytes are not a whole number of ids of {dtype} ({np.dtype(dtype).itemsize} bytes each): "
            f"truncated, or {name_key(corpus, 'local.dtype')} is another"
        )
    return _map_ids(path, dtype, 0)


def _map_ids(path: Path, dtype: str, offset: int) -> np.ndarray:
    little = np.dtype(dtype).newbyteorder("<")
    if path.stat().st_size == offset:  # nothing cannot be mapped
        return np.array([], dtype=little)
    return np.memmap(path, dtype=little, mode="r", offset=offset)


def _open_npy(path: Path) -> np.ndarray:
    try:
        ids = npy.map_array(path)
    except ValueError as error:
        raise PlumblineError(f"{path}: truncated, or not a .npy file ({error}); write or copy it again") from error
    if ids.ndim != 1 or ids.dtype.kind not in "ui":
        raise PlumblineError(
            f"{path}: shape {ids.shape} of {ids.dtype}; a token file is one row of whole numbers (1-D, signed or "
            "unsigned)"
        )
    return ids


def source(
    folder: Path, corpus: str, paths: list[Path], *, dtype: str, document_end: int | None, tokenizer: Path | None
) -> tuple[Iterator[Document], dict[str, Any]]:
    """Read a folder of token files: its documents, and what documents.json is to say of them.

    Every file is read through once before the first document comes, so that what is wrong is known before the work.

    Raises:
        PlumblineError: files with and without headers, a file that cannot be read as ids, an id that is no entry of the
            tokenizer, an end of documents that never occurs, nothing but held-out files.
    """
    if document_end is None or tokenizer is None:
        raise PlumblineError(f"{folder} holds token files: --document-end and --tokenizer are needed")
    headers = {path: token_files.header(path) is not None for path in paths if path.suffix == ".bin"}
    if len(set(headers.values())) > 1:
        typed, plain = (min(path for path, has in headers.items() if has is kind) for kind in (True, False))
        raise PlumblineError(
            f"{folder}: {typed.name} has a header and {plain.name} has none; a folder has files of one kind"
        )
    loaded = Tokenizer(tokenizer, document_end)
    fingerprint_file.read_verified(tokenizer)
    names = {path.relative_to(folder).as_posix(): path for path in paths}
    counted = _check_files(names, loaded, dtype, corpus)
    about: dict[str, Any] = {
        "tokens": {"document_end": document_end, "dtype": dtype or "as files say", "files": counted}
    }
    held_out = [name for name in names if token_files.is_held_out(name)]
    if held_out:
        if len(held_out) == len(names):
            raise PlumblineError(
                f"{folder}: every token file is held out by its name ({held_out[0]}); none is left to train "
                "on: rename some (docs/your-own-data.md)"
            )
        print(
            f"{name_key(corpus, 'held_out.percent')} is not used: {', '.join(held_out)} of {folder} are held out by "
            "their names, and the other files are trained on completely",
            file=sys.stderr,
        )
        about |= {"validation_percent": None, "held_out_by": "file"}
        about["split_rule"] = (
            "a document is held out if `val`, `valid` or `validation` is a word of its file's name, and not otherwise; "
            "order: by sha256('order\\n' + id)"
        )
    return _read_documents(names, loaded, dtype, corpus, bool(held_out), counted), about


def _check_files(names: dict[str, Path], tokenizer: Tokenizer, dtype: str, corpus: str) -> dict[str, dict[str, Any]]:
    """Read every file through; what there is of each one."""
    if tokenizer.eot >= tokenizer.vocabulary:
        raise PlumblineError(
            f"{name_key(corpus, 'local.document_end')}: {tokenizer.eot} is not an entry of {tokenizer.path}, whose ids "
            f"go to {tokenizer.vocabulary - 1}"
        )
    counted, ends = {}, 0
    # What lies beyond 16 bits of an id; where a file of uint32 is read as uint16, every second id is that.
    beyond = (tokenizer.vocabulary - 1) >> 16
    with ProgressCounter("token files: reading", "files", len(names)) as progress:
        for name, path in names.items():
            ids = open_ids(path, dtype, corpus)
            even = odd = 0
            for start in range(0, len(ids), _BLOCK):
                block = ids[start : start + _BLOCK]
                if int(block.min()) < 0 or int(block.max()) >= tokenizer.vocabulary:
                    wrong = int(np.argmax((block < 0) | (block >= tokenizer.vocabulary)))
                    raise PlumblineError(
                        f"{path}: id {block[wrong]} at position {start + wrong} is not an entry of {tokenizer.path}, "
                        "whose ids "
                        f"go to {tokenizer.vocabulary - 1}: give the tokenizer that made the file, or check whether "
                        f"{name_key(corpus, 'local.dtype')} is right"
                    )
                ends += int(np.count_nonzero(block == tokenizer.eot))
                even, odd = max(even, int(block[::2].max())), max(odd, int(block[1::2].max(initial=0)))
            typed = path.suffix == ".npy" or token_files.header(path) is not None
            if dtype == "uint16" and not typed and len(ids) >= _TELLING and odd <= beyond < even:
                raise PlumblineError(
                    f"{name_key(corpus, 'local.dtype')}: uint16, but every second id of {path} is "
                    f"{f'{beyond} at most' if beyond else 0}, as in uint32 ids read as uint16: write "
                    "`dtype: uint32` there"
                )
            counted[name] = {"tokens": len(ids), "held_out": token_files.is_held_out(name)}
            progress.add()
    if not ends:
        raise PlumblineError(
            f"{name_key(corpus, 'local.document_end')}: {tokenizer.eot} ({tokenizer.decode([tokenizer.eot])!r}) never "
            f"occurs in the token files of {corpus}: documents could not be separated, held out or shuffled; give the "
            "id that ends a document there, or write the files again with one after each document"
        )
    return counted


def _read_documents(
    names: dict[str, Path],
    tokenizer: Tokenizer,
    dtype: str,
    corpus: str,
    by_name: bool,
    counted: dict[str, dict[str, Any]],
) -> Iterator[Document]:
    """Every document of every file, in order; completes what is counted of each file when it is through with it."""
    for name, path in names.items():
        ids, count = open_ids(path, dtype, corpus), 0
        side = ("validation" if token_files.is_held_out(name) else "train") if by_name else ""
        for cuts in _make_batches(_find_cuts(ids, tokenizer.eot), lambda cut: cut[1] - cut[0]):
            rows = [ids[start:stop] for start, stop in cuts]
            for (start, stop), row, text in zip(cuts, rows, _decode_texts(rows, tokenizer)):
                where = {"file": name, "start": start, "stop": stop, "crc32": zlib.crc32(row.tobytes())}
                identity = f"{name}:{start}"
                yield Document(id=identity, source=name, text=text, group=identity, tokens=where, side=side)
            count += len(cuts)
        # Two ends in a row have no document between them; a file's end ends a document, too.
        counted[name] |= {"documents": count, "unended": int(ids[-1] != tokenizer.eot)}


def _find_cuts(ids: np.ndarray, end: int) -> Iterator[tuple[int, int]]:
    """(start, stop) of the documents between ends, none of them empty, ends not among their ids."""
    start = 0
    for block in range(0, len(ids), _BLOCK):
        for position in np.flatnonzero(ids[block : block + _BLOCK] == end) + block:
            if position > start:
                yield start, int(position)
            start = int(position) + 1
    if start < len(ids):
        yield start, len(ids)


def _make_batches(items: Iterable[T], ids: Callable[[T], int]) -> Iterator[list[T]]:
    """Items in lists of about `_BATCH` ids and at most `_DOCUMENTS` items; `ids` of an item are so many."""
    batch: list[T] = []
    size = 0
    for item in items:
        batch.append(item)
        size += ids(item)
        if size >= _BATCH or len(batch) == _DOCUMENTS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _decode_texts(rows: list[np.ndarray], tokenizer: Tokenizer) -> list[str]:
    parts = ((number, row[at : at + _PART]) for number, row in enumerate(rows) for at in range(0, len(row), _PART))
    texts: list[list[str]] = [[] for _ in rows]
    for some in _make_batches(parts, lambda part: len(part[1])):
        for (number, _), text in zip(some, tokenizer.decode_batch([ids.tolist() for _, ids in some])):
            texts[number].append(text)
    return ["".join(of_row) for of_row in texts]


def of_lines(
    lines: Iterable[tuple[int, bytes]], documents: Path, folder: Path, *, dtype: str, tokenizer: Tokenizer, corpus: str
) -> tuple[list[np.ndarray], int]:
    """Read the token ids of documents that were cut from token files.

    Args:
        lines: (byte offset, line) of the file `documents`.
        folder: the folder of the token files.

    Returns:
        Arrays of `tokenizer.dtype`, each document followed by the id that ends a document; and the number of documents.

    Raises:
        PlumblineError: a line does not state where its ids are, or other ids are there now.
    """
    files: Callable[[str], np.ndarray] = functools.lru_cache(_OPEN)(lambda name: open_ids(folder / name, dtype, corpus))
    end = np.array([tokenizer.eot], dtype=tokenizer.dtype)
    chunks: list[np.ndarray] = []
    count = 0
    with ProgressCounter(f"ids of {documents.name}", "documents") as progress:
        for offset, line in lines:
            if not line.strip():
                continue
            try:
                where = json.loads(line)["tokens"]
                name, start, stop, crc32 = (where[part] for part in ("file", "start", "stop", "crc32"))
            except (ValueError, KeyError, TypeError) as error:
                raise PlumblineError(
                    f"{documents}: byte {offset}: not a document of token files ({type(error).__name__}: {error}); "
                    "rerun the rule `documents`"
                ) from error
            ids = np.array(files(name)[start:stop]) if (folder / name).is_file() else np.array([])
            if not len(ids) or zlib.crc32(ids.tobytes()) != crc32:
                raise PlumblineError(
                    f"{folder / name}: ids {start} to {stop} are not those that {documents} was made from; restore "
                    "the file, or rerun the rule `documents`"
                )
            chunks += [ids.astype(tokenizer.dtype), end]
            count += 1
            progress.add()
    return chunks, count
