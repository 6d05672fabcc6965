"""No claim is partly reproduced where what it says is turned around: every sign, nothing left of it, its order.

Values are those of the world in which the paper is right, changed after they were computed. Each study's
tests of claims turn runs; that noise alone reproduces none is held by `test_replication_rates.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plumbline.results.claims.claim_checkers import ComputedValues, check
from plumbline.results.claims.claim_registry import ClaimChecks, ClaimEvidence, MissingRun

Right = tuple[ClaimChecks, ClaimEvidence]


def transfer(root: Path) -> Right:
    """The study's checks, and the evidence of a world in which the paper is right."""
    from plumbline.studies.transfer.claims import CHECKS, Evidence
    from tests.studies.transfer.synthetic_results import PUBLISHED, hold_frames, right, study_at

    return CHECKS, Evidence(hold_frames(right()), study_at(), PUBLISHED)


def premature(root: Path) -> Right:
    """Likewise."""
    from plumbline.studies.premature.claims import CHECKS, Evidence
    from tests.studies.premature.synthetic_runs import PUBLISHED, load_published, study_at

    return CHECKS, Evidence(load_published(), study_at(), PUBLISHED)


def query_free(root: Path) -> Right:
    """Likewise."""
    from plumbline.studies.query_free.claims import CHECKS, Evidence
    from tests.studies.query_free import synthetic_runs as runs

    runs.write_transfer(runs.Transfer(), runs.write_runs(runs.as_the_document_says(), root))
    return CHECKS, Evidence(runs.load_frames(root), runs.study_at(), runs.PUBLISHED)


def quack(root: Path) -> Right:
    """Likewise."""
    from plumbline.studies.quack.claims import CHECKS, Evidence
    from tests.studies.quack import synthetic_runs as runs

    written = runs.Written(root, runs.right()).measured("step_time", runs.times(qk_norm=1.0, quack=0.9))
    return CHECKS, Evidence(written.load(), written.study, runs.PUBLISHED)


def key_norms(root: Path) -> Right:
    """Likewise."""
    from plumbline.studies.key_norms.claims import CHECKS, Evidence
    from tests.studies.key_norms import synthetic_runs as runs

    world = runs.World(root)
    return CHECKS, Evidence(world.load(), world.study, runs.PUBLISHED)


STUDIES: dict[str, Callable[[Path], Right]] = {
    function.__name__: function for function in (transfer, premature, query_free, quack, key_norms)
}


def turn(value: Any) -> Any:
    """The other sign, none of several names or of several that were counted, not so."""
    if isinstance(value, (bool, np.bool_)):
        return False
    if isinstance(value, (int, float, np.integer, np.floating)):
        return -value or 1
    if isinstance(value, (list, tuple)):
        return [turn(item) for item in value] if value and not isinstance(value[0], str) else ["none"]
    return "none"


def empty(value: Any) -> Any:
    """Nothing left: no count, no name, no size."""
    is_number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, (bool, np.bool_))
    if isinstance(value, (list, tuple)) and value and not isinstance(value[0], str):
        return [0 for _ in value]
    return 0 if is_number else turn(value)


def reverse(value: Any) -> Any:
    """The names of an order the other way round; another value is turned."""
    is_order = isinstance(value, list) and len(value) > 1 and isinstance(value[0], str)
    return value[::-1] if is_order else turn(value)


CHANGES: dict[str, Callable[[Any], Any]] = {"every sign": turn, "none left": empty, "order reversed": reverse}

NOTHING = {"none left"}
#: Study -> claim -> changes that do not turn its sense, and why.
EXCEPT: dict[str, dict[str, tuple[set[str], str]]] = {
    "transfer": {
        "a100_per_task": ({"every sign", "none left"}, "a bound"),
        "ssmax_init": ({"every sign", "none left"}, "one of its numbers is a bound"),
        "hyper_identity_init": (NOTHING, "one of its numbers is printed as zero"),
        "selective_zero_params": (NOTHING, "nothing is what it claims"),
    },
    "premature": {"downstream_largest": ({"order reversed"}, "which tasks gain most is claimed, and not their order")},
    "query_free": {
        "t2_wq_identity": (NOTHING, "no difference is what it claims"),
        "pct_wq_identity": (NOTHING, "no difference is what it claims"),
        "equal_nonemb_apart": (NOTHING, "nothing is what it claims"),
    },
    "quack": {"competitive_mha": (NOTHING, "competitive is what it claims first: as low a loss is that too")},
}


@pytest.mark.parametrize("study", list(STUDIES))
def test_a_claim_whose_sense_is_turned_around_is_not_reproduced(study: str, tmp_path: Path) -> None:
    checks, evidence = STUDIES[study](tmp_path)
    reproduced: dict[str, set[str]] = {}
    looked_at = 0
    for claim in evidence.published.claims():
        registered = checks[claim.id]
        try:
            computed = registered(evidence, claim) if registered.function else ComputedValues()
        except MissingRun:
            continue
        if computed.holds is not None or not computed.values:
            continue  # what holds or not is turned by worlds of runs
        looked_at += 1
        for name, change in CHANGES.items():
            if name == "order reversed" and claim.kind != "order":
                continue
            turned = replace(computed, values={key: change(value) for key, value in computed.values.items()})
            if check(claim, turned, registered.compare, registered.effect)[0] != "not reproduced":
                reproduced.setdefault(claim.id, set()).add(name)
    assert looked_at > 10
    assert reproduced == {claim: changes for claim, (changes, _) in EXCEPT.get(study, {}).items()}
