"""Checks claims about sizes, grids, the algorithm and what decoding needs: exact, without training, at any preset.

One function for each claim, named as the claim; what it says is in studies/quack/published/claims.yaml. The
algorithm is tried on the components that the runs are made of, with the smallest of the study's models.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch

from plumbline.model.decoder import create, on_meta
from plumbline.model.distributed import RankGroup
from plumbline.model.norms_per_block import norms_per_block
from plumbline.published.printed_numbers import PaperClaim
from plumbline.results.claims.claim_checkers import ComputedValues
from plumbline.results.claims.claim_registry import ClaimChecks, Values
from plumbline.results.claims.claim_tolerances import near
from plumbline.specs import study_config
from plumbline.specs.spec import RunSpec
from plumbline.train.interventions import InterventionInputs, build
from plumbline.train.run_optimizer import RunOptimizer

from .. import decoding_memory
from ..run_grid import ABLATION, DEFAULT, QK_NORM, QUACK
from .claim_evidence import BOTH, Evidence

CHECKS = ClaimChecks()

ARITHMETIC = {"scope": "arithmetic"}

#: By how much the first and the last head's weights have grown since the start, and how near a rate must be.
GROWN = {"query": (0.5, 3.0), "key": (4.0, 0.7)}
NEAR = 1e-6

ALONE = RankGroup(rank=0, world=1, device=torch.device("cpu"))


@CHECKS.of(**ARITHMETIC)
def scale_tested(e: Evidence, claim: PaperClaim) -> Values:
    """The kind of attention whose size is further from the printed one."""
    paper = decoding_memory.paper(e.study.code)
    sizes = [
        sum(value.numel() for value in on_meta(decoding_memory.find_model(paper, at)).parameters()) / 1e9 for at in BOTH
    ]
    steps = {run.spec.train.steps for run in paper.runs.values()}
    furthest = max(sizes, key=lambda size: abs(size - float(claim.values["params_b"])))
    return ComputedValues(values={"params_b": furthest, "steps_k": max(steps) / 1000}, shown={"MHA, MLA": sizes})


@CHECKS.of(**ARITHMETIC)
def suggested_tau_grid(e: Evidence, claim: PaperClaim) -> Values:
    """Every value of tau and of the base rate that a method is swept over at paper size."""
    paper = decoding_memory.paper(e.study.code)
    points = [point for method in (DEFAULT, QUACK, ABLATION) for point in paper.points(method).values()]
    return {
        "tau": sorted({float(point["tau"]) for point in points if "tau" in point}),
        "lr": sorted({float(point["eta"]) for point in points}),
    }


@CHECKS.of(**ARITHMETIC)
def suggested_tau_wide(e: Evidence, claim: PaperClaim) -> Values:
    """Every tau that QuacK is run at, at paper size."""
    specs = [run.spec for run in decoding_memory.paper(e.study.code).runs.values()]
    chosen = [entry for spec in specs for entry in spec.interventions if entry["name"] == QUACK]
    return {"tau": sorted({float(entry["tau"]) for entry in chosen})}


@CHECKS.of(**ARITHMETIC)
def two_norms_removed(e: Evidence, claim: PaperClaim) -> Values:
    """Norms of a block with QK norm, less those under QuacK."""
    paper = decoding_memory.paper(e.study.code)
    norms = {method: norms_per_block(decoding_memory.find_model(paper, "mha", method)) for method in (QK_NORM, QUACK)}
    return ComputedValues(values={"norms": norms[QK_NORM] - norms[QUACK]}, near={"norms": near(0.0)}, shown=norms)


@CHECKS.of(**ARITHMETIC)
def mla_applicable(e: Evidence, claim: PaperClaim) -> Values:
    """QK norm is refused where decoding keeps latents; QuacK's model decodes from them, and is the default's model."""
    paper = decoding_memory.paper(e.study.code)
    model = decoding_memory.find_model(paper, "mla", QUACK)
    cached, needed = decoding_memory.count_cached_bytes(model), decoding_memory.count_materialised_bytes(model)
    needs = bool(decoding_memory.explain_refusal(paper, "mla")) and not decoding_memory.explain_refusal(paper, "mha")
    same = model == decoding_memory.find_model(paper, "mla", DEFAULT)
    return ComputedValues(
        holds=needs and same and cached < needed, shown={"bytes kept": cached, "bytes of keys": needed}
    )


@CHECKS.of(**ARITHMETIC)
def scheme(e: Evidence, claim: PaperClaim) -> Values:
    """Updates with QuacK over those without it, on a model whose heads have grown or shrunk since the start, each by
    factors of its own: tau over the factor of the other side's weights."""
    spec = smallest(e.study.code)
    factors = {role: np.linspace(*ends, spec.model.heads) for role, ends in GROWN.items()}
    (entry,) = (entry for entry in spec.interventions if entry["name"] == QUACK)
    plain, ours = (updates(spec, chosen, factors) for chosen in ((), (entry,)))
    apart = 0.0
    for role, other in (("query", "key"), ("key", "query")):
        rates_H = ours[role] / plain[role] / float(entry["tau"])
        apart = max(apart, float(np.abs(rates_H * factors[other] - 1).max()))
    elsewhere = float(np.abs(ours["value"] / plain["value"] - 1).max())
    worst = max(apart, elsewhere)
    return ComputedValues(
        holds=worst < NEAR, shown={"largest relative error": apart}, limits={"relative error": (worst, NEAR)}
    )


@cache
def smallest(study: str) -> RunSpec:
    """QuacK's first run with multi-head attention at the smallest preset."""
    runs = study_config.load(study, "smoke").runs.values()
    return next(run.spec for run in runs if (run.spec.scale, run.spec.method.partition(".")[0]) == ("mha", QUACK))


def updates(spec: RunSpec, chosen: tuple[dict[str, Any], ...], factors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Role -> norm of the first update of each head's rows (H,) in the first layer, by made-up gradients, when heads'
    weights are `factors` times what they were at the start."""
    model, hooks = create(spec.model, 0).double(), build(chosen)
    for hook in hooks:
        hook.attach(InterventionInputs(spec=spec, model=model, ranks=ALONE, validation=None, progress=SilentProgress()))
        hook.begin(1)
    names = {role.role: name for name, role in model.parameter_roles.items() if role.layer == 0 and role.matrix}
    weights = {role: model.get_parameter(names[role]) for role in ("query", "key", "value")}
    optimizer = RunOptimizer(model, model.parameter_roles, spec.optimizer, hooks)
    draw = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for role, factor_H in factors.items():
            by_head(weights[role], spec).mul_(torch.from_numpy(factor_H)[:, None, None])
        before = {role: weight.clone() for role, weight in weights.items()}
        for weight in model.parameters():
            weight.grad = torch.randn(weight.shape, generator=draw, dtype=weight.dtype)
    optimizer.step(1, spec.optimizer.learning_rate)
    moved = {role: by_head(weight.detach() - before[role], spec) for role, weight in weights.items()}
    return {role: change.flatten(1).norm(dim=1).numpy() for role, change in moved.items()}


def by_head(weight_RD: torch.Tensor, spec: RunSpec) -> torch.Tensor:
    """Rows of each head (H, W, D)."""
    return weight_RD.unflatten(0, (spec.model.heads, -1))


class SilentProgress:
    """Progress that nobody sees."""

    def say(self, text: str) -> None:
        """Drop it."""
