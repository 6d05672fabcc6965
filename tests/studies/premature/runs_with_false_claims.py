"""Worlds that other ones and the drawn ones are made of: control and intervention swapped, and nothing happens."""

from __future__ import annotations

import copy

from tests.studies.premature.synthetic_runs import Facts, World


def swap_arms(facts: World) -> World:
    """Control and intervention change places, in every architecture, scale and seed."""
    copied_facts = copy.deepcopy(facts)
    for key in facts:
        study, scale, method, seed = key.split("/")
        other = f"{study}/{scale}/{method}_slow/{seed}"
        if other in facts:
            copied_facts[key], copied_facts[other] = copy.deepcopy(facts[other]), copy.deepcopy(facts[key])
            copied_facts[key].logged, copied_facts[other].logged = [], facts[other].logged
            copied_facts[other].saved = None
    return copied_facts


def nothing_happens(facts: World) -> World:
    """Every run ends as its control did, and reads as it did."""
    copied_facts = copy.deepcopy(facts)
    for key in facts:
        study, scale, _, seed = key.split("/")
        control = facts[f"{study}/{scale}/gpt/{seed}"]
        logged, own = copied_facts[key].logged, copy.deepcopy(control)
        copied_facts[key] = Facts(
            loss=own.loss, run_values=own.run_values, tasks=own.tasks and dict(own.tasks), logged=logged
        )
    return copied_facts
