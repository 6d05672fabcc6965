"""Each claim kind's rule."""

from __future__ import annotations

import pytest

from plumbline.results.checkers import Measured, check, factor, half_unit, near


def verdict(kind: str, printed: dict, measured: Measured | dict, **claim) -> str:
    measured = measured if isinstance(measured, Measured) else Measured(values=measured)
    return check({"id": "x", "kind": kind, "values": printed} | claim, measured)[0]


@pytest.mark.parametrize(("value", "half"), [(0.48, 0.005), (3, 0.5), (1e-4, 5e-5), (2.6e-21, 5e-23), (62, 0.5)])
def test_half_a_unit_of_the_last_printed_digit(value, half):
    assert half_unit(value) == pytest.approx(half)


def test_numbers():
    assert verdict("number", {"a": 0.48, "n": 3}, {"a": 0.4849, "n": 3}) == "reproduced"
    assert verdict("number", {"a": 0.48, "n": 3}, {"a": 0.4849, "n": 4}) == "partly"
    assert verdict("number", {"a": 0.48}, {"a": 0.486}) == "not reproduced"
    assert verdict("number", {"a": 100}, {"a": 108.0}, tolerance="approx") == "reproduced"
    assert verdict("number", {"a": 100}, {"a": 125.0}, tolerance="roughly") == "reproduced"
    assert verdict("number", {"a": [1, 2]}, {"a": [1, 2, 3]}) == "not reproduced"
    assert verdict("number", {"a": ["x", "y"]}, {"a": ["y", "x"]}) == "reproduced"
    assert verdict("number", {"a": 1.0}, Measured(values={"a": 1.9}, near=factor(2))) == "reproduced"
    assert verdict("number", {"a": 1.0}, Measured(values={"a": 1.9}, near={"a": near(0.1)})) == "not reproduced"


def test_signs():
    assert verdict("sign", {"z": 4.5}, {"z": 2.1}) == "reproduced"
    assert verdict("sign", {"z": 4.5}, {"z": 0.3}) == "partly"
    assert verdict("sign", {"z": 4.5}, {"z": -4.5}) == "not reproduced"
    assert verdict("sign", {"z": [-4.0, -9.0], "z_denseformer": -1.0}, {"z": [-3.0, -5.0], "z_denseformer": 0.5}) == (
        "not reproduced"
    )
    assert verdict("sign", {"delta_3b": 0.01}, {"delta_3b": 0.2}) == "reproduced"


def test_orders():
    printed = {"order": list("abcd")}
    assert verdict("order", printed, {"order": list("abcd")}) == "reproduced"
    assert verdict("order", printed, {"order": list("abdc")}) == "partly"
    assert verdict("order", printed, {"order": list("dcba")}) == "not reproduced"
    assert verdict("order", {"tasks": list("abc")}, {"order": list("abx")}) == "partly"


def test_statistics():
    printed = {"t": 4.39, "p": 0.015}
    assert verdict("stat", printed, {"t": 4.0, "p": 0.02}) == "reproduced"
    assert verdict("stat", printed, {"t": 20.0, "p": 1e-5}) == "partly"
    assert verdict("stat", printed, {"t": 2.0, "p": 0.12}) == "not reproduced"
    assert verdict("stat", printed, {"t": -4.4, "p": 0.015}) == "not reproduced"
    assert verdict("stat", {"z": 0.2}, {"z": 0.5}) == "reproduced"
    assert verdict("stat", {"z": 2.36}, {"z": 1.9}) == "not reproduced"


def test_ratios_and_names():
    assert verdict("ratio", {"ratio": 8}, {"ratio": 9.0}) == "reproduced"
    assert verdict("ratio", {"ratio": 8}, {"ratio": 45.0}) == "not reproduced"
    assert verdict("qualitative", {"ids": ["a", "b"]}, {"ids": ["b", "a"]}) == "reproduced"
    assert verdict("qualitative", {"ids": ["a", "b"]}, {"ids": ["a"]}) == "partly"
    assert verdict("qualitative", {"ids": ["a", "b"]}, {"ids": []}) == "not reproduced"
    assert verdict("qualitative", {}, Measured(holds=True)) == "reproduced"


def test_factor_needs_the_same_sign():
    assert factor(2)(1.0, 1.9) and not factor(2)(1.0, 2.1) and not factor(2)(1.0, -1.0) and factor(2)(0.0, 0.0)
