"""Each claim kind's rule."""

from __future__ import annotations

from itertools import permutations

import pytest
from scipy.stats import kendalltau

from plumbline.core.errors import PlumblineError
from plumbline.published.printed_numbers import PaperClaim
from plumbline.results.claims.claim_checkers import (
    ComputedValues,
    at_most_partly,
    chance_of_tau,
    check,
    describe_nearness,
    first,
    in_turn,
    number,
    order,
    parts,
    ranking,
    signs,
    statements,
    statistic,
)
from plumbline.results.claims.claim_tolerances import factor, half_unit, near


def verdict(kind: str, printed: dict, measured: ComputedValues | dict, compare=None, **claim) -> str:
    measured = measured if isinstance(measured, ComputedValues) else ComputedValues(values=measured)
    return check(PaperClaim(id="x", text="", source="", kind=kind, values=printed, **claim), measured, compare)[0]


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
    assert verdict("number", {"a": 1.0}, ComputedValues(values={"a": 1.9}, near=factor(2))) == "reproduced"
    assert verdict("number", {"a": 1.0}, ComputedValues(values={"a": 1.9}, near={"a": near(0.1)})) == "not reproduced"


def test_signs():
    beyond, plain = signs("z", beyond=2.0), signs("gain")
    assert verdict("sign", {"z": 4.5}, {"z": 2.1}, beyond) == "reproduced"
    assert verdict("sign", {"z": 4.5}, {"z": 2.0}, beyond) == "not reproduced"
    assert verdict("sign", {"z": 0.4}, {"z": 0.4}, beyond) == "not reproduced"
    assert verdict("sign", {"z": 4.5}, {"z": -4.5}, beyond) == "not reproduced"
    both = signs("z", "y", beyond=2.0)
    printed = {"z": [-4.0, -9.0], "y": -1.0}
    assert verdict("sign", printed, {"z": [-3.0, -5.0], "y": 0.5}, both) == "not reproduced"
    assert verdict("sign", printed, {"z": [-3.0, -5.0], "y": -2.5}, both) == "reproduced"
    assert verdict("sign", printed, {"z": [-3.0, -1.5], "y": -2.5}, both) == "not reproduced"
    assert verdict("sign", {"gain": 0.01}, {"gain": 7.0}, plain) == "reproduced"
    # Nobody said which value carries the sign: they are numbers.
    assert verdict("sign", {"z": 4.5}, {"z": 2.1}) == "not reproduced"


def test_a_sign_inside_the_noise_is_named_with_its_limit():
    claim = PaperClaim(id="x", text="", source="", kind="sign", values={"z": 4.5})
    why = check(claim, ComputedValues(values={"z": 0.3}), signs("z", beyond=2.0))[1]
    assert "printed sign" in why and "|z| = 2" in why


def test_orders():
    printed, rule = {"names": list("abcdef")}, order("names")
    assert verdict("order", printed, {"names": list("abcdef")}, rule) == "reproduced"
    assert verdict("order", printed, {"names": list("abdcef")}, rule) == "partly"
    assert verdict("order", printed, {"names": list("xabcdyef")}, rule) == "partly"
    assert verdict("order", printed, {"names": list("abcdxy")}, rule) == "not reproduced"
    assert verdict("order", printed, {"names": list("fedcba")}, rule) == "not reproduced"
    # One pair the other way is nothing of four names, which chance puts so in one order of six.
    assert verdict("order", {"names": list("abcd")}, {"names": list("abdc")}, rule) == "not reproduced"
    assert verdict("order", {"names": list("abc")}, {"names": list("xyc")}, rule) == "not reproduced"


@pytest.mark.parametrize("names", [2, 3, 4, 5])
def test_the_chance_of_a_tau_is_its_share_of_all_orders(names):
    taus = [float(kendalltau(range(names), order).statistic) for order in permutations(range(names))]
    for tau in set(taus):
        assert chance_of_tau(names, tau) == pytest.approx(sum(other >= tau - 1e-9 for other in taus) / len(taus))


def test_statistics():
    printed, rule = {"t": 4.39, "q": 0.015}, statistic("t", p="q")
    assert verdict("stat", printed, {"t": 4.0, "q": 0.02}, rule) == "reproduced"
    assert verdict("stat", printed, {"t": 20.0, "q": 1e-5}, rule) == "partly"
    assert verdict("stat", printed, {"t": 2.0, "q": 0.12}, rule) == "not reproduced"
    assert verdict("stat", printed, {"t": -4.4, "q": 0.015}, rule) == "not reproduced"
    assert verdict("stat", printed, {"t": 4.0, "q": 0.02}, statistic("t", p="q", level=0.017)) == "not reproduced"
    beyond = statistic("z", beyond=2.0)
    assert verdict("stat", {"z": 0.2}, {"z": 0.5}, beyond) == "reproduced"
    assert verdict("stat", {"z": 2.36}, {"z": 1.9}, beyond) == "not reproduced"


def test_a_statistic_may_have_its_own_nearness():
    rule = statistic("rho", close=near(0.4))
    assert verdict("stat", {"rho": -0.3}, {"rho": -0.6}, rule) == "reproduced"
    assert verdict("stat", {"rho": -0.3}, {"rho": -0.75}, rule) == "partly"


