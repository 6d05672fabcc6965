"""A check is registered for the claim of its function's name, or for the ids that are given."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from plumbline.core.errors import PlumblineError
from plumbline.published.printed_numbers import PaperClaim
from plumbline.results.claims.claim_checkers import ComputedValues, check, describe_nearness
from plumbline.results.claims.claim_registry import ClaimChecks
from plumbline.results.claims.claim_tolerances import factor, near
from plumbline.results.claims.claim_verdicts import judge_claims


def lower(evidence, claim):
    return {}


def test_a_check_without_ids_is_that_of_its_functions_name() -> None:
    checks = ClaimChecks()
    assert checks.of(scope="arithmetic")(lower) is lower
    assert checks["lower"].function is lower and checks["lower"].scope == "arithmetic"
    checks.of("first", "second")(lower)
    assert set(checks) == {"lower", "first", "second"}
    with pytest.raises(AssertionError, match="lower is checked twice"):
        checks.of()(lower)


@pytest.mark.parametrize("own", [None, near(0.001)], ids=["registered", "its own"])
def test_computed_values_keep_the_registered_nearness(own) -> None:
    """A value within what is allowed and outside the printed rounding, given as values and as ComputedValues."""
    claim = PaperClaim(id="lower", text="", kind="number", values={"steps": 1800}, source="")
    for values in ({"steps": 1700.0}, ComputedValues(values={"steps": 1700.0}, near=own)):
        checks = ClaimChecks()
        checks.of("lower", near=factor(1.25))(lambda evidence, claim, values=values: values)
        computed = checks["lower"](None, claim)
        verdict = "not reproduced" if own is not None and isinstance(values, ComputedValues) else "reproduced"
        assert check(claim, computed, checks["lower"].compare)[0] == verdict
        assert describe_nearness(claim, computed).startswith("of what is allowed: steps ")


def test_of_without_a_call_is_refused() -> None:
    """It would take the function for an id, and register nothing."""
    with pytest.raises(AssertionError, match=r"by of\(\)"):
        ClaimChecks().of(lower)


def test_a_function_that_is_named_as_no_claim_is_refused() -> None:
    checks = ClaimChecks()
    checks.of()(lower)
    claims = [SimpleNamespace(id="lowest")]
    evidence = SimpleNamespace(published=SimpleNamespace(directory=Path("published")))
    with pytest.raises(PlumblineError, match=r"claims\.yaml:.*claim.*'lower'"):
        judge_claims(claims, checks, evidence)
