"""Checks claims about sizes, costs, definitions and starts: exact, without training, at the paper's size.

One function for each claim, named as the claim; what it says is in studies/transfer/published/claims.yaml.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from plumbline.model.flops import count_operations
from plumbline.published.printed_numbers import PaperClaim, PrintedNumbers
from plumbline.results.claims.claim_checkers import ComputedValues, at_most_partly, in_turn, number, parts, statements
from plumbline.results.claims.claim_registry import ClaimChecks, Values
from plumbline.results.claims.claim_tolerances import near, up_to
from plumbline.results.runs.finished_runs import load
from plumbline.results.tables.table import Table
from plumbline.specs import study_config
from plumbline.specs.spec import ModelSpec, RunSpec
from plumbline.stats.multiplicity import family_wise_error_rate

from ..headline_runs import BASE, LARGE
from .claim_evidence import Evidence

CHECKS = ClaimChecks()

ARITHMETIC = {"scope": "arithmetic"}

#: Rounding of float32 next to quantities of order one.
ROUNDING = 1e-6


@cache
def _paper(study: str) -> study_config.Study:
    return study_config.load(study, "paper")


def _document(e: Evidence) -> study_config.Study:
    """The paper's study at its own size; that of the extended one, where a study extends another."""
    return _paper(e.study.code)


def _spec(e: Evidence, method: str, scale: str = BASE) -> RunSpec:
    specs = (run.spec for run in _document(e).runs.values())
    return next(spec for spec in specs if (spec.scale, spec.method) == (scale, method))


@cache
def build_decoder(study: str, method: str) -> Any:
    """A method's modules at paper size, without memory."""
    from plumbline.model.decoder import on_meta

    return on_meta(_paper(study).runs[f"{study}/{BASE}/{method}/s42"].spec.model)


def parameter_roles(e: Evidence, method: str) -> dict[str, Any]:
    """The roles of a method's parameters, with their starts, at paper size."""
    return build_decoder(e.study.code, method).parameter_roles


def inner_width(e: Evidence, method: str) -> int:
    """The rows of the matrix that widens a method's FFN."""
    shapes = {name: value.shape for name, value in build_decoder(e.study.code, method).named_parameters()}
    return next(shapes[name][0] for name, entry in parameter_roles(e, method).items() if entry.role == "up")


def find_model(e: Evidence, method: str) -> ModelSpec:
    """A method's model at paper size."""
    return _spec(e, method).model


@cache
def _table4(study: str, published: str) -> Table:
    """Table 4, which depends on no run."""
    from ..tables.table4 import table4

    return table4(load([], "."), _paper(study), PrintedNumbers(published))


def table4_cell(e: Evidence, method: str, column: str) -> Any:
    """A number of Table 4."""
    return _table4(e.study.code, str(e.published.directory)).cell(method, column).value


def _extra(e: Evidence, method: str) -> int:
    return table4_cell(e, method, "parameters") - table4_cell(e, e.reference, "parameters")


def list_starts(e: Evidence, method: str, role: str | None = None) -> list[Any]:
    """The distinct starts of the parameters that a method has and the baseline has not."""
    baseline_roles = parameter_roles(e, e.reference)
    own = parameter_roles(e, method)
    starts = [entry.init for name, entry in own.items() if name not in baseline_roles and role in (None, entry.role)]
    return [start for i, start in enumerate(starts) if start not in starts[:i]]


def list_start_constants(e: Evidence, method: str) -> list[float]:
    """The numbers at which what a method adds starts, of what starts at one number."""
    from plumbline.model.roles import ConstantInit

    return [start.value for start in list_starts(e, method) if isinstance(start, ConstantInit)]


@CHECKS.of(**ARITHMETIC)
def fwer(e: Evidence, claim: PaperClaim) -> Values:
    """Compute the chance of a false positive among independent tests at the printed level, as many as the study
    counts."""
    m, alpha = _document(e).m, claim.values["alpha"]
    return ComputedValues(values={"m": m, "fwer_pct": 100 * family_wise_error_rate(alpha, m)}, shown={"alpha": alpha})


