"""Computes a pseudo-random permutation of 0 ... n-1 element by element.

A balanced Feistel network over the smallest even number of bits that holds n, walked along its cycles until it lands
below n (Black and Rogaway 2002, "Ciphers with arbitrary finite domains", cycle-walking). Nothing of length n is held,
so a step of a 60-billion-token run finds its sequences in microseconds, and the order is spelled out in integer
arithmetic: it does not move with the version of a library's random generator.
"""

from __future__ import annotations

import hashlib

import numpy as np

_ROUNDS = 10


def permute(indices: np.ndarray, size: int, key: str) -> np.ndarray:
    """Map each of `indices` (int64, in 0 ... size-1) by the permutation named by `key`; same shape."""
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
