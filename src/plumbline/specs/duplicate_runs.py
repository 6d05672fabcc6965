"""Finds methods of a study that repeat another one under a second name: everything that decides their weights is the
same.

A repeat on purpose is declared in the YAML: an arm by its `variant_of`, a method or variant by `same_as`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from plumbline.core.errors import PlumblineError, nearest
from plumbline.specs.spec import RunSpec
from plumbline.specs.study_config import Study

#: (scale, name of a method, variant, point or arm) -> what decides its weights except for the seed, as a text.
Trained = dict[tuple[str, str], str]


def find_unmeant(study: Study, extended: Study | None = None) -> list[str]:
    """Name each method, variant, sweep point or arm of a study that trains what another one trains, in a sentence each.

    Seeds, validation, probes and the suite do not count: they do not make another method.

    Args:
        extended: the study that it extends, whose methods are compared with its own.

    Raises:
        PlumblineError: a `same_as` that names nothing, or something that is trained otherwise.
    """
    trainings = _describe_training(extended) if extended else {}
    own_trainings = {key: training for key, training in _describe_training(study).items() if key not in trainings}
    trainings |= own_trainings
    entries = {name: _find_entry(name, study, extended) for _, name in trainings}
    for (scale, name), training in own_trainings.items():
        if "same_as" in entries[name]:
            _check(study, name, entries[name]["same_as"], scale, training, trainings)
    names_by_training: dict[tuple[str, str], list[str]] = {}
    for (scale, name), training in trainings.items():
        names_by_training.setdefault((scale, training), []).append(name)
    repeats: dict[tuple[str, str], list[str]] = {}
    for (scale, _), names in names_by_training.items():
        undeclared_names = [
            name for name in names if entries[name].get("same_as", entries[name].get("variant_of")) not in names
        ]
        for name in undeclared_names[1:]:
            if (scale, name) in own_trainings:
                repeats.setdefault((name, undeclared_names[0]), []).append(scale)
    return [
        f"{study.file}: {name} is {first} under a second name (preset {study.preset}, scale {' and '.join(scales)}): "
        "model, optimizer, schedule, interventions and data are the same, and both are trained; drop one, or write "
        f"`same_as: {first}` into {name} if the repeat is intended"
        for (name, first), scales in repeats.items()
    ]


def _describe_training(study: Study) -> Trained:
    encoder = msgspec.json.Encoder(order="deterministic")
    trainings: Trained = {}
    for run in (study.runs | study.requested_runs).values():
        key = (run.spec.scale, run.spec.method)
        if key not in trainings:
            trainings[key] = encoder.encode(_strip_names(run.spec)).decode()
    return trainings


def _strip_names(spec: RunSpec) -> RunSpec:
    """The spec without names, seed and what only reads the model; code follows from the components' names."""
    # What an intervention reads lies behind the sequences of the loss.
    loss_sequences = spec.train.validation_sequences if spec.sequences_apart else 1
    train = msgspec.structs.replace(spec.train, validate_every=1, validation_sequences=loss_sequences)
    return msgspec.structs.replace(
        spec, study="", method="", init_seed=0, train=train, probes=(), suite="", components={}
    )


def _find_entry(name: str, study: Study, extended: Study | None) -> dict[str, Any]:
    """What the YAML states of a method, variant, point or arm."""
    method, _, variant = name.partition(".")
    entry = (extended or study).definition.get("arms", {}).get(method) or study.definition["methods"][method]
    return entry.get("variants", {}).get(variant, {}) if variant else entry


def _check(study: Study, name: str, original: str, scale: str, training: str, trainings: Trained) -> None:
    names = {method for _, method in trainings} - {name}
    if original not in names:
        raise PlumblineError(
            f"{study.file}: {name}: same_as: there is no run of the method {original!r}{nearest(original, names)}; "
            "name another one, or drop `same_as`"
        )
    if trainings.get((scale, original), training) != training:
        raise PlumblineError(
            f"{study.file}: {name}: same_as: it is not trained as {original} is (preset {study.preset}, scale "
            f"{scale}); drop `same_as`, or what it changes"
        )