def test_parts_and_what_stands_beside_a_claim():
    both = parts("here", "there")
    assert verdict("stat", {}, {"here": True, "there": True}, both) == "reproduced"
    assert verdict("stat", {}, {"here": True, "there": False}, both) == "partly"
    assert verdict("stat", {}, {"here": False, "there": False}, both) == "not reproduced"
    rule = in_turn(statements("so"), number, at_most_partly("beside"))
    printed, near_it = {"a": 1.0}, {"a": 1.0, "so": True, "beside": True}
    assert verdict("number", printed, near_it, rule) == "reproduced"
    assert verdict("number", printed, near_it | {"so": False}, rule) == "not reproduced"
    assert verdict("number", printed, near_it | {"a": 2.0}, rule) == "not reproduced"
    assert verdict("number", printed, near_it | {"beside": False}, rule) == "partly"


def test_the_first_of_an_order():
    assert verdict("order", {"order": ["a", "b", "c"]}, {"order": ["a", "c", "b"]}, first("order")) == "reproduced"
    assert verdict("order", {"order": ["a", "b", "c"]}, {"order": ["b", "a", "c"]}, first("order")) == "not reproduced"


def test_a_kind_that_nobody_knows_is_an_error():
    with pytest.raises(PlumblineError, match=r"claims.yaml.*'nmuber'.*none of .*did.*'number'"):
        verdict("nmuber", {"a": 1}, {"a": 1})


def test_ratios_and_names():
    assert verdict("ratio", {"ratio": 8}, {"ratio": 9.0}) == "reproduced"
    assert verdict("ratio", {"ratio": 8}, {"ratio": 45.0}) == "not reproduced"
    assert verdict("qualitative", {"ids": ["a", "b"]}, {"ids": ["b", "a"]}) == "reproduced"
    assert verdict("qualitative", {"ids": ["a", "b"]}, {"ids": ["a"]}) == "partly"
    assert verdict("qualitative", {"ids": ["a", "b"]}, {"ids": []}) == "not reproduced"
    assert verdict("qualitative", {}, ComputedValues(holds=True)) == "reproduced"


def test_factor_needs_the_same_sign():
    assert factor(2)(1.0, 1.9) and not factor(2)(1.0, 2.1) and not factor(2)(1.0, -1.0) and factor(2)(0.0, 0.0)


def test_ties_are_no_order():
    """Sorted names would keep the printed order where all values are one."""
    rule, printed = order("names"), {"names": list("abc")}

    def judge(**numbers: float) -> str:
        return verdict("order", printed, {"names": ranking(numbers, highest_first=True)}, rule)

    assert ranking({"a": 1.0, "b": 2.0, "c": 1.0}, highest_first=True) == ["b", "a = c"]
    assert judge(a=3.0, b=2.0, c=1.0) == "reproduced"
    assert judge(a=3.0, b=2.0, c=2.0) == "not reproduced"
    assert judge(a=1.0, b=1.0, c=1.0) == "not reproduced"
    assert judge(a=1.0, b=1.0, c=2.0) == "not reproduced"
    tied = ranking({"a": 1.0, "b": 1.0}, highest_first=True)
    assert verdict("order", {"names": ["a", "b"]}, {"names": tied}, first("names")) == "not reproduced"


EFFECTS = {
    "its sign": (signs("gain"), {"gain": -0.5, "spread": 0.1}, {"gain": 0.3, "spread": 0.1}),
    "a comparison": (statements("kept"), {"gain": 0.5, "kept": False}, {"gain": 0.3, "spread": 0.1, "kept": True}),
}


@pytest.mark.parametrize("name", list(EFFECTS))
def test_without_its_effect_a_claim_is_not_reproduced(name):
    effect, without, within = EFFECTS[name]
    claim = PaperClaim(id="x", text="", source="", kind="number", values={"gain": 0.5, "spread": 0.1})
    loose = {"gain": near(0.1), "spread": near(0.1)}

    def judge(values: dict[str, object]) -> tuple[str, str]:
        all_values = {"spread": 0.1} | values
        return check(claim, ComputedValues(values=all_values, near=loose), None, effect)

    assert check(claim, ComputedValues(values={"spread": 0.1} | without, near=loose))[0] != "not reproduced"
    assert judge(without)[0] == "not reproduced" and judge(without)[1].startswith("without its effect: ")
    assert judge(within)[0] == "partly"
    assert judge(within | {"gain": 0.5})[0] == "reproduced"


def test_a_statement_that_holds_may_name_an_effect_too():
    claim = PaperClaim(id="x", text="", source="", kind="order", values={})
    there, not_there = (ComputedValues(holds=True, values={"gains": gains}) for gains in (True, False))
    assert check(claim, there, None, statements("gains")) == ("reproduced", "it holds")
    assert check(claim, not_there, None, statements("gains"))[0] == "not reproduced"


def test_how_near_a_value_came():
    claim = PaperClaim(id="x", text="", source="", kind="number", values={"a": 1.0, "b": [2.0, 4.0], "word": "w"})
    values: dict[str, object] = {"a": 1.05, "b": [2.0, -4.0], "word": "w", "more": 1.0}
    by_name = ComputedValues(values=values, near={"a": near(0.1), "b": factor(2)})
    assert describe_nearness(claim, by_name) == "of what is allowed: a 0.5, b infinite"
    # What is not compared as numbers came near to nothing.
    assert describe_nearness(claim, ComputedValues(values=values), signs("a")) == ""
    assert describe_nearness(claim, ComputedValues(values={"a": 1.05})) == "of what is allowed: a 1"
