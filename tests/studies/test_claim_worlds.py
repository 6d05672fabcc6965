"""Every claim has a world in which it is false, and one in which its effect is reversed; or a reason why not.

Each study's tests of claims judge its claims in these worlds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

from plumbline.studies.query_free.claims import theorems
from tests.studies.key_norms import test_key_norms_claims as key_norms
from tests.studies.premature import claims_made_false as premature_worlds
from tests.studies.premature import test_premature_claims as premature
from tests.studies.quack import runs_with_false_claims as quack_worlds
from tests.studies.quack import test_quack_claims as quack
from tests.studies.query_free import runs_with_false_claims as query_free_worlds
from tests.studies.query_free import test_query_free_claims as query_free
from tests.studies.transfer import false_definitions as definitions
from tests.studies.transfer import reversed_worlds
from tests.studies.transfer import runs_with_false_claims as transfer_worlds
from tests.studies.transfer import test_transfer_claims as transfer

STUDIES = {
    "transfer": transfer, "premature": premature, "query_free": query_free, "quack": quack, "key_norms": key_norms,
}  # fmt: skip

#: Study -> claims that have a false world: of runs, of code, or of print.
FALSE: dict[str, Iterable[str]] = {
    # Two counts of tokens are false as they are printed.
    "transfer": (
        *transfer_worlds.MUTANTS, *definitions.FALSE, *definitions.PRINTED_FALSE, "tokens_1p2b", "tokens_3b"
    ),
    "premature": (*premature_worlds.FALSE, *premature.WRONG),
    "query_free": (
        *query_free_worlds.MUTANTS, *query_free_worlds.OF_SPECS, *theorems.STATEMENTS, "single_head",
        *(name for name, (_, verdict, _) in query_free_worlds.TRANSFERS.items() if verdict == "not reproduced"),
        "sigma_max_random", "equal_nonemb_apart", *(f"t2_{method}" for method in query_free.CONFIGURATIONS),
    ),
    "quack": (*quack_worlds.MUTANTS, *quack.CODE_MUTANTS, *quack_worlds.SLOWER),
    "key_norms": (*key_norms.MUTANTS, *key_norms.CODE_MUTANTS, *key_norms.PRINTED_FALSE),
}  # fmt: skip

#: Study -> worlds, the last part of each the claims whose effect it reverses.
REVERSED: dict[str, Mapping[str, tuple]] = {
    "transfer": reversed_worlds.REVERSED,
    "premature": premature_worlds.REVERSED,
    "query_free": query_free_worlds.REVERSED,
    "quack": {**quack_worlds.REVERSED, "slower": (quack_worlds.SLOWER,)},
    "key_norms": {**key_norms.REVERSED, **key_norms.REVERSED_CODE},
}

#: Study -> claims without a direction that could be reversed -> what they state instead.
SIZE = "a size, a definition or a theorem"
UNDIRECTED: dict[str, Mapping[str, str]] = {
    "transfer": reversed_worlds.UNDIRECTED | dict.fromkeys(transfer.ARITHMETIC, SIZE),
    "premature": premature_worlds.UNDIRECTED | dict.fromkeys(premature.WRONG, SIZE),
    "query_free": query_free_worlds.UNDIRECTED,
    "quack": quack_worlds.UNDIRECTED,
    "key_norms": key_norms.UNDIRECTED,
}

#: Study -> claims, with a false world, with a reversed one, without a direction, untestable.
COUNTS: dict[str, tuple[int, ...]] = {
    "transfer": (135, 126, 76, 50, 9),
    "premature": (96, 96, 66, 30, 0),
    "query_free": (47, 45, 17, 28, 2),
    "quack": (21, 21, 11, 10, 0),
    "key_norms": (27, 27, 11, 16, 0),
}


@pytest.mark.parametrize("study", list(STUDIES))
def test_every_claim_has_its_worlds_or_a_reason(study: str) -> None:
    """A claim does not lose its reversed world for a reason unnoticed: their counts stand here."""
    checks, undirected = STUDIES[study].CHECKS, UNDIRECTED[study]
    untestable = {name: check.untested for name, check in checks.items() if check.function is None}
    false = {name for name in FALSE[study] if "," not in name}
    reverse = {name for *_, names in REVERSED[study].values() for name in names}
    assert set(checks) == false | set(untestable) == reverse | set(undirected) | set(untestable)
    assert not reverse & set(undirected) and not (false | reverse) & set(untestable)
    assert all(len(why) > 5 for why in (*undirected.values(), *untestable.values()))
    assert tuple(map(len, (checks, false, reverse, undirected, untestable))) == COUNTS[study]
