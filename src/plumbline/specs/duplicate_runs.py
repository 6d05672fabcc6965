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
    trained = _describe_training(extended) if extended else {}
    own = {key: trained_as for key, trained_as in _describe_training(study).items() if key not in trained}
    trained |= own
    entries = {name: _find_entry(name, study, extended) for _, name in trained}
    for (scale, name), trained_as in own.items():
        if "same_as" in entries[name]:
            _check(study, name, entries[name]["same_as"], scale, trained_as, trained)
    alike: dict[tuple[str, str], list[str]] = {}
    for (scale, name), trained_as in trained.items():
        alike.setdefault((scale, trained_as), []).append(name)
    repeats: dict[tuple[str, str], list[str]] = {}
    for (scale, _), names in alike.items():
        first = [name for name in names if entries[name].get("same_as", entries[name].get("variant_of")) not in names]
        for name in first[1:]:
            if (scale, name) in own:
                repeats.setdefault((name, first[0]), []).append(scale)
    return [
        f"{study.file}: {name} is {first} under a second name (preset {study.preset}, scale {' and '.join(scales)}): "
        "model, optimizer, schedule, interventions and data are the same, and both are trained; drop one, or write "
        f"`same_as: {first}` into {name} if the repeat is intended"
        for (name, first), scales in repeats.items()
    ]


def _describe_training(study: Study) -> Trained:
    encoder = msgspec.json.Encoder(order="deterministic")
    trained: Trained = {}
    for run in (study.runs | study.requested_runs).values():
        key = (run.spec.scale, run.spec.method)
        if key not in trained:
            trained[key] = encoder.encode(_strip_names(run.spec)).decode()
    return trained


def _strip_names(spec: RunSpec) -> RunSpec:
    """The spec without names, seed and what only reads the model; code follows from the components' names."""
    # What an intervention reads lies behind the sequences of the loss.
    of_the_loss = spec.train.validation_sequences if spec.sequences_apart else 1
    train = msgspec.structs.replace(spec.train, validate_every=1, validation_sequences=of_the_loss)
    return msgspec.structs.replace(
        spec, study="", method="", init_seed=0, train=train, probes=(), suite="", components={}
    )


def _find_entry(name: str, study: Study, extended: Study | None) -> dict[str, Any]:
    """What the YAML states of a method, variant, point or arm."""
    method, _, variant = name.partition(".")
    entry = (extended or study).definition.get("arms", {}).get(method) or study.definition["methods"][method]
    return entry.get("variants", {}).get(variant, {}) if variant else entry


def _check(study: Study, name: str, other: str, scale: str, trained_as: str, trained: Trained) -> None:
    names = {method for _, method in trained} - {name}
    if other not in names:
        raise PlumblineError(
            f"{study.file}: {name}: same_as: there is no run of the method {other!r}{nearest(other, names)}; name "
            "another one, or drop `same_as`"
        )
    if trained.get((scale, other), trained_as) != trained_as:
        raise PlumblineError(
            f"{study.file}: {name}: same_as: it is not trained as {other} is (preset {study.preset}, scale {scale}); "
            "drop `same_as`, or what it changes"
        )
