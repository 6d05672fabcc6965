"""Cuts a batch into micro-batches.

How it is cut is derived, checked, printed and recorded, never part of a run's identity.
"""

from __future__ import annotations

from dataclasses import dataclass

from plumbline.core.errors import PlumblineError


@dataclass(frozen=True, kw_only=True, slots=True)
class MicroBatching:
    """The way in which the batch of one optimizer step is cut up.

    `sequences` in the whole batch; `micro_batch` sequences at a time on each of `ranks` ranks, `accumulation` times.
    """

    sequences: int
    micro_batch: int
    accumulation: int
    ranks: int

    @classmethod
    def derive(cls, sequences: int, micro_batch: int | None, ranks: int) -> MicroBatching:
        """Derive how to cut a batch of so many sequences.

        Without a `micro_batch`, or with one beyond its share, a rank takes its whole share at once.

        Raises:
            PlumblineError: the batch is not a whole number of micro-batches on every rank.
        """
        if sequences % ranks:
            raise PlumblineError(
                f"train.batch_tokens: a batch of {sequences} sequences cannot be shared by {ranks} ranks; "
                f"use a number of ranks that divides {sequences}"
            )
        share = sequences // ranks
        micro_batch = share if micro_batch is None else min(micro_batch, share)
        if micro_batch < 1 or share % micro_batch:
            divisors = [number for number in range(1, share + 1) if share % number == 0]
            raise PlumblineError(
                f"--micro-batch {micro_batch} does not divide the {share} sequences that each of {ranks} rank(s) has "
                f"of a batch of {sequences}; use one of {divisors}"
            )
        return cls(sequences=sequences, micro_batch=micro_batch, accumulation=share // micro_batch, ranks=ranks)

    def describe(self) -> str:
        """Say for the log how the batch is cut."""
        return (
            f"batch: {self.sequences} sequences = {self.micro_batch} (micro-batch) x {self.accumulation} (accumulation)"
            f" x {self.ranks} (ranks)"
        )

    def micro_batches(self, rank: int) -> list[slice]:
        """List the places in the global batch that `rank` reads, one slice a micro-batch."""
        start = rank * self.micro_batch * self.accumulation
        return [
            slice(start + number * self.micro_batch, start + (number + 1) * self.micro_batch)
            for number in range(self.accumulation)
        ]
