"""The measurement of figure 2: its frame, and options that cannot be meant."""

from __future__ import annotations

from typing import Any

import pytest

from plumbline.core.errors import PlumblineError
from plumbline.specs.study_config import Study
from plumbline.studies.query_free.measurements.basis_transfer import basis_transfer
from plumbline.studies.query_free.theory.basis_transfer import QUANTITIES

STUDY = Study(name="query_free", preset="smoke", definition={}, runs={})
OPTIONS: dict[str, Any] = {
    "widths": [4, 6],
    "seeds": [0, 1],
    "steps": 60,
    "batch": 64,
    "learning_rate": 0.01,
    "weight_decay": 0.1,
    "gradient_clip": 3.0,
    "ridge": 1e-6,
    "ridge_samples": 500,
    "samples": 200,
    "targets": ["eq_14", "eq_13"],
    "evaluations": 2,
}


def test_both_arms_are_read_at_every_width_and_seed() -> None:
    messages: list[str] = []
    frame = basis_transfer(STUDY, OPTIONS, messages.append)
    assert list(frame.columns) == ["h", "seed", "arm", "step", "quantity", "value"]
    assert frame.value.notna().all()
    mlp, linear = frame[frame.arm == "mlp"], frame[frame.arm == "linear"]
    assert len(mlp) == 2 * 2 * 3 * len(QUANTITIES) and sorted(mlp.step.unique()) == [0, 30, 60]
    assert len(linear) == 2 * 2 * (len(QUANTITIES) + 3) and linear.step.isna().all()
    assert not frame.duplicated(["h", "seed", "arm", "step", "quantity"]).any()
    wide = linear.pivot(index=["h", "seed"], columns="quantity", values="value")
    assert (wide.relative_l2 / wide.exact_relative_l2).between(0.8, 1.3).all()
    assert (wide.exact_relative_l2_intercept < wide.exact_relative_l2).all()
    errors = mlp[mlp.quantity == "relative_l2"].pivot(index=["h", "seed"], columns="step", values="value")
    assert (errors[60] < errors[0]).all()
    assert set(frame.arm) == {"mlp", "linear", "mlp_eq_13", "linear_eq_13"}
    assert len(frame) == 2 * (len(mlp) + len(linear))
    assert len(messages) == 2 * 2 * 4 * 2 and "h 4, seed 0, mlp on" in messages[1]
    assert frame.equals(basis_transfer(STUDY, OPTIONS, messages.append))


@pytest.mark.parametrize(
    "change, message",
    [
        ({"width": [4]}, "smoke: unknown key 'width'; did you mean 'widths'"),
        ({"steps": 0}, r"smoke\.steps"),
        ({"learning_rate": "fast"}, r"smoke\.learning_rate"),
        ({"widths": []}, r"smoke\.widths"),
        ({"widths": [4, 6, 4]}, r"smoke.*`widths` names one of \[4, 6, 4\] twice"),
        ({"seeds": []}, r"smoke\.seeds"),
        ({"targets": ["eq_15"]}, r"smoke\.targets"),
        ({"seeds": [1, 1]}, r"smoke.*`seeds` names one of \[1, 1\] twice"),
        ({"seeds": [0, -1]}, r"smoke\.seeds"),
    ],
)
def test_options_that_cannot_be_meant_are_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(PlumblineError, match="measurements.basis_transfer." + message):
        basis_transfer(STUDY, OPTIONS | change, print)


def test_an_option_that_is_missing_is_named() -> None:
    with pytest.raises(PlumblineError, match="'ridge' is missing"):
        basis_transfer(STUDY, {key: value for key, value in OPTIONS.items() if key != "ridge"}, print)
