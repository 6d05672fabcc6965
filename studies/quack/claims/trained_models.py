"""Checks claims about losses and stability.

One function for each claim, named as the claim; what it says is in studies/quack/published/claims.yaml. What
stable, usable, best tau, competitive and different mean are interpretations of the study.
"""

from __future__ import annotations

import torch

from plumbline.published.printed_numbers import PaperClaim
from plumbline.results.claims.claim_checkers import ComputedValues
from plumbline.results.claims.claim_registry import ClaimChecks, MissingRun, Values
from plumbline.train.optimizers._orthogonal import QUINTIC, orthogonalise

from ..run_grid import ABLATION, COMPETITIVE, DEFAULT, DIFFERENT, QK_CLIPS, QK_NORM, QUACK
from .claim_evidence import BOTH, Evidence, gap, in_each, lower, slightly_worse, try_each

CHECKS = ClaimChecks()


@CHECKS.of()
def stable_lr(e: Evidence, claim: PaperClaim) -> Values:
    """The highest base rate that QuacK can use in both kinds of attention; 0 where there is none. The same word decides
    that another method fails."""
    usable = [eta for eta in e.grid.etas if all(e.is_usable(scale, QUACK, eta) for scale in BOTH)]
    eta = float(claim.values["lr"])
    reasons = {f"{scale} at {eta:g}": e.explain_unusable(scale, QUACK, eta) or "usable" for scale in BOTH}
    return ComputedValues(values={"lr": max(usable, default=0.0)}, shown=reasons)


@CHECKS.of(compare=slightly_worse)
def competitive_mha(e: Evidence, claim: PaperClaim) -> Values:
    """Compute how far QuacK's lowest loss lies above QK norm's in MHA, each over its base rates and taus."""
    losses = {"qk_norm": e.lowest_loss("mha", [QK_NORM]), "quack": e.lowest_loss("mha", [QUACK])}
    above = gap(losses["qk_norm"], losses["quack"])
    return ComputedValues(values={"gap": above}, shown=losses, limits={"gap": (above, COMPETITIVE)})


@CHECKS.of(compare=lower)
def beats_qk_clip_mla(e: Evidence, claim: PaperClaim) -> Values:
    """Compute how far QK clip's lowest loss lies above QuacK's in MLA, each over base rates and taus or limits."""
    losses = {"quack": e.lowest_loss("mla", [QUACK]), "qk_clip": e.lowest_loss("mla", QK_CLIPS)}
    above = gap(losses["quack"], losses["qk_clip"])
    return ComputedValues(values={"gap": [above]}, shown=losses, limits={"gap": (above, DIFFERENT)})


@CHECKS.of()
def qk_clip_fails(e: Evidence, claim: PaperClaim) -> Values:
    """At the printed rate no threshold is usable: it diverges, has a spike, or is worse than at the rate below."""
    eta = float(claim.values["lr"])
    usable = {method: e.is_usable("mla", method, eta) for method in QK_CLIPS}
    losses = {f"{method} at {at:g}": e.loss_at("mla", method, at) for method in QK_CLIPS for at in e.grid.etas}
    return ComputedValues(holds=not any(usable.values()), shown=losses)


@CHECKS.of(compare=lower)
def ablation_underperforms(e: Evidence, claim: PaperClaim) -> Values:
    """At the printed rate, the best tau of each; MHA, then MLA."""
    eta = float(claim.values["lr"])
    quack, ablation = ([e.loss_at(scale, method, eta) for scale in BOTH] for method in (QUACK, ABLATION))
    gaps = [gap(value, other) for value, other in zip(quack, ablation, strict=True)]
    limits = {f"gap in {scale}": (value, DIFFERENT) for scale, value in zip(BOTH, gaps, strict=True)}
    return ComputedValues(values={"gap": gaps}, shown={"quack": quack, "ablation": ablation}, limits=limits)


@CHECKS.of(compare=in_each)
def higher_lr_enabled(e: Evidence, claim: PaperClaim) -> Values:
    """Decide, for each kind of attention, whether QuacK's highest usable base rate is above the default method's."""
    rates = {method: [e.highest_usable(scale, method) for scale in BOTH] for method in (DEFAULT, QUACK)}
    raised = [default < quack for default, quack in zip(rates[DEFAULT], rates[QUACK], strict=True)]
    return ComputedValues(values={"holds_in": raised}, shown=rates)


