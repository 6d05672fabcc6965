"""Claims about sizes, costs, definitions and starts: exact, without training, at the document's size.

One function for each claim, named as the claim; what it says is in config/studies/transfer/published/claims.yaml.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from plumbline.model.flops import counted
from plumbline.results.checkers import Measured, near
from plumbline.results.measures import Measures, Values
from plumbline.results.published import Claim, Published
from plumbline.results.runs import load
from plumbline.results.table import Table
from plumbline.specs import sheet
from plumbline.specs.spec import ModelSpec, RunSpec
from plumbline.stats import family_wise_error_rate
from plumbline.studies.transfer.claims.evidence import Evidence
from plumbline.studies.transfer.headline import BASE, LARGE

MEASURES = Measures()

ARITHMETIC = {"scope": "arithmetic"}


@cache
def _paper(study: str) -> sheet.Study:
    return sheet.load(study, "paper")


def _document(e: Evidence) -> sheet.Study:
    """The document's study at its own size; that of the extended one, where a study extends another."""
    return _paper(e.study.code)


def _spec(e: Evidence, method: str, scale: str = BASE) -> RunSpec:
    specs = (run.spec for run in _document(e).runs.values())
    return next(spec for spec in specs if (spec.scale, spec.method) == (scale, method))


@cache
def _roles_of(study: str, method: str) -> dict[str, Any]:
    from plumbline.model.decoder import on_meta

    key = f"{study}/{BASE}/{method}/s42"
    return on_meta(_paper(study).runs[key].spec.model).parameter_roles


def _roles(e: Evidence, method: str) -> dict[str, Any]:
    """The roles of a method's parameters, with their starts, at paper size."""
    return _roles_of(e.study.code, method)


def _model(e: Evidence, method: str) -> ModelSpec:
    return _spec(e, method).model


@cache
def _table4(study: str, published: str) -> Table:
    """Table 4, which depends on no run."""
    from plumbline.studies.transfer.tables.table4 import table4

    return table4(load([], "."), _paper(study), Published(published))


def _cell(e: Evidence, method: str, column: str) -> Any:
    """A number of Table 4."""
    return _table4(e.study.code, str(e.published.directory)).cell(method, column).value


def _extra(e: Evidence, method: str) -> int:
    return _cell(e, method, "parameters") - _cell(e, e.reference, "parameters")


def _starts(e: Evidence, method: str, role: str | None = None) -> list[Any]:
    """The distinct starts of the parameters that a method has and the baseline has not."""
    known = _roles(e, e.reference)
    own = _roles(e, method)
    starts = [entry.init for name, entry in own.items() if name not in known and role in (None, entry.role)]
    return [one for i, one in enumerate(starts) if one not in starts[:i]]


def _constants(e: Evidence, method: str) -> list[float]:
    from plumbline.model.roles import Constant

    return [start.value for start in _starts(e, method) if isinstance(start, Constant)]


@MEASURES.of("fwer", **ARITHMETIC)
def fwer(e: Evidence, claim: Claim) -> Values:
    m = _document(e).m
    return {"alpha": 0.05, "m": m, "fwer_pct": 100 * family_wise_error_rate(0.05, m)}


@MEASURES.of("params_baseline", **ARITHMETIC)
def params_baseline(e: Evidence, claim: Claim) -> Values:
    return {"params_b": _cell(e, e.reference, "params_b")}


@MEASURES.of("params_band", **ARITHMETIC)
def params_band(e: Evidence, claim: Claim) -> Values:
    """The band is that of every method but the two Selective ones, on parameters and on the document's FLOPs."""
    others = [m for m in _document(e).methods if not m.startswith("selective")]
    shares = [abs(_cell(e, m, column)) for m in others for column in ("delta_params_pct", "delta_flops_pct")]
    selective = -_cell(e, "selective_attn", "delta_params_pct")
    return Measured(values={"band_pct": max(shares), "selective_pct": selective}, near=near(0.0101))


@MEASURES.of("gated_overhead", **ARITHMETIC)
def gated_overhead(e: Evidence, claim: Claim) -> Values:
    method = "gated_attn_qknorm"
    shares = (_cell(e, method, "delta_params_pct"), _cell(e, method, "delta_flops_pct"))
    return Measured(values={"pct": max(shares)}, near=near(0.05))


