"""Worlds in which the paper's claims do not hold: each changes the published facts in one way."""

from __future__ import annotations

import copy

from tests.studies.premature.synthetic_runs import Facts, Mutant, World


def swapped(facts: World) -> World:
    """Control and intervention change places, in every architecture, scale and seed."""
    made = copy.deepcopy(facts)
    for key in facts:
        study, scale, method, seed = key.split("/")
        other = f"{study}/{scale}/{method}_slow/{seed}"
        if other in facts:
            made[key], made[other] = copy.deepcopy(facts[other]), copy.deepcopy(facts[key])
            made[key].logged, made[other].logged = [], facts[other].logged
            made[other].saved = None
    return made


def far_off(facts: World) -> World:
    """Every number is elsewhere, every order of them is turned around, and seeds are far from each other."""
    made = copy.deepcopy(facts)
    turn = {"entropy": lambda x: 1.6 - x if x < 0.99 else x, "lower_copy": lambda x: 1e-5 / x}
    turn |= {"logit_mean_abs": lambda x: 3 / x, "ffn_write_rms": lambda x: 0.003 / x}
    turn |= {"bilinear_displacement": lambda x: 5 / (x + 0.1), "bilinear_top": lambda x: 1 / x}
    turn |= {
        "locality_query": lambda x: 0.2 / x,
        "locality_key": lambda x: 0.2 / x,
        "projector_share": lambda x: 0.5 + x,
    }
    for key, run in made.items():
        apart = {"s42": 0.1, "s43": 0.5, "s44": -0.4}[key.split("/")[3]] * (1 if "_slow" in key else -1)
        run.loss, run.control_loss = 7.0 - run.loss + apart, 7.0 - run.control_loss
        run.saved = None
        run.tasks = {task: 0.9 - value for task, value in run.tasks.items()}
        for (probe, part), curve in run.run_values.items():
            if probe in turn:
                run.run_values[probe, part] = {at: (turn[probe](value), null) for at, (value, null) in curve.items()}
            if probe in ("loss_no_query", "loss_no_key", "loss_neither"):
                spread = {"loss_no_query": 1.5, "loss_no_key": 2.0, "loss_neither": 3.0}[probe]
                run.run_values[probe, part] = {at: (spread - at, null) for at, (_, null) in curve.items()}
        run.logged = [(step, 0.0, null) for step, _, null in run.logged]
    return made


def nothing_happens(facts: World) -> World:
    """Every run ends as its control did, and reads as it did."""
    made = copy.deepcopy(facts)
    for key in facts:
        study, scale, _, seed = key.split("/")
        control = facts[f"{study}/{scale}/gpt/{seed}"]
        logged, own = made[key].logged, copy.deepcopy(control)
        made[key] = Facts(loss=own.loss, run_values=own.run_values, tasks=own.tasks and dict(own.tasks), logged=logged)
    return made


MUTANTS: dict[str, Mutant] = {
    "swapped": swapped,
    "far off": far_off,
    "nothing happens": nothing_happens,
}
