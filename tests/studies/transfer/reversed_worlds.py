"""Worlds in which an effect that the paper claims is turned around, while levels and spreads are as it prints them."""

from __future__ import annotations

import pandas as pd

from tests.studies.transfer.runs_with_false_claims import MUTANTS, Change, both, completes, diverges, seeds
from tests.studies.transfer.synthetic_results import CONCENTRATED, LESS_CONCENTRATED, MEAN, Facts, Run


def _baselines(facts: Facts, scale: str) -> list[Run]:
    return [run for (where, method, _), run in facts.items() if (where, method) == (scale, "baseline")]


def _others(facts: Facts, scale: str) -> list[tuple[str, Run]]:
    return [(method, run) for (where, method, _), run in facts.items() if where == scale and method != "baseline"]


def tasks_mirrored(scale: str) -> Change:
    """Each method's tasks as far on the other side of the baseline's; those of the second device, of the first's."""

    def change(facts: Facts) -> None:
        baselines = _baselines(facts, scale)
        middle = pd.concat([run.tasks for run in baselines], axis=1).mean(axis=1)
        for method, run in _others(facts, scale):
            if run.tasks is not None:
                run.tasks = 2 * (baselines[0].tasks if method == "second_hardware" else middle) - run.tasks

    return change


def losses_mirrored(facts: Facts) -> None:
    """Each method's loss as far on the other side of the baseline's."""
    for scale in ("base", "large"):
        for _, run in _others(facts, scale):
            run.loss = 2 * _baselines(facts, scale)[0].loss - run.loss


def concentration_mirrored(facts: Facts) -> None:
    """What kept its concentration has lost it, and what lost it keeps it; the baseline stays."""
    for _, run in _others(facts, "base"):
        run.concentration = CONCENTRATED + LESS_CONCENTRATED - run.concentration


def spreads_turned(facts: Facts) -> None:
    """The baseline has Softpick's spread over seeds, and Softpick the baseline's."""
    seeds("baseline", MEAN + 0.0007, MEAN - 0.0015, MEAN + 0.0008)(facts)
    seeds("softpick", 0.4922 - 0.0012, 0.4922 - 0.0017, 0.4922 + 0.0021)(facts)


def completes_and_diverges(facts: Facts) -> None:
    """Of the large scale: what diverged completes, and what completed diverges as SSMax does."""
    for (scale, method, seed), run in list(facts.items()):
        if scale == "large":
            (completes(method, seed) if run.diverged is not None else diverges(method, "rise", 5800, seed))(facts)


def falling(facts: Facts) -> None:
    """Gradient norms of the runs that diverge go the other way in time: from the printed last one to the first."""
    for method in ("hybrid_norm", "ssmax", "hyper"):
        for (scale, name, _), run in facts.items():
            if (scale, name) == ("large", method) and run.diverged is not None:
                steps, norms = zip(*run.norms[:-1], strict=True)
                run.norms = [*zip(steps, reversed(norms), strict=True), run.norms[-1]]


mirrored = both(tasks_mirrored("base"), tasks_mirrored("large"), losses_mirrored, concentration_mirrored)

#: World -> how it is made of the one where the paper is right.
WORLDS: dict[str, Change] = {
    "mirrored": mirrored,
    "mirrored at the base scale": tasks_mirrored("base"),
    "mirrored at the large scale": tasks_mirrored("large"),
    "losses mirrored": losses_mirrored,
    "completes and diverges": completes_and_diverges,
    "norms fall": falling,
    "improvers turned at the large scale": MUTANTS["spearman_7"],
    "spreads turned": spreads_turned,
}
