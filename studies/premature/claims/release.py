"""Checks claims about the release: Table 8 and sections 5.1 and F, replayed over logged scores."""

from __future__ import annotations

import math

from plumbline.published.printed_numbers import PaperClaim
from plumbline.results.claims.claim_checkers import ComputedValues
from plumbline.results.claims.claim_registry import ClaimChecks, Values
from plumbline.results.claims.claim_tolerances import near

from ..release_rule_replay import RuleReplay
from ..run_values import INTERVENTION
from .claim_evidence import ON_THE_GRID, Evidence

CHECKS = ClaimChecks()


#: The first evaluation of the window is at the step nearest to 3 %, which may be a little less.
FIRST = near(0.01)


def _replays(e: Evidence) -> dict[str, RuleReplay]:
    """Every printed rule over the first seed's scores."""
    key = e.key(INTERVENTION)
    for replay in e.replays.values():
        e.require_number(replay.release, key)
    return e.replays


def _rule(e: Evidence, claim: PaperClaim) -> Values:
    replay = _replays(e)[claim.id.removeprefix("t8_")]
    return ComputedValues(
        values={"release_pct": 100 * replay.release}, near=ON_THE_GRID, shown={"forced": replay.forced}
    )


RULES = ("main", "lower_threshold", "higher_threshold", "no_patience", "stricter_patience", "shorter_window")
CHECKS.of(*(f"t8_{rule}" for rule in RULES))(_rule)


@CHECKS.of()
def release_window(e: Evidence, claim: PaperClaim) -> Values:
    """Decide whether every printed rule, replayed over the intervention's logged scores, releases within the window."""
    releases = [100 * replay.release for replay in _replays(e).values()]
    low, high = claim.values["window"]
    inside = all(FIRST(low, release) or low <= release <= high for release in releases)
    return ComputedValues(holds=inside, shown={"earliest": min(releases), "latest": max(releases)})


@CHECKS.of(near=ON_THE_GRID)
def release_main(e: Evidence, claim: PaperClaim) -> Values:
    """Replay the main rule over the intervention's logged scores: its release and its first crossing, in percent."""
    main = _replays(e)["main"]
    crossing = math.inf if math.isnan(main.crossing) else 100 * main.crossing
    return {"release_pct": 100 * main.release, "crossing_pct": crossing}
