"""Loads, multiplies and stores tiles for all kernels: scores, running softmax statistics, and how kernels are launched.

Letters of a tile's axes: M queries, N keys, W the head width padded to a power of two. Queries, keys and values may
have any strides but a last one of 1; what a kernel writes, and the gradient that it is given, lie as (B, T, H, W), the
order in which projections make and read heads. Exponentials are of base 2, with log2(e) in the scale of the scores.

A program holds a block of rows and walks over the blocks of the other axis: forward and for the queries' gradient it
holds queries and walks over keys up to them; for the gradient of keys and values it holds keys and walks over queries
from them on. A number that several query heads share is thus summed by one program in a fixed order: gradients are the
same from run to run, and grouped keys are never repeated. Only the blocks on the diagonal (`EDGE`) need a mask: the
others are visible as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl
from triton import knobs

from plumbline.model.kernels.block_choices import choose, pad_width

LOG2E = tl.constexpr(1.4426950408889634)
#: Whether kernels run in Triton's interpreter, on the CPU. It multiplies bfloat16 as if it were integers.
INTERPRETED = tl.constexpr(bool(knobs.runtime.interpret))


@triton.jit
def single(number):
    """A number from the host in float32. A launch gives it so; code of torch.compile gives Python's numbers in 64 bits,
    which would turn sums that begin in float32 into sums in float64."""
    return tl.cast(number, tl.float32)


@triton.jit
def origin(x, batch, head, per_batch, per_head):
    """The place in memory where a head's rows begin, in 64 bits, since a tensor may have more than 2^31 numbers."""
    return x + tl.cast(batch, tl.int64) * per_batch + tl.cast(head, tl.int64) * per_head


@triton.jit
def queries_held(HEADS: tl.constexpr, HELD: tl.constexpr):
    """The first query that this program holds, its sequence, and its head.

    Programs with the last queries, which see most keys, come first, so that no long program is left at the end.
    """
    first = (tl.num_programs(1) - 1 - tl.program_id(1)) * HELD
    return first, tl.program_id(0) // HEADS, tl.program_id(0) % HEADS


@triton.jit
def keys_held(GROUPS: tl.constexpr, HELD: tl.constexpr):
    """The first key that this program holds, its sequence, and its group.

    Programs with the first keys, which most queries see, come first.
    """
    return tl.program_id(1) * HELD, tl.program_id(0) // GROUPS, tl.program_id(0) % GROUPS


@triton.jit
def numbers_of(rows, length):
    """Offsets of this program's rows in a tensor that has one number for each row of a head."""
    return tl.cast(tl.program_id(0), tl.int64) * length + rows


@triton.jit
def load_tile(start, rows, per_row, length, WIDTH: tl.constexpr, PADDED: tl.constexpr):
    """Load a tile (rows, PADDED), with zeros beyond `length` rows and beyond the head's width."""
    columns = tl.arange(0, PADDED)
    inside = (rows[:, None] < length) & (columns[None, :] < WIDTH)
    return tl.load(start + rows[:, None] * per_row + columns[None, :], mask=inside, other=0.0)


@triton.jit
def store_tile(start, tile, rows, per_row, length, WIDTH: tl.constexpr, PADDED: tl.constexpr):
    """Store the part of a tile (rows, PADDED) that lies within `length` rows and the head's width."""
    columns = tl.arange(0, PADDED)
    inside = (rows[:, None] < length) & (columns[None, :] < WIDTH)
    values = tile.to(start.dtype.element_ty)
    tl.store(start + rows[:, None] * per_row + columns[None, :], values, mask=inside)


@triton.jit
def product(left, right, PRECISION: tl.constexpr):
    """A matrix product summed in float32; the left side takes the right one's type."""
    left = left.to(right.dtype)
    if INTERPRETED:
        left, right = left.to(tl.float32), right.to(tl.float32)
    return tl.dot(left, right, input_precision=PRECISION)