@CHECKS.of(**ARITHMETIC)
def params_baseline(e: Evidence, claim: PaperClaim) -> Values:
    """Read the baseline's parameters in billions from Table 4."""
    return {"params_b": table4_cell(e, e.reference, "params_b")}


@CHECKS.of(**ARITHMETIC)
def params_band(e: Evidence, claim: PaperClaim) -> Values:
    """The band is that of every method but the two Selective ones, on parameters and on the paper's FLOPs; both to
    the printed rounding."""
    others = [m for m in _document(e).methods if not m.startswith("selective")]
    parameters, flops = (
        max(abs(table4_cell(e, m, f"delta_{quantity}_pct")) for m in others) for quantity in ("params", "flops")
    )
    selective = -table4_cell(e, "selective_attn", "delta_params_pct")
    return ComputedValues(
        values={"band_pct": max(parameters, flops), "selective_pct": selective},
        shown={"band_of_parameters": parameters, "band_of_flops": flops},
    )


@CHECKS.of(**ARITHMETIC)
def gated_overhead(e: Evidence, claim: PaperClaim) -> Values:
    """Parameters and FLOPs: the one that is farther from the printed share, to its rounding."""
    shares = [table4_cell(e, "gated_attn_qknorm", f"delta_{quantity}_pct") for quantity in ("params", "flops")]
    return {"pct": max(shares, key=lambda share: abs(share - claim.values["pct"]))}


@CHECKS.of(**ARITHMETIC)
def selective_zero_params(e: Evidence, claim: PaperClaim) -> Values:
    """Count the parameters of selective attention that the baseline has not, by their names."""
    new = set(parameter_roles(e, "selective_attn")) - set(parameter_roles(e, e.reference))
    return ComputedValues(values={"new": len(new)}, shown={"parameters_less": -_extra(e, "selective_attn")})


@CHECKS.of(compare=in_turn(number, at_most_partly("same_flops")), **ARITHMETIC)
def denseformer_params(e: Evidence, claim: PaperClaim) -> Values:
    """Count how many parameters DenseFormer has more than the baseline, and compare both FLOPs by the formula."""
    same = table4_cell(e, "denseformer", "step_flops_formula") == table4_cell(e, e.reference, "step_flops_formula")
    values = {"extra": _extra(e, "denseformer"), "same_flops": same}
    return ComputedValues(values=values, shown={"layers": find_model(e, "denseformer").layers})


@CHECKS.of(**ARITHMETIC)
def sandwich_params(e: Evidence, claim: PaperClaim) -> Values:
    """Decide whether all parameters that sandwich norm has and the baseline has not are those of norms."""
    baseline_roles = parameter_roles(e, e.reference)
    new = [entry for name, entry in parameter_roles(e, "sandwich_norm").items() if name not in baseline_roles]
    holds = bool(new) and all(entry.role == "norm" for entry in new)
    return ComputedValues(holds=holds, shown={"extra": _extra(e, "sandwich_norm")})


def _same_cost(e: Evidence, method: str) -> bool:
    return _extra(e, method) == 0 and table4_cell(e, method, "delta_flops_counted_pct") == 0


@CHECKS.of(compare=in_turn(statements("same_cost"), number), **ARITHMETIC)
def geglu_same_cost(e: Evidence, claim: PaperClaim) -> Values:
    """Read the inner width of GeGLU's matrices, and whether it has the baseline's parameters and counted FLOPs."""
    return {"inter": inner_width(e, "geglu_ffn"), "same_cost": _same_cost(e, "geglu_ffn")}


#: The ratio is one of whole numbers: exact.
@CHECKS.of(near=near(0.0), compare=in_turn(statements("same_cost"), number), **ARITHMETIC)
def relu2_width(e: Evidence, claim: PaperClaim) -> Values:
    """Of the modules' own matrices."""
    ratio = inner_width(e, "relu_squared") / inner_width(e, e.reference)
    return {"ratio": ratio, "same_cost": _same_cost(e, "relu_squared")}