@MEASURES.of("selective_zero_params", **ARITHMETIC)
def selective_zero_params(e: Evidence, claim: Claim) -> Values:
    new = set(_roles(e, "selective_attn")) - set(_roles(e, e.reference))
    return Measured(values={"new": len(new)}, shown={"parameters_less": -_extra(e, "selective_attn")})


@MEASURES.of("denseformer_params", **ARITHMETIC)
def denseformer_params(e: Evidence, claim: Claim) -> Values:
    same = _cell(e, "denseformer", "flops_formula") == _cell(e, e.reference, "flops_formula")
    values = {"extra": _extra(e, "denseformer"), "layers": _model(e, "denseformer").layers}
    return Measured(values=values, shown={"same_flops": same})


@MEASURES.of("sandwich_params", **ARITHMETIC)
def sandwich_params(e: Evidence, claim: Claim) -> Values:
    known = _roles(e, e.reference)
    new = [entry for name, entry in _roles(e, "sandwich_norm").items() if name not in known]
    return Measured(holds=all(entry.role == "norm" for entry in new), shown={"extra": _extra(e, "sandwich_norm")})


@MEASURES.of("geglu_same_cost", **ARITHMETIC)
def geglu_same_cost(e: Evidence, claim: Claim) -> Values:
    same = _extra(e, "geglu_ffn") == 0 and _cell(e, "geglu_ffn", "delta_flops_counted_pct") == 0
    return {"inter": _model(e, "geglu_ffn").ffn_width if same else -1}


@MEASURES.of("relu2_width", **ARITHMETIC)
def relu2_width(e: Evidence, claim: Claim) -> Values:
    same = _extra(e, "relu_squared") == 0 and _cell(e, "relu_squared", "delta_flops_counted_pct") == 0
    ratio = _model(e, "relu_squared").slot("ffn").options["width_ratio"]
    return Measured(values={"ratio": float(ratio)}, near=near(0.0), shown={"same_parameters_and_flops": same})


@MEASURES.of("flops_formula", **ARITHMETIC)
def flops_formula(e: Evidence, claim: Claim) -> Values:
    """The formula against the operations of the real modules: the same, or what it leaves out."""
    formula, counted = (_cell(e, e.reference, name) for name in ("flops_formula", "flops_counted"))
    spec = _spec(e, e.reference)
    model, tokens = spec.model, spec.train.batch_tokens
    head = 3 * 2 * model.width * model.vocabulary * tokens
    weighted = 3 * 2 * model.layers * model.context * model.width * tokens
    exact = counted - head - weighted == formula
    return Measured(
        holds=exact, shown={"share_of_counted": formula / counted, "left_out": "the head, the weighted values"}
    )


@MEASURES.of("cost_3b", **ARITHMETIC)
def cost_3b(e: Evidence, claim: Claim) -> Values:
    large, base = (_spec(e, e.reference, scale).model for scale in (LARGE, BASE))
    return {"ratio": (counted(large) / large.context) / (counted(base) / base.context)}


@MEASURES.of("tokens_1p2b", **ARITHMETIC)
def tokens_1p2b(e: Evidence, claim: Claim) -> Values:
    train = _spec(e, e.reference).train
    batch = math.log2(train.batch_tokens)
    return {"steps": train.steps, "log2_batch": round(batch), "tokens_b": train.steps * train.batch_tokens / 1e9}


@MEASURES.of("tokens_3b", **ARITHMETIC)
def tokens_3b(e: Evidence, claim: Claim) -> Values:
    train = _spec(e, e.reference, LARGE).train
    return {"tokens_b": train.steps * train.batch_tokens / 1e9, "steps": train.steps}


@MEASURES.of("val_pack", **ARITHMETIC)
def val_pack(e: Evidence, claim: Claim) -> Values:
    train = _spec(e, e.reference).train
    return {"sequences": train.validation_sequences, "every": train.validate_every}


@MEASURES.of("heads_policy", **ARITHMETIC)
def heads_policy(e: Evidence, claim: Claim) -> Values:
    model = _model(e, e.reference)
    here = [model.heads, model.key_value_heads]
    return {"sec_3_2": here, "app_d": here}


