"""Worlds that other ones and the drawn ones are made of: control and intervention swapped, and nothing happens."""

from __future__ import annotations

import copy

from tests.studies.premature.synthetic_runs import Facts, World


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


def nothing_happens(facts: World) -> World:
    """Every run ends as its control did, and reads as it did."""
    made = copy.deepcopy(facts)
    for key in facts:
        study, scale, _, seed = key.split("/")
        control = facts[f"{study}/{scale}/gpt/{seed}"]
        logged, own = made[key].logged, copy.deepcopy(control)
        made[key] = Facts(loss=own.loss, run_values=own.run_values, tasks=own.tasks and dict(own.tasks), logged=logged)
    return made
