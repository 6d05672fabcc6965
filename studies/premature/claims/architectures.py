"""Checks claims about architectures: sections 5.5 and 5.6, Tables 3 to 5, Figure 2."""

from __future__ import annotations

from plumbline.published.printed_numbers import PaperClaim
from plumbline.results.claims.claim_checkers import Compare, ComputedValues, in_turn, order, signs, statements
from plumbline.results.claims.claim_registry import ClaimChecks, Values
from plumbline.results.claims.claim_tolerances import near
from plumbline.stats.rank_correlation import spearman

from ..run_values import CONTROL, Part, name_slowed_run
from ..tables.table3 import ARCHITECTURES
from ..tables.table5 import RUNS, reduction
from .claim_evidence import ENTROPY, GAIN, LEVEL, LOGIT, WRITE, Evidence, rank

CHECKS = ClaimChecks()

#: A reduction of a write in percent: the printed ones of two gates differ by about three.
REDUCTION = near(6.0)

#: "Most of the gain", and "a substantial gain": more than half of it.
MOST = 0.5

#: Ranks of entropy and gain over seven architectures count as related from here on: one order of twenty has as much.
RELATED = -0.714

#: Architectures whose printed gain is smaller than noise may make it: their rows say how they read.
SUPPRESSED = ("gpt_swiglu", "gpt_geglu", "llama")


def _readouts(e: Evidence, architecture: str) -> dict[str, float]:
    return {"logit": e.logit(architecture), "entropy": e.entropy(architecture)}


CLOSE = {"ppl_reduction": GAIN, "gain": GAIN, "logit": LOGIT, "entropy": ENTROPY}


def _table3(e: Evidence, claim: PaperClaim) -> Values:
    architecture = claim.id.removeprefix("t3_")
    values = {"ppl_reduction": e.architecture_gain(architecture)} | _readouts(e, architecture)
    return values | _suppresses(e, architecture)


def _suppresses(e: Evidence, architecture: str) -> dict[str, bool]:
    return {"suppresses": e.suppresses(architecture)} if architecture in SUPPRESSED else {}


def _gains_or_suppresses(gain: str, architecture: str) -> Compare:
    """The gain beyond noise; where it is printed smaller than that, its sign, and readings that are beyond it."""
    if architecture in SUPPRESSED:
        return in_turn(signs(gain), statements("suppresses"))
    return signs(gain, beyond=GAIN.limit)


for _name in (name for name in ARCHITECTURES if name != "gpt_geglu"):
    CHECKS.of(f"t3_{_name}", near=CLOSE, effect=_gains_or_suppresses("ppl_reduction", _name))(_table3)


@CHECKS.of(
    effect=in_turn(signs("gain"), statements("barely")), near={"control": LEVEL, "intervention": LEVEL, "gain": GAIN}
)
def llama_gain(e: Evidence, claim: PaperClaim) -> Values:
    """Read the final perplexities of the LLaMA-style control and of its slowed run, and their difference, which is
    less than half of what the GPT-style block gains beyond noise."""
    control, intervention, gpt = e.ppl("llama"), e.ppl(name_slowed_run("llama")), e.architecture_gain(CONTROL)
    gain = control - intervention
    values = {
        "control": control,
        "intervention": intervention,
        "gain": gain,
        "barely": gain < MOST * gpt and gpt > GAIN.limit,
    }
    return ComputedValues(values=values, limits=_share_kept(gain, gpt))


def _gains(e: Evidence) -> dict[str, float]:
    return {name: e.architecture_gain(name) for name in ARCHITECTURES}


@CHECKS.of(compare=order("order"), effect=statements("ends_apart"))
def gain_order(e: Evidence, claim: PaperClaim) -> Values:
    """Order the seven architectures by the perplexity that the intervention gains in them, largest gain first."""
    return rank(claim, _gains(e), GAIN, highest_first=True)


