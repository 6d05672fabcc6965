"""Worlds in which one thing that the summary states about trained models is false, and the claims that then fail."""

from __future__ import annotations

from collections.abc import Callable

from tests.studies.quack.synthetic_runs import ETAS, TAUS, Facts, Mutant, World, key

BOTH = ("mha", "mla")


def every(*methods: str, scales: tuple[str, ...] = BOTH, etas: tuple[float, ...] = ETAS) -> list[str]:
    """Keys of all points of some methods, at some base rates."""
    mutants = []
    for scale in scales:
        for method in methods:
            for eta in etas:
                mutants += [
                    key(scale, method, eta, tau) for tau in (TAUS if method in ("quack", "ablation") else (None,))
                ]
    return mutants


def each(keys: list[str], change: Callable[[Facts], object]) -> Mutant:
    """A mutant that changes some runs where they are."""

    def mutant(facts: World) -> World:
        for name in keys:
            if name in facts:
                change(facts[name])
        return facts

    return mutant


def add(amount: float) -> Callable[[Facts], object]:
    """Ends higher, unless it diverged."""
    return lambda run: setattr(run, "loss", run.loss + amount)


def put(**values: object) -> Callable[[Facts], object]:
    """Other facts."""
    return lambda run: [setattr(run, name, value) for name, value in values.items()]


def both(*mutants: Mutant) -> Mutant:
    """One after the other."""

    def mutant(facts: World) -> World:
        for mutate in mutants:
            facts = mutate(facts)
        return facts

    return mutant


HIGHEST = (ETAS[-1],)
WIDE = [key(scale, "quack_tau_100") for scale in BOTH]
SPECTRAL = [key(scale, "quack.spectral") for scale in BOTH]

#: Claim -> a world in which it is false, and exactly the claims that then have another verdict than where the summary
#: is right. A claim next to the first one follows from it.
MUTANTS: dict[str, tuple[Mutant, set[str]]] = {
    # QuacK has spikes at the highest rate, so that this is not usable either, and its best runs are not stable.
    "stable_lr": (
        each(every("quack", etas=HIGHEST), put(rise=0.5)),
        {"stable_lr", "higher_lr_enabled", "no_magnitude_constraint"},
    ),
    "competitive_mha": (each([*every("quack", scales=("mha",)), SPECTRAL[0]], add(0.15)), {"competitive_mha"}),
    "beats_qk_clip_mla": (each(every("qk_clip_30", "qk_clip_100"), add(-0.3)), {"beats_qk_clip_mla"}),
    "qk_clip_fails": (
        each(every("qk_clip_30", "qk_clip_100", etas=HIGHEST), put(loss=2.95, outcome="completed")),
        {"qk_clip_fails"},
    ),
    "ablation_underperforms": (each(every("ablation", etas=HIGHEST), add(-0.4)), {"ablation_underperforms"}),
    "assumptions": (each(every("quack"), put(ratio=30.0, clamped=7)), {"assumptions"}),
    "no_magnitude_constraint": (each(every("quack"), put(logits=(8.0, 7.0))), {"no_magnitude_constraint"}),
    "higher_lr_enabled": (
        each(every("default", etas=ETAS[1:]), put(outcome="completed", loss=2.5, rise=0.0)),
        {"higher_lr_enabled"},
    ),
    "frobenius_enough": (each(SPECTRAL, add(-0.2)), {"frobenius_enough"}),
    "tau_too_high": (each([*every("quack"), *WIDE], put(outcome="completed")), {"tau_too_high"}),
    "tau_too_low": (each([key(scale, "quack", ETAS[0], TAUS[0]) for scale in BOTH], put(loss=3.3)), {"tau_too_low"}),
}


def _taus_turned(facts: World) -> World:
    """The smallest tau diverges and is fast, the largest is stable and slow."""
    for scale in BOTH:
        for eta in ETAS:
            for tau in TAUS:
                run = facts[key(scale, "quack", eta, tau)]
                run.outcome = "diverged" if tau == TAUS[0] and eta != ETAS[0] else "completed"
            facts[key(scale, "quack", eta, TAUS[0])].loss = facts[key(scale, "quack", eta, TAUS[2])].loss
        for name, facts_of in facts.items():
            if name.startswith(f"quack/{scale}/quack_tau_"):
                facts_of.outcome = "diverged" if name.endswith("tau_0.001/s42") else "completed"
    return facts


#: World -> the claims whose effect or comparison is reversed in it; losses of the other methods are as they were.
REVERSED: dict[str, tuple[Mutant, tuple[str, ...]]] = {
    "QuacK is better than QK norm": (
        each([*every("quack", scales=("mha",)), SPECTRAL[0]], add(-0.1)), ("competitive_mha",),
    ),
    "QK clip is better, and stable at the highest rate": (
        each(every("qk_clip_30", "qk_clip_100"), put(loss=2.5, outcome="completed")),
        ("beats_qk_clip_mla", "qk_clip_fails"),
    ),
    "the ablation is better": (each(every("ablation", etas=HIGHEST), add(-0.4)), ("ablation_underperforms",)),
    "the default is stable at rates at which QuacK is not": (
        both(
            each(every("default"), put(outcome="completed", loss=2.5, rise=0.0)),
            each(every("quack", etas=ETAS[1:]), put(rise=0.5)),
        ),
        ("stable_lr", "higher_lr_enabled"),
    ),
    "logits shrink": (each(every("quack"), put(logits=(40.0, 4.0))), ("no_magnitude_constraint",)),
    "small taus break and large ones are slow": (_taus_turned, ("tau_too_high", "tau_too_low")),
}  # fmt: skip

#: Claims whose reversal is in times of steps.
SLOWER = ("speed", "cheaper")

#: Claims without a direction that could be reversed -> what they state instead.
UNDIRECTED: dict[str, str] = {
    "frobenius_enough": "no difference, or next to none",
    "assumptions": "bounds",
    **dict.fromkeys(
        ("scale_tested", "suggested_tau_grid", "suggested_tau_wide", "two_norms_removed", "mla_applicable", "scheme",
         "bounded_change", "first_order"),
        "a size, a definition or a theorem",
    ),
}  # fmt: skip
