"""Opens a pack for training, and computes the order in which its sequences are read.

The order is a pure function of (number of sequences, data_seed, step): it knows nothing of ranks, workers or resuming.
"""

from __future__ import annotations

import functools
import hashlib
import os
from pathlib import Path

import numpy as np

from plumbline.core.errors import PlumblineError
from plumbline.core.files import name_in_errors
from plumbline.data.manifest import fingerprint, read_pack
from plumbline.data.verify_files import ChecksumList, verify_files

#: Shards open at once; each costs a file descriptor.
_OPEN_SHARDS = 256
#: Of the network that permutes sequences.
_ROUNDS = 10


class _Shard:
    """A shard's file, open for reading. It is not mapped into memory: a disk that fails would kill the process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = os.open(path, os.O_RDONLY)

    def __del__(self) -> None:
        if hasattr(self, "_descriptor"):
            os.close(self._descriptor)

    def read(self, size: int, offset: int) -> bytes:
        """Read `size` bytes from `offset` on.

        Raises:
            PlumblineError: there are fewer.
            OSError: the file cannot be read.
        """
        with name_in_errors(self.path):
            content = os.pread(self._descriptor, size, offset)
        if len(content) != size:
            raise PlumblineError(f"shard {self.path} was cut short while it was read: rerun the rule `pack`")
        return content


class Pack:
    """A pack: sequences of a fixed length, ready to train on, behind a manifest.

    Attributes:
        manifest: content of the manifest.
        sequences: number of sequences.
        context: tokens in a sequence; inputs are its first T-1 tokens, targets its last T-1.
        vocabulary: entries of the tokenizer that made it.
        dtype: type of the ids in its shards.
        separator: id of the tokenizer's entry between documents; None if the manifest names none.
        tokenizer_sha256: of the tokenizer.json that made it.
    """

    def __init__(self, manifest_path: str | Path, context: int | None = None) -> None:
        """Open a pack; files are found and sized, not read: `plumbline.data.verify_files` does that.

        `context` is what the caller is going to feed, if known.

        Raises:
            PlumblineError: the manifest or a shard is missing, a shard is truncated, or the context is another one.
        """
        self.path = Path(manifest_path)
        self.manifest = read_pack(self.path)
        self.sequences: int = self.manifest["sequences"]
        self.context: int = self.manifest["context"]
        self.vocabulary: int = self.manifest["vocabulary"]
        self.separator: int | None = self.manifest.get("separator")
        self.tokenizer_sha256: str = self.manifest["tokenizer_sha256"]
        self.dtype = np.dtype(self.manifest["dtype"])
        self._per_shard: int = self.manifest["sequences_per_shard"]
        self._shard = functools.lru_cache(_OPEN_SHARDS)(self._open)
        shard_sequences = 0
        for entry in self.manifest["shards"]:
            path = self.path.parent / entry["file"]
            expected = entry["sequences"] * self.context * self.dtype.itemsize
            if not path.is_file():
                raise PlumblineError(
                    f"shard {path} of {self.path} is missing: rerun the rule `pack` that makes {self.path}"
                )
            if path.stat().st_size != expected:
                raise PlumblineError(
                    f"shard {path} of {self.path} is truncated or another's: {path.stat().st_size:,} bytes, not "
                    f"{expected:,}: delete it and rerun the rule `pack` that makes {self.path}"
                )
            shard_sequences += entry["sequences"]
        if shard_sequences < self.sequences:
            raise PlumblineError(
                f"{self.path} says {self.sequences} sequences, its shards hold {shard_sequences}: rerun the rule `pack`"
            )
        if context is not None:
            self.require_context(context)

    def __reduce__(self) -> tuple[type[Pack], tuple[Path]]:
        return Pack, (self.path,)

    def _open(self, shard: int) -> _Shard:
        return _Shard(self.path.parent / self.manifest["shards"][shard]["file"])

    def __len__(self) -> int:
        return self.sequences

    @functools.cached_property
    def fingerprint(self) -> str:
        """A hash of what the pack's sequences are made of (`plumbline.data.manifest.fingerprint`)."""
        return fingerprint(self.manifest)

    def require_context(self, context: int) -> None:
        """Refuse a model's context that is not the pack's.

        Raises:
            PlumblineError: it is longer (there are no such sequences), or shorter (tokens would be dropped silently).
        """
        if context != self.context:
            comparison = "longer" if context > self.context else "shorter"
            raise PlumblineError(
                f"model.context {context} is {comparison} than the {self.context} tokens of a sequence of {self.path}: "
                f"make a pack with context {context}, or set model.context to {self.context}"
            )

    def sequence(self, index: int) -> np.ndarray:
        """Read one sequence: int64 (T,)."""
        return self.rows(np.array([index]))[0]

    def rows(self, indices: np.ndarray) -> np.ndarray:
        """Read several sequences, in the order of `indices`: int64 (B, T)."""
        indices = np.asarray(indices, dtype=np.int64)
        if indices.size and not (indices.min() >= 0 and indices.max() < self.sequences):
            raise IndexError(
                f"{self.path} has {self.sequences} sequences; asked for {indices.min()} to {indices.max()}"
            )
        tokens_BT = np.empty((len(indices), self.context), dtype=np.int64)
        size = self.context * self.dtype.itemsize
        for row, index in enumerate(indices):
            shard, offset = divmod(int(index), self._per_shard)
            tokens_BT[row] = np.frombuffer(self._shard(shard).read(size, offset * size), self.dtype)
        return tokens_BT