@CHECKS.of(compare=parts("gated", "relu_squared"), **ARITHMETIC)
def flops_formula(e: Evidence, claim: PaperClaim) -> Values:
    """The formula against the operations of the real modules, for three matrices in the FFN and for two: the same but
    for what it leaves out, the head and the weighted values."""
    values, shares = {}, {}
    for name, method in (("gated", e.reference), ("relu_squared", "relu_squared")):
        columns = ("step_flops_formula", "step_flops_counted")
        formula, operations = (table4_cell(e, method, column) for column in columns)
        spec = _spec(e, method)
        model, tokens = spec.model, spec.train.batch_tokens
        head = 3 * 2 * model.width * model.vocabulary * tokens
        weighted = 3 * 2 * model.layers * model.context * model.width * tokens
        values[name] = operations - head - weighted == formula
        shares[f"share_of_counted_{name}"] = formula / operations
    return ComputedValues(values=values, shown=shares | {"left_out": "the head, the weighted values"})


@CHECKS.of(**ARITHMETIC)
def cost_3b(e: Evidence, claim: PaperClaim) -> Values:
    """Compute the counted FLOPs of a token at the large scale over those at the base scale, of the baseline."""
    large, base = (_spec(e, e.reference, scale).model for scale in (LARGE, BASE))
    return {"ratio": (count_operations(large) / large.context) / (count_operations(base) / base.context)}


def _tokens_b(e: Evidence, claim: PaperClaim) -> Values:
    """The printed steps times the printed tokens a step (section 3.2, again in 5.1); what is run here is an
    interpretation."""
    here = _spec(e, e.reference, LARGE if claim.id == "tokens_3b" else BASE).train
    log2 = claim.values.get("log2_batch", e.published.claim("tokens_1p2b")["log2_batch"])
    tokens = claim.values["steps"] * 2**log2 / 1e9
    return ComputedValues(values={"tokens_b": tokens}, shown={"run_here_b": here.steps * here.batch_tokens / 1e9})


CHECKS.of("tokens_1p2b", "tokens_3b", **ARITHMETIC)(_tokens_b)


@CHECKS.of(**ARITHMETIC)
def ssmax_init(e: Evidence, claim: PaperClaim) -> Values:
    """The scale at the start of its parameter, by the printed formula; "about" is the printed tolerance."""
    model = find_model(e, "ssmax")
    s = math.log1p(math.e ** list_start_constants(e, "ssmax")[0]) + 0.5
    log_n = math.log(model.context)
    temperature, reference = 1 / (s * log_n), 1 / math.sqrt(model.head_width)
    within = 100 * abs(temperature / reference - 1)
    return ComputedValues(
        values={"s": s, "temperature": temperature, "within_pct": within},
        near={"within_pct": up_to()},
        shown={"log_n": log_n, "reference": reference},
    )


@CHECKS.of(compare=in_turn(statements("first_layer_is_plain"), number), **ARITHMETIC)
def layer0_value_residual(e: Evidence, claim: PaperClaim) -> Values:
    """Read the start of value residual's weights, and whether the first layer has none of its own."""
    baseline_roles = parameter_roles(e, e.reference)
    new = [entry for name, entry in parameter_roles(e, "value_residual").items() if name not in baseline_roles]
    plain = all(entry.layer != 0 for entry in new)
    return {"lam": list_start_constants(e, "value_residual")[0], "first_layer_is_plain": plain}


@CHECKS.of(**ARITHMETIC)
def layerscale_init(e: Evidence, claim: PaperClaim) -> Values:
    """Read the constant at which LayerScale's parameters start."""
    return {"gamma": list_start_constants(e, "layerscale")[0]}


@CHECKS.of(**ARITHMETIC)
def attnres_init(e: Evidence, claim: PaperClaim) -> Values:
    """Read the spread at which pseudo-queries of attention residuals start, and the epsilon of the model's norms."""
    model = find_model(e, "attnres")
    start = list_starts(e, "attnres", "pseudo_query")[0]
    return {"std": start.std, "eps": model.norm_eps}


def _build_smallest_model(e: Evidence, method: str) -> ModelSpec:
    """A method's model at the size of tests."""
    return study_config.load(e.study.code, "smoke").runs[f"{e.study.code}/{BASE}/{method}/s42"].spec.model


