"""The recorded losses of every method and variant, and the recorded numbers of every training."""

from __future__ import annotations

import csv
import itertools

import pytest

from plumbline import NUMERICS
from tests.conftest import REPOSITORY
from tests.golden.method_runs import STEPS, TOLERANCE, TOLERANCES, gap, load_all, losses
from tests.golden.trainings import LOSS, TRAININGS, apart, curves
from tests.model.transfer_methods import ALL

#: The methods that the transfer study prints. There may be others besides: a user's, recorded or not.
with open(REPOSITORY / "studies/transfer/published/table2.csv", encoding="utf-8") as _file:
    PRINTED = [row["method_id"] for row in csv.DictReader(_file)]

#: Twenty steps cannot distinguish these: the cap is never reached; GELU and its approximation differ by 2e-6; a lane
#: that enters the output alone, by a weight from 0, moves losses by 4e-6.
NEXT_TO_NOTHING = {"baseline", "softmax_cap", "hyper.at_output"}
#: In training every call is as long as the context.
IN_TRAINING = (
    {"sigmoid_attn", "sigmoid_attn.sequence"},
    {"sigmoid_attn.original", "sigmoid_attn.original_sequence"},
    {"softpick.context", "softpick.sequence"},
)
SAME = (
    *(set(pair) for pair in itertools.combinations(NEXT_TO_NOTHING, 2)),
    {"geglu_ffn", "geglu_ffn.tanh"},
    *IN_TRAINING,
)


def test_recorded_under_this_numerics():
    assert load_all()["numerics"] == NUMERICS, "NUMERICS was bumped; record with `python -m tests.golden.record_golden`"
    assert len(PRINTED) == 20 and set(PRINTED) <= load_all()["losses"].keys()
    assert load_all()["losses"].keys() <= ALL.keys(), "a method went; run `python -m tests.golden.record_golden`"


@pytest.mark.parametrize("method", load_all()["losses"])
def test_golden(method):
    expected, actual = load_all()["losses"][method], losses(method)
    # Rounding grows by training alone.
    tolerances = [TOLERANCE] * 3 + [TOLERANCES.get(method, TOLERANCE)] * (STEPS - 3)
    gaps = [abs(a - b) for a, b in zip(actual, expected, strict=True)]
    first = next((step for step in range(1, STEPS + 1) if not gaps[step - 1] <= tolerances[step - 1]), None)
    assert first is None, (
        f"{method}: the loss at step {first} is {actual[first - 1]}, recorded is {expected[first - 1]} (tolerance "
        f"{tolerances[first - 1]}). If this change of the numerics is meant, bump NUMERICS in "
        "src/plumbline/__init__.py and record again ("
        "`python -m tests.golden.record_golden`); otherwise find what changed"
    )


@pytest.mark.parametrize("training", TRAININGS)
def test_golden_training(training):
    expected, actual = load_all()["trainings"][training], curves(training)
    moved = {name: apart({name: actual.get(name, [])}, {name: expected[name]}) for name in expected}
    tolerance = TOLERANCES.get(training, TOLERANCE)
    assert actual.keys() == expected.keys() and max(moved.values()) <= tolerance, (
        f"{training}: moved by {moved}, of which {tolerance} is tolerated. If this change of the numerics is meant, "
        "bump NUMERICS in src/plumbline/__init__.py and record again with "
        "`python -m tests.golden.record_golden`; otherwise "
        "find what changed"
    )


def test_every_intervention_is_felt_where_it_acts():
    """A training that went like the one without its component would prove nothing of it."""
    trainings = load_all()["trainings"]
    plain = trainings["intervention.none"][LOSS]
    for name, curve in trainings.items():
        looks_on = name.startswith("probe.") or name in ("intervention.none", "intervention.logit_change")
        assert (curve[LOSS] == plain) if looks_on else gap(curve[LOSS], plain) > 20 * TOLERANCE, name
        assert len(curve) > 1 or not looks_on or name == "intervention.none", f"{name} reads nothing"
    acting = [(name, curve[LOSS]) for name, curve in trainings.items() if curve[LOSS] != plain]
    for (first, losses_of_one), (other, losses_of_other) in itertools.combinations(acting, 2):
        assert gap(losses_of_one, losses_of_other) > 2 * TOLERANCE, f"{first} and {other} went alike"


def test_the_losses_tell_methods_apart():
    """What the tolerance could not see would not be worth recording."""
    printed = {method: values for method, values in load_all()["losses"].items() if method.partition(".")[0] in PRINTED}
    assert all(len(values) == STEPS for values in printed.values())
    names = sorted(printed)
    for index, first in enumerate(names):
        for other in names[index + 1 :]:
            apart = gap(printed[first], printed[other])
            tolerance = max(TOLERANCES.get(name, TOLERANCE) for name in (first, other))
            assert (apart < tolerance) if {first, other} in SAME else (apart > 2 * tolerance), (first, other, apart)
