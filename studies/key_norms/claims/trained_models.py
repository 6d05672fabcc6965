"""Checks claims about key norms and attention over training.

One function for each claim, named as the claim; what it says is in studies/key_norms/published/claims.yaml. All
are about the paper's run; what it leaves open (near 8, very few, goes with) is an interpretation of the study. Next to
a norm stands what weight decay alone would leave of it, and the same layers trained without decay."""

from __future__ import annotations

from plumbline.published.printed_numbers import PaperClaim
from plumbline.results.claims.claim_checkers import ComputedValues, order, ranking
from plumbline.results.claims.claim_registry import ClaimChecks, Values

from ..norm_curves import KEY_NORM
from .claim_evidence import Evidence

CHECKS = ClaimChecks()

#: Half a unit of the last digit that the paper prints of a norm: less is not a change.
HALF_UNIT = 0.05

#: How far from the mean over layers a group's entropy, a share of that of uniform attention, comes in noise.
ENTROPY = 0.02

#: A layer within this share of the initial norm stays near it; very few are at most this share of the layers, most are
#: more than this one.
NEAR, VERY_FEW, MOST = 0.05, 0.2, 0.5


@CHECKS.of("early_final_norm", "middle_final_norm", "late_final_norm")
def final_norm(e: Evidence, claim: PaperClaim) -> Values:
    """Read the final key norm of the claim's group of layers, the mean over them, in the paper's run."""
    group = {"early": "early", "middle": "middle", "late": "final"}[claim.id.partition("_")[0]]
    return ComputedValues(values={"norm": e.norm(group)}, shown=e.reference_norms(group))


@CHECKS.of()
def early_falls(e: Evidence, claim: PaperClaim) -> Values:
    """Decide whether the early layers' key norm ends below the initial norm by more than half a unit of the printed
    digit."""
    values = {"start": e.start(), "end": e.norm("early")}
    fall = values["start"] - values["end"]
    return ComputedValues(
        holds=fall > HALF_UNIT, values=values, shown=e.reference_norms("early"), limits={"fall": (fall, HALF_UNIT)}
    )


@CHECKS.of()
def late_rises(e: Evidence, claim: PaperClaim) -> Values:
    """Decide whether the final layers' key norm ends above the initial norm by more than half a unit of the printed
    digit."""
    values = {"start": e.start(), "end": e.norm("final")}
    rise = values["end"] - values["start"]
    return ComputedValues(
        holds=rise > HALF_UNIT, values=values, shown=e.reference_norms("final"), limits={"rise": (rise, HALF_UNIT)}
    )


@CHECKS.of(compare=order("order"))
def order_end(e: Evidence, claim: PaperClaim) -> Values:
    """Order the final key norms of the three groups of layers and the initial norm, highest first."""
    norms = {name: e.norm(name) for name in ("final", "middle", "early")} | {"init": e.start()}
    return ComputedValues(values={"order": ranking(norms, highest_first=True)}, shown=norms)


@CHECKS.of("low_ratio", "high_ratio")
def ratio(e: Evidence, claim: PaperClaim) -> Values:
    """The initial norm is a claim of its own (init_norm), and none of these two's merit."""
    norm, base = e.norm("early" if claim.id == "low_ratio" else "final"), e.start()
    return ComputedValues(values={"norm": norm, "ratio": norm / base}, shown={"base": base})


def _sides(e: Evidence, noise: float = 0.0) -> dict[str, int]:
    """How many layers end near the initial norm, below it and above it; `noise`: by how much a norm must be farther."""
    norms = e.end(KEY_NORM)
    change, limit = norms.change(), NEAR * norms.start + noise
    return {
        "near": int((change.abs() <= limit).sum()),
        "dampened": int((change < -limit).sum()),
        "amplified": int((change > limit).sum()),
    }


@CHECKS.of()
def few_stay_at_8(e: Evidence, claim: PaperClaim) -> Values:
    """Decide whether at most a fifth of the layers end within 5 % of their initial key norm."""
    sides = _sides(e)
    share = sides["near"] / sum(sides.values())
    return ComputedValues(holds=share <= VERY_FEW, shown=sides, limits={"share near": (share, VERY_FEW)})


@CHECKS.of()
def two_regimes(e: Evidence, claim: PaperClaim) -> Values:
    """Both regimes have layers, and together they have most: those that leave 5 % of the start by more than noise, half
    a unit of the printed digit."""
    sides = _sides(e, HALF_UNIT)
    low, high = sides["dampened"], sides["amplified"]
    share = (low + high) / sum(sides.values())
    return ComputedValues(
        holds=min(low, high) > 0 and share > MOST, shown=sides, limits={"share in a regime": (share, MOST)}
    )


def _attention(e: Evidence, group: str) -> tuple[float, float, dict[str, float]]:
    """How far a group's key norm and its entropy lie above the mean over layers; and all layers' rank correlation."""
    norms, entropies = e.end(KEY_NORM).final, e.entropies()
    norm, entropy = (e.of_group(values, group) - float(values.mean()) for values in (norms, entropies))
    rho = float(norms.corr(entropies, method="spearman"))
    return norm, entropy, {"norm_above_mean": norm, "entropy_above_mean": entropy, "spearman": rho}


@CHECKS.of()
def early_attends_many(e: Evidence, claim: PaperClaim) -> Values:
    """Decide whether the early layers end with a key norm below, and an entropy above, the mean over layers, both by
    more than noise."""
    norm, entropy, numbers = _attention(e, "early")
    limits = {"norm below": (-norm, HALF_UNIT), "entropy above": (entropy, ENTROPY)}
    return ComputedValues(holds=norm < -HALF_UNIT and entropy > ENTROPY, shown=numbers, limits=limits)


@CHECKS.of()
def late_attends_few(e: Evidence, claim: PaperClaim) -> Values:
    """Decide whether the final layers end with a key norm above, and an entropy below, the mean over layers, both by
    more than noise."""
    norm, entropy, numbers = _attention(e, "final")
    limits = {"norm above": (norm, HALF_UNIT), "entropy below": (-entropy, ENTROPY)}
    return ComputedValues(holds=norm > HALF_UNIT and entropy < -ENTROPY, shown=numbers, limits=limits)