@CHECKS.of(**ARITHMETIC)
def softpick_zeros(e: Evidence, claim: PaperClaim) -> Values:
    """On random queries and keys of the real mixer: zero exactly where softmax is at most 1/n; rows below one."""
    import torch

    from plumbline.model.attention_mask import AttentionMask
    from plumbline.model.decoder import create

    model = _build_smallest_model(e, "softpick")
    mixer = create(model, init_seed=0).blocks[0].attention.mixer
    generator, time = torch.Generator().manual_seed(0), model.context
    q_BHQW = 4 * torch.randn(1, model.heads, time, model.head_width, generator=generator)
    k_BGKW = torch.randn(1, model.key_value_heads, time, model.head_width, generator=generator)
    attention_mask = AttentionMask.for_call(torch.zeros(1, time, dtype=torch.long), None, None)
    with torch.no_grad():
        weights_BHQK, scores_BHQK = mixer.weights(q_BHQW, k_BGKW, attention_mask), mixer.scores(q_BHQW, k_BGKW)
    soft_BHQK = (scores_BHQK + attention_mask.bias_B1QK(scores_BHQK.dtype)).softmax(-1)
    below_BHQK = soft_BHQK < 1 / attention_mask.visible_B1Q1 - ROUNDING
    share = float((weights_BHQK[below_BHQK] == 0).float().mean())
    largest = float(weights_BHQK.sum(-1).max())
    return ComputedValues(holds=share == 1.0 and largest < 1, shown={"zeros_below": share, "largest_row_sum": largest})


#: 0.0998 is printed as 0.1; the other two are exact.
BETA = near(0.005)


@CHECKS.of(near=BETA, compare=in_turn(number, statements("standard_at_first")), **ARITHMETIC)
def hyper_identity_init(e: Evidence, claim: PaperClaim) -> Values:
    """By the parameters at paper size, and by a forward pass of the real residual stream."""
    constants = list_start_constants(e, "hyper")
    logit = min(constants)
    values = {"beta_logit": logit, "beta": 1 / (1 + math.exp(-logit)), "alpha": max(constants)}
    return values | {"standard_at_first": _standard_at_first(e, "hyper")}


def _standard_at_first(e: Evidence, method: str) -> bool:
    """Whether a stream begins as the sum of what its sublayers write, at the smallest size."""
    import torch

    from plumbline.model.decoder import create

    model = _build_smallest_model(e, method)
    residual = create(model, init_seed=0).residual
    generator = torch.Generator().manual_seed(0)
    x_BTD, *branches = torch.randn(2 * model.layers + 1, 1, 3, model.width, generator=generator)
    with torch.no_grad():
        state = residual.start(x_BTD)
        for sublayer, branch_BTD in enumerate(branches):
            state = residual.write(state, sublayer % 2, residual.layer_inputs(sublayer // 2), branch_BTD)
        return bool(torch.allclose(residual.finish(state), x_BTD + sum(branches), atol=ROUNDING))


#: To three digits, which 24 layers allow.
SCHEDULE = near(0.0005)


@CHECKS.of(near=SCHEDULE, **ARITHMETIC)
def diff_lambda(e: Evidence, claim: PaperClaim) -> Values:
    """a, b and k from lambda_init of the real mixers: it rises from a - b in the first layer towards a. To three
    digits, which 24 layers allow."""
    starts = [float(block.attention.mixer.lambda_init) for block in build_decoder(e.study.code, "diff_attn").blocks]
    first, second, third = starts[:3]
    ratio = (third - second) / (second - first)
    b = (second - first) / (1 - ratio)
    return {"a": first + b, "b": b, "k": -math.log(ratio)}


#: Why no count of a pack is compared.
PACKS = (
    "manifests of packs are not among what claims read (runs, scores, probes), and only packs of the paper's corpus "
    "at paper size could have its counts; there, see work/paper/corpora/*/packs/*/train/*.json"
)

CHECKS.mark_untested(
    {
        "pack_1p2b": PACKS,
        "pack_3b": PACKS,
        "shuffle_policy": "the paper says both; see the interpretation `seeds` in interpretations.md",
        "heads_policy": "the paper says both of one model, and no run tells; see the interpretation `heads`",
        "val_pack": "a setting of the paper's own; here it is smaller by the interpretation `validation_size`",
    }
)