def _read_with_gpt(e: Evidence, architecture: str) -> tuple[dict[str, float], dict[str, float]]:
    """Gain, upper logit and upper entropy of an architecture, and of the GPT-style block that it is compared with."""
    mine, gpt = ({"gain": e.architecture_gain(name)} | _readouts(e, name) for name in (architecture, CONTROL))
    return mine, gpt


@CHECKS.of(effect=statements("keeps_most", "keeps_logit", "keeps_entropy"), near=CLOSE)
def rmsnorm_alone(e: Evidence, claim: PaperClaim) -> Values:
    """Compare RMSNorm alone with the GPT-style block: more than half of its gain, both beyond noise, and the same upper
    logit and entropy of the controls at 3 % of training."""
    mine, gpt = _read_with_gpt(e, "gpt_rmsnorm")
    same_readouts = {
        "keeps_logit": LOGIT(gpt["logit"], mine["logit"]),
        "keeps_entropy": ENTROPY(gpt["entropy"], mine["entropy"]),
    }
    values = mine | {"keeps_most": _keeps_most(mine["gain"], gpt["gain"])} | same_readouts
    return ComputedValues(values=values, limits=_share_kept(mine["gain"], gpt["gain"]))


def _keeps_most(gain: float, whole: float) -> bool:
    return min(gain, whole) > GAIN.limit and gain > MOST * whole


def _share_kept(gain: float, whole: float) -> dict[str, tuple[float, float]]:
    return {"share of the gain": (gain / whole, MOST)} if whole > 0 else {}


@CHECKS.of(effect=statements("leaves_most"), near=CLOSE)
def biasless_partial(e: Evidence, claim: PaperClaim) -> Values:
    """Decide whether the block without biases keeps more than half of the GPT-style block's gain, both beyond noise,
    and read it."""
    gain, gpt = e.architecture_gain("gpt_biasless"), e.architecture_gain(CONTROL)
    values = {"gain": gain, "leaves_most": _keeps_most(gain, gpt)}
    return ComputedValues(values=values, limits=_share_kept(gain, gpt))


@CHECKS.of(effect=statements("gains_less", "suppresses"), near=CLOSE)
def swiglu_suppressor(e: Evidence, claim: PaperClaim) -> Values:
    """Compare matched SwiGLU with the GPT-style block, whose gain is beyond noise: a smaller gain, and a lower upper
    logit and higher upper entropy of the control at 3 % of training."""
    mine, gpt = _read_with_gpt(e, "gpt_swiglu")
    gains_less = gpt["gain"] > max(GAIN.limit, mine["gain"])
    return mine | {"gains_less": gains_less, "suppresses": e.suppresses("gpt_swiglu")}


@CHECKS.of()
def entropy_gain_relation(e: Evidence, claim: PaperClaim) -> Values:
    """Decide whether controls of low upper entropy at 3 % go with large gains: their rank correlation over the seven
    architectures is at most that of one random order in twenty."""
    gains = _gains(e)
    correlation = spearman([e.entropy(name) for name in gains], gains.values())
    numbers = {"rho": correlation.rho, "p": correlation.p_permutation}
    return ComputedValues(holds=correlation.rho <= RELATED, shown=numbers, limits={"rho": (correlation.rho, RELATED)})


def _table4(e: Evidence, claim: PaperClaim) -> Values:
    name = claim.id.removeprefix("t4_")
    control, intervention = e.ppl(name), e.ppl(name_slowed_run(name))
    values = {"control": control, "intervention": intervention, "gain": control - intervention}
    return values | {"entropy": e.entropy(name)} | _suppresses(e, name)


for _name in ("gpt", "gpt_swiglu", "gpt_geglu"):
    CHECKS.of(
        f"t4_{_name}",
        near=CLOSE | {"control": LEVEL, "intervention": LEVEL},
        effect=_gains_or_suppresses("gain", _name),
    )(_table4)


@CHECKS.of(compare=order("order"), effect=statements("ends_apart"))
def control_ppl_order(e: Evidence, claim: PaperClaim) -> Values:
    """Order the controls of the claim's architectures by final perplexity, lowest first."""
    return rank(claim, {name: e.ppl(name) for name in claim.values["order"]}, GAIN, highest_first=False)