@triton.jit
def scores(left_XW, right_YW, scale, seen_XY, EDGE: tl.constexpr, PRECISION: tl.constexpr):
    """Scaled dot products (X, Y); -inf where a query does not see a key."""
    z_XY = product(left_XW, tl.trans(right_YW), PRECISION) * scale
    if EDGE:
        z_XY = tl.where(seen_XY, z_XY, float("-inf"))
    return z_XY


@triton.jit
def update_softmax(top_M, total_M, z_MN):
    """Update the running maximum and sum of a softmax with one more tile of scores.

    Returns the new maximum and sum, the factor that multiplies what was summed before, and the tile's terms. In every
    row this tile or an earlier one must have a finite score.
    """
    higher_M = tl.maximum(top_M, tl.max(z_MN, 1))
    factor_M = tl.exp2(top_M - higher_M)
    terms_MN = tl.exp2(z_MN - higher_M[:, None])
    return higher_M, total_M * factor_M + tl.sum(terms_MN, 1), factor_M, terms_MN


@dataclass(frozen=True, kw_only=True, slots=True)
class BlockSizes:
    """Number of rows that a program holds and of those that it walks over at a time, and how it is compiled.

    `held` is a multiple of `walked`; both are powers of two of at least 16.
    """

    held: int
    walked: int
    warps: int = 8
    stages: int = 2


def blocks_for(kernel: str, q_BHTW: torch.Tensor) -> BlockSizes:
    """The blocks of a kernel for these queries, by the table of `plumbline.model.kernels.block_choices`."""
    held, walked, warps, stages = choose(kernel, q_BHTW).blocks
    return BlockSizes(held=held, walked=walked, warps=warps, stages=stages)


def strides(*tensors: torch.Tensor) -> tuple[int, ...]:
    """Batch, head and row strides of each tensor, one after another."""
    return tuple(step for x in tensors for step in x.stride()[:3])


def rows_apart(x_BHTW: torch.Tensor) -> torch.Tensor:
    """The tensor with the numbers of a row contiguous, as kernels read them; copied only if they are not."""
    return x_BHTW if x_BHTW.stride(-1) == 1 else x_BHTW.contiguous()


def by_token(x_BHTW: torch.Tensor) -> torch.Tensor:
    """A copy of the tensor with the memory layout (B, T, H, W)."""
    return x_BHTW.transpose(1, 2).contiguous().transpose(1, 2)


def empty_by_token(like_BHTW: torch.Tensor, heads: int | None = None) -> torch.Tensor:
    """An uninitialised tensor of the same size, or of another number of heads, with the memory layout (B, T, H, W)."""
    batch, own_heads, length, width = like_BHTW.shape
    return like_BHTW.new_empty(batch, length, heads or own_heads, width).transpose(1, 2)


def sizes(q_BHTW: torch.Tensor, k_BGTW: torch.Tensor, blocks: BlockSizes) -> dict[str, Any]:
    """The compile-time constants of a kernel for these queries, keys and blocks."""
    width = q_BHTW.shape[-1]
    return {
        "HEADS": q_BHTW.shape[1],
        "GROUPS": k_BGTW.shape[1],
        "WIDTH": width,
        "PADDED": pad_width(width),
        "HELD": blocks.held,
        "WALKED": blocks.walked,
        # Of float32 products alone; others are exact in float32.
        "PRECISION": "tf32" if torch.backends.cuda.matmul.allow_tf32 else "ieee",
        "num_warps": blocks.warps,
        "num_stages": blocks.stages,
    }


def grid(x_BHTW: torch.Tensor, blocks: BlockSizes, heads: int | None = None) -> tuple[int, int]:
    """The launch grid: sequences times heads (CUDA allows two billion), and blocks of rows (65,535)."""
    return x_BHTW.shape[0] * (heads or x_BHTW.shape[1]), triton.cdiv(x_BHTW.shape[2], blocks.held)
