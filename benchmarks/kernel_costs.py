"""Counts what a kernel's forward and backward passes cost: multiplications, bytes kept, bytes moved.

A product is one multiplication for each pair of query and key and each coordinate of a head: scores are one, weights
times values another. Tests hold products and kept bytes equal to what the kernels do in Triton's interpreter.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class KernelCost:
    """The cost of one kernel.

    Attributes:
        forward: products of the forward pass, per attending head.
        queries: products of the queries' gradient, per attending head.
        keys: products of the keys' and values' gradient, per attending head.
        keys_per_group: further products of that gradient, per group of keys and values.
        forward_alone: products of the forward pass where no gradient is asked for; None: as `forward`.
        kept: tensors of the output's size that backward needs.
        rows: float32 numbers kept for each row of a head.
        output: whether the output is itself the kept tensor, which the projection after it keeps in any case.
    """

    forward: int
    queries: int
    keys: int
    keys_per_group: int = 0
    forward_alone: int | None = None
    kept: int = 1
    rows: int = 1
    output: bool = True


#: Flash attention's second form walks once in backward, summing the queries' gradient in memory in no fixed order.
FLASH = KernelCost(forward=2, queries=0, keys=5)

COSTS = {
    "flash": FLASH,
    "bounded": KernelCost(forward=2, queries=3, keys=4),
    "softpick": KernelCost(forward=4, forward_alone=3, queries=3, keys=4, rows=2, output=False),
    "softpick_original": KernelCost(forward=2, queries=3, keys=4),
    "sigmoid": KernelCost(forward=2, queries=3, keys=4, kept=0, rows=0, output=False),
    "selective": KernelCost(forward=3, queries=5, keys=4, keys_per_group=2),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class AttentionShape:
    """Sizes of one layer's attention: `heads` query heads, of which `out` attend; `size` is a number's bytes."""

    batch: int
    heads: int
    groups: int
    out: int
    length: int
    width: int
    size: int = 2

    def bytes(self, heads: int) -> int:
        """Bytes of one tensor (batch, heads, length, width)."""
        return self.batch * heads * self.length * self.width * self.size

    @property
    def inputs(self) -> int:
        """Bytes of queries, keys and values."""
        return self.bytes(self.heads) + 2 * self.bytes(self.groups)

    @property
    def row(self) -> int:
        """Bytes of one float32 number for each row of an attending head."""
        return self.batch * self.out * self.length * 4


def operations(cost: KernelCost, shape: AttentionShape, *, block: int = 1) -> tuple[int, int]:
    """Operations (two per multiplication) of the forward and the backward pass, over the visible pairs of blocks."""
    blocks = -(-shape.length // block)
    pairs = shape.batch * block * block * blocks * (blocks + 1) // 2
    backward = (cost.queries + cost.keys) * shape.out + cost.keys_per_group * shape.groups
    return 2 * pairs * shape.width * cost.forward * shape.out, 2 * pairs * shape.width * backward


def count_kept_bytes(cost: KernelCost, shape: AttentionShape, *, output: bool = False) -> int:
    """Bytes that stay in memory until the backward pass; `output` adds those of the output where it is not kept."""
    more = 1 if output and not cost.output else 0
    return shape.inputs + (cost.kept + more) * shape.bytes(shape.out) + cost.rows * shape.row


def count_moved_bytes(cost: KernelCost, shape: AttentionShape) -> tuple[int, int]:
    """The fewest bytes that the forward and the backward pass read and write: every tensor once per kernel."""
    out, rows = shape.bytes(shape.out), cost.rows * shape.row
    forward = shape.inputs + out + (0 if cost.output else cost.kept * out) + rows
    gradients = shape.bytes(shape.heads) + 2 * shape.bytes(shape.groups)
    delta = shape.row if cost.kept else 0
    walks = 2 if cost.queries else 1
    backward = walks * (shape.inputs + out + rows) + cost.kept * out + walks * delta + gradients
    return forward, backward