@CHECKS.of()
def geglu_at_least(e: Evidence, claim: PaperClaim) -> Values:
    """Decide whether the intervention gains at most as much with GEGLU as with SwiGLU."""
    gains = {name: e.architecture_gain(f"gpt_{name}") for name in ("geglu", "swiglu")}
    return ComputedValues(holds=gains["geglu"] <= gains["swiglu"], shown=gains)


@CHECKS.of(near=CLOSE)
def geglu_readout(e: Evidence, claim: PaperClaim) -> Values:
    """Read the upper logit and entropy of GEGLU's control at 3 % of training."""
    return _readouts(e, "gpt_geglu")


def _table5(e: Evidence, claim: PaperClaim) -> Values:
    method = RUNS[claim.id.removeprefix("t5_")]
    writes = {
        "write": e.read(method, "ffn_write_rms"),
        "first_upper": e.read(method, "ffn_write_rms", part="first_upper"),
    }
    return writes | _readouts(e, method)


CHECKS.of(*(f"t5_{name}" for name in RUNS), near=CLOSE | {"write": WRITE, "first_upper": WRITE})(_table5)


def _reductions(e: Evidence, reference: str, part: Part = "upper") -> dict[str, float]:
    """By how many percent each gated network writes less than a reference."""
    other = e.key(reference)
    return {
        gate: e.require_number(reduction(e.run_values, e.key(f"gpt_{gate}"), other, part), e.key(f"gpt_{gate}"), other)
        for gate in ("swiglu", "geglu")
    }


@CHECKS.of(effect=signs("swiglu", "geglu"), near=REDUCTION)
def write_reduction_3840(e: Evidence, claim: PaperClaim) -> Values:
    """Compute by how many percent SwiGLU and GEGLU write less than GELU-3840 in the upper half at 3 %."""
    return _reductions(e, "gpt")


@CHECKS.of(effect=signs("swiglu", "geglu"), near=REDUCTION)
def write_reduction_2560(e: Evidence, claim: PaperClaim) -> Values:
    """Compute by how many percent SwiGLU and GEGLU write less than GELU-2560 in the upper half at 3 %."""
    return _reductions(e, "gpt_gelu2560")


@CHECKS.of(effect=signs("range"), near=REDUCTION)
def first_upper_reduction(e: Evidence, claim: PaperClaim) -> Values:
    """Compute the least and largest percent by which SwiGLU and GEGLU write less than either GELU network in the first
    upper layer."""
    reductions = [
        *_reductions(e, "gpt", "first_upper").values(),
        *_reductions(e, "gpt_gelu2560", "first_upper").values(),
    ]
    return {"range": [min(reductions), max(reductions)]}


@CHECKS.of(compare=order("order"), effect=statements("ends_apart"))
def write_order(e: Evidence, claim: PaperClaim) -> Values:
    """Order the four feed-forward networks by the size of their writes in the upper half at 3 %, smallest first."""
    writes = {name: e.read(method, "ffn_write_rms") for name, method in RUNS.items()}
    return rank(claim, writes, WRITE, highest_first=False)


@CHECKS.of()
def gated_logit_entropy(e: Evidence, claim: PaperClaim) -> Values:
    """Decide whether every gated network has a lower upper logit and a higher upper entropy at 3 % than both GELU
    networks."""
    readouts = {name: _readouts(e, method) for name, method in RUNS.items()}
    gated = [readout for name, readout in readouts.items() if "glu" in name]
    single = [readout for name, readout in readouts.items() if "glu" not in name]
    lower = max(readout["logit"] for readout in gated) < min(readout["logit"] for readout in single)
    higher = min(readout["entropy"] for readout in gated) > max(readout["entropy"] for readout in single)
    return ComputedValues(
        holds=lower and higher, shown={name: list(readout.values()) for name, readout in readouts.items()}
    )
