"""Makes the spec of one run from what a study's YAML states in layers: recipe, scale, method, arm."""

from __future__ import annotations

from typing import Any

from plumbline.core.errors import PlumblineError, nearest
from plumbline.specs import corpus, study_names, sweep
from plumbline.specs.spec import RunSpec
from plumbline.specs.spec_changes import PARTS, overlay


def make_spec(
    definition: dict[str, Any], texts: corpus.Corpus, preset: str, scale: str, method: str, seed: int, path: str
) -> RunSpec:
    """Make the spec of one run: the recipe, overlaid by scale, then method (and its variant or point), then arm.

    Raises:
        PlumblineError: the YAML at `path` does not give a valid spec.
    """
    merged = _merge_layers(definition, scale, method, preset, path)
    merged["data"] = merged.get("data", {}) | {
        "corpus": texts.name,
        "source": texts.source,
        "tokenizer": texts.tokenizer.kind,
        "tokenizer_vocabulary": texts.tokenizer.vocabulary,
    }
    identity = {"study": definition["study"], "preset": preset, "scale": scale, "method": method, "init_seed": seed}
    try:
        # A study that extends another one may change its mind on what scores its runs: they are trained as they were.
        suite = definition.get("extended_suite", definition.get("suite", ""))
        spec = RunSpec.from_dict(merged | identity | {"suite": suite})
        texts.require_pack(spec.data.pack, f"{spec.key}: data.pack")
        loss_sequences, where = spec.train.validation_sequences, f"{spec.key}: train.validation_sequences"
        texts.require_validation(loss_sequences, spec.sequences_apart, where)
    except PlumblineError as error:
        raise PlumblineError(f"{path}: {error}") from error
    return spec


def check_scale(definition: dict[str, Any], scale: str, preset: str, path: str) -> None:
    """Refuse a scale that a study does not have under a preset.

    Raises:
        PlumblineError: naming those that it has.
    """
    if scale not in definition["scales"] or preset not in definition["scales"][scale]:
        scales = [name for name, presets in definition["scales"].items() if preset in presets]
        raise PlumblineError(
            f"{path}: scales: no scale {scale!r} at preset {preset!r}{nearest(scale, scales)} (there are {scales})"
        )


def _merge_layers(definition: dict[str, Any], scale: str, method: str, preset: str, path: str) -> dict[str, Any]:
    """Everything that the YAML states of a run."""
    if arm := definition.get("arms", {}).get(method):
        sweep.require_point(arm["variant_of"], definition["methods"], f"{path}: arms.{method}.variant_of")
        return _overlay_parts(
            _merge_layers(definition, scale, arm["variant_of"], preset, path), arm, arm.get(preset, {})
        )
    name, dot, variant = method.partition(".")
    if arm := definition.get("arms", {}).get(name):
        merged, entry = _merge_layers(definition, scale, name, preset, path), arm
    else:
        entry = study_names.find_entry(definition, name, path)
        sweep.require_point(method, definition["methods"], path)
        merged = _overlay_parts({}, definition["recipe"], definition["scales"][scale][preset], entry)
    variants = sorted(entry.get("variants", {}))
    if not dot:
        return merged
    if variant in variants:
        return _overlay_parts(merged, entry["variants"][variant])
    where = f"{path}: methods.{name}.sweep"
    if "sweep" in entry:
        return overlay(merged, sweep.change(merged, entry, sweep.find_point(name, entry, method, where), where))
    raise PlumblineError(
        f"{path}: {'arms' if arm else 'methods'}.{name}.variants: no variant {variant!r}{nearest(variant, variants)} "
        f"(there are {variants})"
    )


def _overlay_parts(merged: dict[str, Any], *layers: dict[str, Any]) -> dict[str, Any]:
    for layer in layers:
        merged = overlay(merged, {key: value for key, value in layer.items() if key in PARTS})
    return merged
