"""Checks claims about sizes, definitions and arithmetic: exact, without training, at the paper's size; and the start.

One function for each claim, named as the claim; what it says is in studies/key_norms/published/claims.yaml.
Definitions are tried on the components that the runs are made of.
"""

from __future__ import annotations

import math
from functools import cache
from itertools import pairwise

import numpy as np
import torch

from plumbline.model.decoder import on_meta
from plumbline.model.mixers.softmax import Softmax
from plumbline.model.query_key.qk_norm import QKNorm
from plumbline.published.printed_numbers import PaperClaim
from plumbline.results.claims.claim_checkers import ComputedValues
from plumbline.results.claims.claim_registry import ClaimChecks, Values
from plumbline.results.claims.claim_tolerances import near
from plumbline.specs import study_config
from plumbline.specs.spec import ModelSpec, RunSpec

from ..norm_curves import AS_PUBLISHED, KEY_NORM, SCALE
from .claim_evidence import Evidence

CHECKS = ClaimChecks()

ARITHMETIC = {"scope": "arithmetic"}

#: Vectors of the running text: dot products in 2 and 4 dimensions, and one whose length is taken.
DOTS = {"d2": ((2, 3), (4, 1)), "d4": ((2, 3, 1, 2), (4, 1, 3, 2))}
VECTOR = (3, 4)

#: The initial norm, to half a unit of the printed digit; norms over gains, in float32 with the norm's epsilon; rounding
#: of float64; the exponent of a square root, and how near a fitted one must be.
START, GAIN, ROUNDING, ROOT, EXPONENT = near(0.05), 1e-3, 1e-9, 0.5, 0.05

#: Factors on keys, and widths of random vectors, at which statements about scale are tried.
SCALES, WIDTHS = (0.5, 1.0, 2.0, 4.0), (16, 64, 256, 1024)


@cache
def paper(study: str) -> RunSpec:
    """The paper's run at its own size."""
    return study_config.load(study, "paper").runs[f"{study}/{SCALE}/{AS_PUBLISHED}/s42"].spec


def _paper(e: Evidence) -> RunSpec:
    return paper(e.study.code)


def _parameters(model: ModelSpec) -> int:
    return sum(value.numel() for value in on_meta(model).parameters())


@CHECKS.of(**ARITHMETIC)
def init_norm(e: Evidence, claim: PaperClaim) -> Values:
    """The layer that starts farthest from the square root of the head width, which is given."""
    starts, width = e.end(KEY_NORM).start, e.spec.model.head_width
    worst = (starts - math.sqrt(width)).abs().idxmax()
    return ComputedValues(values={"norm": float(starts[worst])}, near={"norm": START}, shown={"d_head": width})


@CHECKS.of(**ARITHMETIC)
def norm_equals_gain(e: Evidence, claim: PaperClaim) -> Values:
    """Keys of any length have the initial norm at a gain of 1, and c times that at a gain of c."""
    model = _paper(e).model
    transform, k_BGTW = _transform(model), _draw_normal(0, 1, model.key_value_heads, 32, model.head_width)
    k_BGTW *= torch.logspace(-2, 2, 32, dtype=k_BGTW.dtype)[:, None]
    ratios = []
    with torch.no_grad():
        for gain in SCALES:
            transform.key_norm.gain.fill_(gain)
            norms_BGT = transform(k_BGTW, k_BGTW)[1].norm(dim=-1) / math.sqrt(model.head_width)
            ratios += [float(norms_BGT.min()) / gain, float(norms_BGT.max()) / gain]
    return ComputedValues(
        holds=max(abs(ratio - 1) for ratio in ratios) <= GAIN,
        shown={"least": min(ratios), "most": max(ratios)},
        limits={"apart from the gain": (max(abs(ratio - 1) for ratio in ratios), GAIN)},
    )


@CHECKS.of(**ARITHMETIC)
def norm_scales_logits(e: Evidence, claim: PaperClaim) -> Values:
    """Decide whether scores of random queries and keys grow by just the factor by which the keys are scaled."""
    scores = _scores(e)
    apart = max(float((scores[scale] - scale * scores[1.0]).abs().max()) for scale in SCALES)
    limits = {"largest error": (apart, ROUNDING)}
    return ComputedValues(holds=apart < ROUNDING, shown={"largest_error": apart}, limits=limits)