@CHECKS.of(compare=in_each)
def no_magnitude_constraint(e: Evidence, claim: PaperClaim) -> Values:
    """QuacK's best run is stable, and its largest logit grows beyond where it started; where every run of it diverged,
    nothing is stable."""
    holds, starts, most = [], [], []
    for scale in BOTH:
        for eta in e.grid.etas:
            e.require_best_run(scale, QUACK, eta)
        key = e.grid.at_best_rate(scale, [QUACK])
        if key is None:
            holds.append(False)
            continue
        start, largest = e.largest_logits(key)
        holds.append(e.grid.stable(key) and largest > start)
        starts.append(start)
        most.append(largest)
    return ComputedValues(values={"holds_in": holds}, shown={"at the start": starts, "largest": most})


@CHECKS.of(compare=in_each)
def frobenius_enough(e: Evidence, claim: PaperClaim) -> Values:
    """Spectral norms gain no more than what counts as a difference."""
    gains = []
    for scale in BOTH:
        variant = f"{QUACK}.spectral"
        spectral = e.require_run(e.grid.variants(scale).get(variant), f"{scale}/{variant}")
        frobenius = e.require_run(e.grid.read_from(scale, variant), f"{scale}/{QUACK}")
        gains.append(gap(e.loss(spectral), e.loss(frobenius)))
    limits = {f"gain in {scale}": (gain, DIFFERENT) for scale, gain in zip(BOTH, gains, strict=True)}
    holds = [gain <= DIFFERENT for gain in gains]
    return ComputedValues(values={"holds_in": holds}, shown={"gain": gains}, limits=limits)


@CHECKS.of(compare=in_each)
def tau_too_high(e: Evidence, claim: PaperClaim) -> Values:
    """At some base rate the largest tau is not stable, where a smaller one is."""
    return try_each(lambda scale: any(_breaks(e, scale, eta) for eta in e.grid.etas))


def _breaks(e: Evidence, scale: str, eta: float) -> bool:
    keys = e.grid.keys(scale, QUACK, eta)
    if eta == e.grid.middle_eta:
        keys = {**keys, **e.grid.list_runs_by_tau(scale)}
    stable = [e.grid.stable(e.require_run(keys[tau])) for tau in sorted(keys, key=lambda tau: tau or 0.0)]
    return any(stable) and not stable[-1]


@CHECKS.of(compare=in_each)
def tau_too_low(e: Evidence, claim: PaperClaim) -> Values:
    """At the lowest base rate the smallest tau is stable, and ends above the best one by a difference that counts."""
    eta, losses = e.grid.etas[0], []
    holds = []
    for scale in BOTH:
        keys = [e.require_run(e.grid.key(scale, QUACK, eta, tau), f"{scale}/{QUACK}") for tau in e.grid.taus]
        all_losses = [e.loss(key) for key in keys]
        holds.append(e.grid.stable(keys[0]) and all_losses[0] - min(all_losses) > DIFFERENT)
        losses.append(all_losses[0] - min(all_losses))
    limits = {f"above the best in {scale}": (above, DIFFERENT) for scale, above in zip(BOTH, losses, strict=True)}
    return ComputedValues(values={"holds_in": holds}, shown={"above the best": losses}, limits=limits)


@CHECKS.of(compare=in_each)
def assumptions(e: Evidence, claim: PaperClaim) -> Values:
    """In every stable run of QuacK no norm (in latent attention, no product of norms that a rate goes by) ever fell
    below a tenth of what it was at the start: the limit on ratios was never felt. Updates are bounded, as their largest
    singular value shows for gradients of any size."""
    bounded = max(map(update_size, GRADIENT_SIZES)) < LARGEST_UPDATE
    holds, lowest = [], []
    for scale in BOTH:
        keys = [e.require_run(key) for eta in e.grid.etas for key in e.grid.keys(scale, QUACK, eta).values()]
        reports = [e.grid.report(key, QUACK) for key in keys if e.grid.stable(key)]
        if not reports:
            raise MissingRun("without a stable run", f"{scale}/{QUACK}")
        holds.append(bounded and not any(report["ratios_clamped"] for report in reports))
        lowest.append(1 / max(float(report["ratio_highest"]) for report in reports))
    update = update_size(1.0)
    numbers = {"lowest norm": lowest, "update": update}
    return ComputedValues(values={"holds_in": holds}, shown=numbers, limits={"update": (update, LARGEST_UPDATE)})


#: Sizes of gradients that span what training gives; what five quintic steps leave of singular values, rounded up.
GRADIENT_SIZES, LARGEST_UPDATE = (1e-4, 1.0, 1e4), 1.25


def update_size(size: float) -> float:
    """The largest singular value of what Muon makes of a gradient of a size."""
    gradient = size * torch.randn(64, 128, generator=torch.Generator().manual_seed(0))
    return float(torch.linalg.matrix_norm(orthogonalise(gradient, (QUINTIC,) * 5), ord=2))
