"""Recognises token files in a user's own folder, and checks what a corpus's file states of them. Standard library only.

`*.npy` is a row of whole numbers and names its type. `*.bin` is ids in little endian and nothing else, as nanoGPT's
scripts write them, so that their type has to be given; or such ids after a header of 256 int32 (llm.c): magic, version,
number of ids, zeros. There the magic gives the type.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from pathlib import Path

from plumbline.core.errors import PlumblineError
from plumbline.data.document import name_key

SUFFIXES = (".bin", ".npy")
#: What a `.bin` without a header may hold.
DTYPES = ("uint16", "uint32")
#: The tokenizer that made them, in their folder (`tokenizer.kind: given`).
TOKENIZER = "tokenizer.json"
#: Where ids begin in a file with a header.
HEADER_BYTES = 1024
#: Magic of a header -> its version, and the type of the ids.
_HEADERS = {20240520: (1, "uint16"), 20240801: (7, "uint32")}
_HELD_OUT = {"val", "valid", "validation"}


def is_held_out(name: str) -> bool:
    """Whether a token file's name below the folder makes it held-out data: it has the word `val`, `valid` or
    `validation` (`val.bin`, `validation-03.npy`, `shakespeare_val.bin`, `val/0000.npy`; not `interval.bin`)."""
    return not _HELD_OUT.isdisjoint(re.split(r"[^a-z]+", name.lower()))


def header(path: Path) -> tuple[str, int] | None:
    """Read (type, number of ids) from the header of a `.bin` file; None if it has no header.

    Raises:
        PlumblineError: a known magic with another version, or the file's size is not that of so many ids.
    """
    with open(path, "rb") as file:
        first = file.read(12)
    if len(first) < 12:
        return None
    magic, version, count = struct.unpack("<3i", first)
    if magic not in _HEADERS:
        return None
    ours, dtype = _HEADERS[magic]
    if version != ours:
        raise PlumblineError(f"{path}: a header with magic {magic} and version {version}; only version {ours} is read")
    expected = HEADER_BYTES + count * (2 if dtype == "uint16" else 4)
    if path.stat().st_size != expected:
        raise PlumblineError(
            f"{path}: its header names {count:,} ids of {dtype}, a file of {expected:,} bytes; it has "
            f"{path.stat().st_size:,}: truncated, or not this format; write or copy it again"
        )
    return dtype, count


def require(
    corpus: str, preset: str, kind: str, folder: Path, files: Sequence[Path], *, dtype: str, document_end: int | None
) -> None:
    """Refuse a corpus of the source `local` whose file does not state, or contradicts, what its folder holds.

    Args:
        kind: of the preset's tokenizer.
        files: the token files of `folder`, none if it holds texts.
        dtype, document_end: keys of `local`; empty and None if they are not given.

    Raises:
        PlumblineError: naming the key and what to write there.
    """
    tokenizer_key = name_key(corpus, f"presets.{preset}.tokenizer.kind")
    if not files:
        if dtype or document_end is not None:
            name = "dtype" if dtype else "document_end"
            raise PlumblineError(
                f"{name_key(corpus, f'local.{name}')}: {folder} holds no token files (*.bin, *.npy), to which alone it "
                "applies; remove the key, or give the folder that holds them"
            )
        if kind == "given":
            raise PlumblineError(
                f"{tokenizer_key}: given: it is the {TOKENIZER} next to token files (*.bin, *.npy), and {folder} holds "
                "none; give their folder, or let the tokenizer be byte_level_bpe or gpt2"
            )
        return
    first = files[0].relative_to(folder)
    if document_end is None:
        raise PlumblineError(
            f"{name_key(corpus, 'local.document_end')}: missing; {folder} holds token files ({first}), and no file "
            "says which id ends its documents: write `document_end: <id>` there (GPT-2's is 50256)"
        )
    if kind not in ("given", "gpt2"):
        raise PlumblineError(
            f"{tokenizer_key}: {kind}: {folder} holds token files ({first}), which have a tokenizer already: write "
            f"`given` to use the {TOKENIZER} in that folder, or `gpt2`, and its `vocabulary`"
        )
    if kind == "given" and not (folder / TOKENIZER).is_file():
        raise PlumblineError(
            f"{tokenizer_key}: given: there is no {folder / TOKENIZER}; put the tokenizer there that made the token "
            "files, or write `gpt2` if they are GPT-2's"
        )
    for path in files:
        if not dtype and path.suffix == ".bin" and header(path) is None:
            raise PlumblineError(
                f"{name_key(corpus, 'local.dtype')}: missing; {path.relative_to(folder)} in {folder} has no header, "
                "and its name ends without a type: write `dtype: uint16` or `dtype: uint32` there"
            )