@CHECKS.of(**ARITHMETIC)
def temperature(e: Evidence, claim: PaperClaim) -> Values:
    """Larger scores and lower entropy of every row, at each larger scale of the keys."""
    scores = _scores(e)
    sizes = [float(scores[scale].abs().mean()) for scale in SCALES]
    entropies_BHQ = [_entropy(scores[scale]) for scale in SCALES]
    sharper = all(bool((after < before).all()) for before, after in pairwise(entropies_BHQ))
    means = {"mean_score": sizes, "entropy": [float(entropy_BHQ.mean()) for entropy_BHQ in entropies_BHQ]}
    return ComputedValues(holds=sharper and sizes == sorted(sizes), shown=means)


def _scores(e: Evidence) -> dict[float, torch.Tensor]:
    """Scores (B, H, Q, K) of random queries with random keys times each of SCALES."""
    model = _paper(e).model
    mixer = Softmax(model, 0)
    q_BHQW, k_BGKW = (
        _draw_normal(heads, 1, heads, 64, model.head_width) for heads in (model.heads, model.key_value_heads)
    )
    return {scale: mixer.scores(q_BHQW, scale * k_BGKW) for scale in SCALES}


def _entropy(z_BHQK: torch.Tensor) -> torch.Tensor:
    """Entropy (nats) of the softmax of each row."""
    log_p = z_BHQK.log_softmax(-1)
    return -(log_p.exp() * log_p).sum(-1)


def _transform(model: ModelSpec) -> QKNorm:
    transform = QKNorm(model, 0).double()
    with torch.no_grad():
        transform.query_norm.gain.fill_(1.0)
    return transform


def _draw_normal(seed: int, *shape: int) -> torch.Tensor:
    """Standard normal numbers, the same ones every time."""
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))


@CHECKS.of(**ARITHMETIC)
def tokens(e: Evidence, claim: PaperClaim) -> Values:
    """Count tokens, steps, sequences of a batch and their length in the spec of the paper's run."""
    spec = _paper(e)
    return {
        "tokens_m": spec.train.steps * spec.train.batch_tokens / 1e6,
        "steps": spec.train.steps,
        "batch": spec.sequences_per_batch,
        "seq": spec.model.context,
    }


@CHECKS.of("size_88m", "size_80m", **ARITHMETIC)
def size(e: Evidence, claim: PaperClaim) -> Values:
    """Count the paper's model's parameters on its modules, in millions; for the claim of 88M read its shape too."""
    model = _paper(e).model
    values = {"params_m": _parameters(model) / 1e6}
    if claim.id == "size_80m":
        return values
    return values | {"layers": model.layers, "d": model.width, "heads": model.heads, "d_head": model.head_width}


@CHECKS.of(**ARITHMETIC)
def dot_sqrt_d(e: Evidence, claim: PaperClaim) -> Values:
    """The exponent of the mean |a . b| of random vectors in their width, fitted on logarithms."""
    sizes = [float(dots(_draw_normal(0, 2000, width), _draw_normal(1, 2000, width)).abs().mean()) for width in WIDTHS]
    exponent = float(np.polyfit(np.log(WIDTHS), np.log(sizes), 1)[0])
    apart = abs(exponent - ROOT)
    limits = {"apart from the root": (apart, EXPONENT)}
    return ComputedValues(holds=apart < EXPONENT, shown={"exponent": exponent}, limits=limits)


def dots(a_ND: torch.Tensor, b_ND: torch.Tensor) -> torch.Tensor:
    """Dot products of N pairs of vectors of width D."""
    return (a_ND * b_ND).sum(-1)


@CHECKS.of(**ARITHMETIC)
def dot_examples(e: Evidence, claim: PaperClaim) -> Values:
    """Compute the two dot products of the running text by the same code as that of random vectors."""
    return {name: int(dots(torch.tensor([first]), torch.tensor([second]))) for name, (first, second) in DOTS.items()}


@CHECKS.of(**ARITHMETIC)
def norm_examples(e: Evidence, claim: PaperClaim) -> Values:
    """Compute the length of the text's vector, of its double and of its half."""
    return {"norms": [math.hypot(*(factor * x for x in VECTOR)) for factor in (1, 2, 0.5)]}


@CHECKS.of(*(f"softmax_ex{number}" for number in range(1, 6)), **ARITHMETIC)
def softmax_example(e: Evidence, claim: PaperClaim) -> Values:
    """Compute the softmax of the logits that the claim prints."""
    logits = np.array(claim.values["logits"], dtype=float)
    weights = np.exp(logits - logits.max())
    return {"probs": [float(weight) for weight in weights / weights.sum()]}
