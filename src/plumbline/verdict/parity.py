"""What a method has more or less of than its baseline: parameters, and operations of a training step."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from plumbline.model.decoder import on_meta
from plumbline.model.flops import operations
from plumbline.specs.spec import ModelSpec


@dataclass(frozen=True, kw_only=True, slots=True)
class Count:
    """Parameters, and operations of forward and backward on one sequence."""

    parameters: int
    operations: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Parity:
    """A method beside its baseline at one scale.

    Attributes:
        tolerance: percent.
        ffn_width: the width of the FFN that would restore parity; None where none is needed, or none does.
        restored: what the method has at that width.
    """

    scale: str
    method: Count
    baseline: Count
    tolerance: float
    ffn_width: int | None = None
    restored: Count | None = None

    @property
    def parameters(self) -> float:
        """Percent more parameters than the baseline."""
        return _more(self.method.parameters, self.baseline.parameters)

    @property
    def operations(self) -> float:
        """Percent more operations than the baseline."""
        return _more(self.method.operations, self.baseline.operations)

    @property
    def flagged(self) -> bool:
        return max(abs(self.parameters), abs(self.operations)) > self.tolerance

    @property
    def words(self) -> str:
        """What is flagged, and what would restore parity; empty where nothing is."""
        if not self.flagged:
            return ""
        said = (
            f"at scale {self.scale} it has {self.parameters:+.2f} % parameters and {self.operations:+.2f} % operations "
            f"(tolerance {self.tolerance:g} %)"
        )
        if self.ffn_width is None or self.restored is None:
            return f"{said}; no width of the FFN restores parity"
        return (
            f"{said}; model.ffn_width: {self.ffn_width} would leave "
            f"{_more(self.restored.parameters, self.baseline.parameters):+.2f} % and "
            f"{_more(self.restored.operations, self.baseline.operations):+.2f} %"
        )


def count(spec: ModelSpec) -> Count:
    """Of a model without memory, at any size."""
    model = on_meta(spec)
    return Count(parameters=sum(value.numel() for value in model.parameters()), operations=operations(model))


def compare(scale: str, method: ModelSpec, baseline: ModelSpec, tolerance: float) -> Parity:
    """Count both; beyond the tolerance, look for the FFN's width at which the larger of the two excesses is gone."""
    mine, theirs = count(method), count(baseline)
    found = Parity(scale=scale, method=mine, baseline=theirs, tolerance=tolerance)
    if not found.flagged:
        return found
    # Both counts are straight lines in the FFN's width.
    other = count(msgspec.structs.replace(method, ffn_width=2 * method.ffn_width))
    by_parameters = abs(found.parameters) >= abs(found.operations)
    name = "parameters" if by_parameters else "operations"
    slope = (getattr(other, name) - getattr(mine, name)) / method.ffn_width
    if slope <= 0:
        return found
    width = method.ffn_width + round((getattr(theirs, name) - getattr(mine, name)) / slope)
    if width < 1:
        return found
    restored = count(msgspec.structs.replace(method, ffn_width=width))
    left = max(_more(restored.parameters, theirs.parameters), _more(restored.operations, theirs.operations), key=abs)
    if abs(left) >= max(abs(found.parameters), abs(found.operations)):
        return found
    return Parity(scale=scale, method=mine, baseline=theirs, tolerance=tolerance, ffn_width=width, restored=restored)


def _more(mine: int, theirs: int) -> float:
    return 100 * (mine - theirs) / theirs
