"""Finds how a run's training differs from a baseline's apart from the model, since a gain may come from that."""

from __future__ import annotations

from typing import Any

from plumbline.specs.spec import RunSpec

#: What names a run, the model with its code, which are what is compared, and probes, which only look.
_NO_RECIPE = ("study", "method", "init_seed", "model", "components", "probes", "numerics")


def differences(spec: RunSpec, baseline: RunSpec) -> list[str]:
    """Write a phrase for each key that differs, such as ```optimizer.learning_rate` is 0.1 (baseline: 0.01)``."""
    ours, theirs = _flat(spec.to_dict()), _flat(baseline.to_dict())
    keys = [key for key in ours | theirs if key.split(".")[0] not in _NO_RECIPE and ours.get(key) != theirs.get(key)]
    return [f"`{key}` is {ours.get(key, 'none')} (baseline: {theirs.get(key, 'none')})" for key in keys]


def _flat(spec: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Dotted key -> value."""
    found: dict[str, Any] = {}
    for key, value in spec.items():
        found |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return found