@MEASURES.of("ssmax_init", **ARITHMETIC)
def ssmax_init(e: Evidence, claim: Claim) -> Values:
    model = _model(e, "ssmax")
    s = math.log1p(math.e ** _constants(e, "ssmax")[0]) + 0.5
    log_n = math.log(model.context)
    temperature = 1 / (s * log_n)
    reference = 1 / math.sqrt(model.head_width)
    values = {"s": s, "log_n": log_n, "temperature": temperature, "reference": reference}
    return Measured(
        values=values | {"within_pct": 100 * abs(temperature / reference - 1)},
        near={"within_pct": lambda printed, got: got <= printed},
    )


@MEASURES.of("layer0_value_residual", **ARITHMETIC)
def layer0_value_residual(e: Evidence, claim: Claim) -> Values:
    known = _roles(e, e.reference)
    new = [entry for name, entry in _roles(e, "value_residual").items() if name not in known]
    return Measured(
        values={"lam": _constants(e, "value_residual")[0]},
        shown={"first_layer_has_one": any(entry.layer == 0 for entry in new)},
    )


@MEASURES.of("layerscale_init", **ARITHMETIC)
def layerscale_init(e: Evidence, claim: Claim) -> Values:
    return {"gamma": _constants(e, "layerscale")[0]}


@MEASURES.of("attnres_init", **ARITHMETIC)
def attnres_init(e: Evidence, claim: Claim) -> Values:
    model = _model(e, "attnres")
    start = _starts(e, "attnres", "pseudo_query")[0]
    return {"std": start.std, "eps": model.norm_eps}


@MEASURES.of("softpick_zeros", **ARITHMETIC)
def softpick_zeros(e: Evidence, claim: Claim) -> Values:
    """On random queries and keys of the real mixer: zero exactly where softmax is at most 1/n; rows below one."""
    import torch

    from plumbline.model.decoder import create
    from plumbline.model.visibility import Visibility

    run = sheet.load(e.study.code, "smoke").runs[f"{e.study.code}/{BASE}/softpick/s42"]
    model = run.spec.model
    mixer = create(model, init_seed=0).blocks[0].attention.mixer
    generator, time = torch.Generator().manual_seed(0), model.context
    q_BHQW = 4 * torch.randn(1, model.heads, time, model.head_width, generator=generator)
    k_BGKW = torch.randn(1, model.key_value_heads, time, model.head_width, generator=generator)
    visibility = Visibility.of(torch.zeros(1, time, dtype=torch.long), None, None)
    with torch.no_grad():
        weights_BHQK, scores_BHQK = mixer.weights(q_BHQW, k_BGKW, visibility), mixer.scores(q_BHQW, k_BGKW)
    soft_BHQK = (scores_BHQK + visibility.bias_B1QK(scores_BHQK.dtype)).softmax(-1)
    below_BHQK = soft_BHQK < 1 / visibility.visible_B1Q1 - 1e-6
    share = float((weights_BHQK[below_BHQK] == 0).float().mean())
    largest = float(weights_BHQK.sum(-1).max())
    return Measured(holds=share == 1.0 and largest < 1, shown={"zeros_below": share, "largest_row_sum": largest})


@MEASURES.of("hyper_identity_init", **ARITHMETIC)
def hyper_identity_init(e: Evidence, claim: Claim) -> Values:
    constants = _constants(e, "hyper")
    logit = min(constants)
    return Measured(
        values={"beta_logit": logit, "beta": 1 / (1 + math.exp(-logit)), "alpha": max(constants)}, near=near(0.005)
    )


MEASURES.untested(
    {
        "pack_1p2b": "needs the document's corpus at paper size; the pack's manifest tells there",
        "pack_3b": "needs the document's corpus at paper size; the pack's manifest tells there",
        "softmax_cap_inactive": "needs a probe of the logits' sizes, which this study has not",
        "shuffle_policy": "the document says both; see the ruling `seeds` in deviations.md",
        "diff_lambda": "the start of a layer's lambda is a constant of its component; its tests hold it",
    }
)
