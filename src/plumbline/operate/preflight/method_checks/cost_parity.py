"""Compares a method's cost with its baseline's: parameters, and operations of a training step."""

from __future__ import annotations

from dataclasses import dataclass, replace

import msgspec

from plumbline.model.decoder import on_meta
from plumbline.model.flops import measure_operations, operations
from plumbline.specs.spec import ModelSpec


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelCount:
    """A model's parameters, and its operations of forward and backward on one sequence, each weight used once.

    Attributes:
        run: operations of a forward pass as torch sees them run, a weight as often as it is used; None if the model
            does not run without memory (on the meta device).
    """

    parameters: int
    operations: int
    run: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class CostParity:
    """The costs of a method and of its baseline at one scale.

    Attributes:
        tolerance: percent.
        ffn_width: the width of the FFN that would restore parity; None if none is needed, or none does.
        restored: the method's cost at that width.
    """

    scale: str
    method: ModelCount
    baseline: ModelCount
    tolerance: float
    ffn_width: int | None = None
    restored: ModelCount | None = None

    @property
    def parameters(self) -> float:
        """Percent more parameters than the baseline."""
        return _compute_percent_more(self.method.parameters, self.baseline.parameters)

    @property
    def operations(self) -> float:
        """Percent more operations than the baseline."""
        return _compute_percent_more(self.method.operations, self.baseline.operations)

    @property
    def run(self) -> float:
        """Percent more operations than the baseline as torch sees them run, 0 where they are fewer.

        Fewer prove nothing: a mixer that works in chunks reads fewer keys than the baseline's fused kernel is counted
        with.
        """
        if self.method.run is None or self.baseline.run is None:
            return 0.0
        return max(0.0, _compute_percent_more(self.method.run, self.baseline.run))

    @property
    def excess(self) -> float:
        """The largest of the three percentages (parameters, operations, operations as run), by its size."""
        return max(self.parameters, self.operations, self.run, key=abs)

    @property
    def flagged(self) -> bool:
        """Whether the largest excess is beyond the tolerance."""
        return abs(self.excess) > self.tolerance

    @property
    def text(self) -> str:
        """A sentence that states what is flagged, and what would restore parity; empty if nothing is."""
        if not self.flagged:
            return ""
        sentence = (
            f"at scale {self.scale} it has {self.parameters:+.2f} % parameters and {self.operations:+.2f} % operations "
            f"(tolerance {self.tolerance:g} %)"
        )
        if self.run > max(self.tolerance, self.operations + self.tolerance):
            sentence += f", and {self.run:+.2f} % operations as they run: a weight is used more than once"
        if self.ffn_width is None or self.restored is None:
            return f"{sentence}; no width of the FFN restores parity"
        return (
            f"{sentence}; model.ffn_width: {self.ffn_width} would leave "
            f"{_compute_percent_more(self.restored.parameters, self.baseline.parameters):+.2f} % and "
            f"{_compute_percent_more(self.restored.operations, self.baseline.operations):+.2f} %"
        )


def count_cost(spec: ModelSpec) -> ModelCount:
    """Count parameters and operations of a model of any size, on the meta device."""
    model = on_meta(spec)
    try:
        run = measure_operations(spec)
    except Exception:  # a component may read values, which there are none of without memory: the first count stays
        run = None
    parameters = sum(value.numel() for value in model.parameters())
    return ModelCount(parameters=parameters, operations=operations(model), run=run)


def compare(scale: str, method: ModelSpec, baseline: ModelSpec, tolerance: float) -> CostParity:
    """Compare the costs of a method and its baseline at one scale.

    Beyond the tolerance (percent), the FFN's width is looked for at which the largest excess is gone.
    """
    mine, theirs = count_cost(method), count_cost(baseline)
    parity = CostParity(scale=scale, method=mine, baseline=theirs, tolerance=tolerance)
    if not parity.flagged:
        return parity
    # All counts are straight lines in the FFN's width.
    wide_cost = count_cost(msgspec.structs.replace(method, ffn_width=2 * method.ffn_width))
    name = max(("parameters", "operations", "run"), key=lambda attribute: abs(getattr(parity, attribute)))
    value, target, wider = (getattr(cost, name) for cost in (mine, theirs, wide_cost))
    if None in (value, target, wider) or wider <= value:
        return parity
    width = method.ffn_width + round((target - value) * method.ffn_width / (wider - value))
    if width < 1:
        return parity
    restored = count_cost(msgspec.structs.replace(method, ffn_width=width))
    if abs(replace(parity, method=restored).excess) >= abs(parity.excess):
        return parity
    return replace(parity, ffn_width=width, restored=restored)


def _compute_percent_more(mine: int, theirs: int) -> float:
    return 100 * (mine - theirs) / theirs
