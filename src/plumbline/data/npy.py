"""Memory-maps `.npy` files that others may have written: what its header states and what the file holds must agree."""

from __future__ import annotations

from pathlib import Path
from tokenize import TokenError

import numpy as np

_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def map_array(path: Path) -> np.ndarray:
    """Memory-map the array of a file, however long it states that it is.

    numpy itself reads as much as the header names and leaves what comes after it, without a word.

    Raises:
        ValueError: it is no such file, or holds another number of bytes than its header states.
        OSError: it cannot be read.
    """
    with open(path, "rb") as file:
        version = np.lib.format.read_magic(file)
        if version not in _HEADERS:
            raise ValueError(f"version {version[0]}.{version[1]} of the format is not read")
        try:
            shape, fortran, dtype = _HEADERS[version](file)
        except (TokenError, TypeError, OverflowError, RecursionError, MemoryError) as error:
            raise ValueError(f"its header cannot be read: {type(error).__name__}") from error
        begins, file_size = file.tell(), path.stat().st_size
    entries = 1
    for length in shape:
        entries *= length
    if dtype.hasobject:
        raise ValueError("it holds Python objects")
    if min(shape, default=0) < 0 or file_size - begins != entries * dtype.itemsize:
        raise ValueError(
            f"its header names {entries:,} entries of {dtype}, {entries * dtype.itemsize:,} bytes; "
            f"{file_size - begins:,} come after it"
        )
    if not entries:  # nothing cannot be mapped
        return np.empty(shape, dtype)
    sizes = tuple(map(int, shape))
    if fortran:
        return np.memmap(path, dtype=dtype, mode="r", offset=begins, shape=sizes, order="F")
    return np.memmap(path, dtype=dtype, mode="r", offset=begins, shape=sizes, order="C")