def order(pack: Pack, data_seed: int, epoch: int, positions: np.ndarray | None = None) -> np.ndarray:
    """The order of sequences in an epoch, a permutation of 0 ... sequences-1; int64.

    Args:
        positions: the places of the epoch that are requested; all by default.
    """
    positions = np.arange(pack.sequences) if positions is None else positions
    return permute(positions, pack.sequences, f"data order\ndata_seed {data_seed}\nepoch {epoch}")


def batch_indices(pack: Pack, data_seed: int, step: int, sequences_per_batch: int) -> np.ndarray:
    """The indices of the sequences in the global batch of `step` (from 0): int64 (sequences_per_batch,).

    Batches run on through the epochs: one may straddle the end of an epoch and the start of the next, which has an
    order of its own. A rank takes its slice of this array.

    Raises:
        PlumblineError: a negative step, or fewer than one sequence per batch.
    """
    if step < 0 or sequences_per_batch < 1:
        raise PlumblineError(f"step {step} and sequences per batch {sequences_per_batch} must be at least 0 and 1")
    positions = np.arange(step * sequences_per_batch, (step + 1) * sequences_per_batch, dtype=np.int64)
    epochs, within = np.divmod(positions, pack.sequences)
    indices = np.empty_like(positions)
    for epoch in np.unique(epochs):
        here = epochs == epoch
        indices[here] = order(pack, data_seed, int(epoch), within[here])
    return indices


def verify_once(pack: Pack) -> int:
    """Verify every shard of `pack`, unless this machine has done so already; returns how many shards were read.

    Raises:
        PlumblineError: a shard's bytes are not those that were packed, or it holds an id that the tokenizer lacks.
    """
    expected = {entry["file"]: entry["sha256"] for entry in pack.manifest["shards"]}
    return verify_files(ChecksumList(pack.path, expected, "shard", "pack", pack.dtype, pack.vocabulary))


def permute(indices: np.ndarray, size: int, key: str) -> np.ndarray:
    """Map each of `indices` (int64, in 0 ... size-1) by the pseudo-random permutation named by `key`; same shape.

    A balanced Feistel network over the smallest even number of bits that holds n, walked along its cycles until it
    lands below n (Black and Rogaway 2002, "Ciphers with arbitrary finite domains", cycle-walking). Nothing of length n
    is held, so a step of a 60-billion-token run finds its sequences in microseconds, and the order is spelled out in
    integer arithmetic: it does not move with the version of a library's random generator.
    """
    assert size > 0 and (indices.size == 0 or (indices.min() >= 0 and indices.max() < size))
    half = np.uint64(max(1, ((size - 1).bit_length() + 1) // 2))
    mask = np.uint64((1 << int(half)) - 1)
    seeds = [
        np.uint64(int.from_bytes(hashlib.sha256(f"{key}\nround {number}".encode()).digest()[:8], "little"))
        for number in range(_ROUNDS)
    ]
    values = indices.astype(np.uint64).ravel()
    outside = np.ones(values.shape, dtype=bool)
    while outside.any():
        walked = values[outside]
        left, right = walked >> half, walked & mask
        for seed in seeds:
            left, right = right, left ^ (_mix(right + seed) & mask)
        values[outside] = (left << half) | right
        outside[outside] = values[outside] >= size
    return values.astype(np.int64).reshape(indices.shape)


def _mix(values: np.ndarray) -> np.ndarray:
    """The finaliser of SplitMix64 (Steele, Lea and Flood 2014): every input bit reaches every output bit."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
