"""Makes a folder without W_Q from a checkpoint: chooses the rule, absorbs W_Q, compares logits, writes, reads again."""

from __future__ import annotations

import copy
import math
from pathlib import Path
from typing import Any

import torch

from plumbline.core import fingerprint_file
from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic_write_json, sha256_file
from plumbline.core.provenance import describe_code, list_packages
from plumbline.model import model_folder
from plumbline.model.decoder import Decoder
from plumbline.model.finished_run import FinishedRun
from plumbline.model.numerics import require_float32
from plumbline.specs.spec import RunSpec

from ..theory.theorem_check import ROUNDING
from .elimination_source import CheckpointOfKnownArchitecture
from .equal_logits import at_precision, in_double, random_tokens, relative_difference
from .query_absorption import DecoderWeights
from .query_elimination_rules import RULES, EliminationRule, conditions

REPORT = "elimination.json"

#: What is left where no rule goes.
INSTEAD = (
    "instead: a model that never has a W_Q is trained (model.projections 'identity_query', as wq_identity in the "
    "query_free study); how much this one needs its queries is read by `plumbline probe --checkpoint FOLDER --probes "
    "upper_ablation`"
)


def eliminate(
    source: CheckpointOfKnownArchitecture, folder: Path, *, layer: int | None, limit: float, sequences: int, length: int
) -> dict[str, Any]:
    """Write the model of `source` without W_Q into the new folder `folder`, with a report, which is also returned.

    Args:
        layer: the one layer to take it out of; None: all.
        limit: largest condition number of a W_Q that is inverted.
        sequences, length: random tokens on which logits are compared.

    Raises:
        PlumblineError: no rule applies to this model, or the logits came out different.
    """
    candidates = find_rules(source, layer)
    layers = list(range(source.spec.layers)) if layer is None else [layer]
    original = source.open()
    parts = DecoderWeights(original.decoder)
    faults = {rule.name: rule.faults(parts, layers, limit) for rule in candidates}
    rule = next((rule for rule in candidates if not faults[rule.name]), None)
    if rule is None:
        raise PlumblineError(refusal(source, faults))
    report: dict[str, Any] = {
        "checkpoint": str(source.path.resolve()),
        "kind": source.kind,
        "run_id": None if source.run is None else source.run.run_id,
        "rule": rule.name,
        "layers": layers,
        "conditions": {  # null: singular
            str(number): value if math.isfinite(value) else None for number, value in conditions(parts, layers).items()
        },
        "inverted": rule.always_inverts or bool(parts.layers_with_query_bias(layers)),
        "largest_condition": limit,
        "precision": source.precision,
        "sequences": sequences,
        "tokens": length,
    }
    silent = in_double(_without_any_query(original.decoder, layers))
    rule.apply(parts, layers)
    reduced = parts.without_queries(layers)
    require_float32(torch.device("cpu"))
    tokens_BT = random_tokens(source.spec.vocabulary, sequences, length)
    exact = relative_difference(in_double(reduced), original.in_double, tokens_BT)
    if not exact <= ROUNDING:
        raise PlumblineError(
            f"{source.path}: by {rule.name} the logits differ by {exact:.2g} in float64, where {ROUNDING:g} would be "
            "rounding; nothing was written. A smaller --max-condition-number names the layers at fault, if they are"
        )
    reduced = reduced.float()
    again = _write_and_read_back(folder, source, reduced, report)
    report["logits"] = {
        "float64": exact,
        "as_used": relative_difference(at_precision(again, source.precision), original.as_used, tokens_BT),
        "own_rounding": relative_difference(original.as_used, original.in_double, tokens_BT),
        "no_queries": relative_difference(silent, original.in_double, tokens_BT),
    }
    head = 0 if again.head is None else again.head.weight.numel()
    report["untied"] = source.spec.tied_embeddings and not again.spec.tied_embeddings
    report["parameters"] = {"before": _count(original.decoder), "after": _count(again), "head": head}
    report["made_with"] = {"code": describe_code(), "packages": list_packages()}
    atomic_write_json(folder / REPORT, report)
    return report


def find_rules(source: CheckpointOfKnownArchitecture, layer: int | None) -> list[EliminationRule]:
    """The rules that a model's architecture allows, the preferred one first.

    Raises:
        PlumblineError: there is none; the message says for each rule why.
    """
    candidates = [rule for rule in RULES if rule.every_layer == (layer is None) or rule.local]
    obstacles = {rule.name: rule.obstacles(source.spec) for rule in RULES}
    rules = [rule for rule in candidates if not obstacles[rule.name]]
    if not rules:
        message = refusal(source, {rule.name: obstacles[rule.name] for rule in candidates})
        others = [rule.name for rule in RULES if rule not in candidates and not obstacles[rule.name]]
        if others:
            message += f"\n  {others[0]} does go: {'leave out' if layer is not None else 'give'} --only-layer"
        else:
            message += f"\n  {INSTEAD}"
        raise PlumblineError(message)
    return rules


def refusal(source: CheckpointOfKnownArchitecture, reasons: dict[str, list[str]]) -> str:
    """The message of a refusal: for each rule the reasons why it does not apply."""
    lines = [f"W_Q cannot be taken out of {source.path} ({source.kind}) with equal logits:"]
    for name, why in reasons.items():
        lines += [f"  {name}:", *(f"    - {reason}" for reason in why)]
    return "\n".join(lines)


def _write_and_read_back(
    folder: Path, source: CheckpointOfKnownArchitecture, model: Decoder, report: dict[str, Any]
) -> Decoder:
    """The model as it is read from what was written; a run as a run, another one as a model.

    Raises:
        PlumblineError: what is read is not what was written.
    """
    folder.mkdir(parents=True)
    if source.run is None or source.outcome is None:
        model_folder.write_model(folder, model)
        again = model_folder.read_model(folder)
    else:
        model_folder.write_weights(folder, model)
        _write_run(folder, source.run, source.outcome, model, source.trained_on | {"eliminated": report})
        again = FinishedRun.read(folder).model()
    weights = dict(again.named_parameters())
    if not all(torch.equal(value, weights[name]) for name, value in model.named_parameters()):
        raise PlumblineError(f"{folder}: weights read back differ from those written; check the disk")
    return again


def _write_run(folder: Path, run: RunSpec, outcome: dict[str, Any], model: Decoder, facts: dict[str, Any]) -> None:
    """Manifest and outcome of the run, with the model's new spec: it is another run's, which nobody trained."""
    changed = {
        "model": model.spec.to_dict(),
        "method": f"{run.method}.query_eliminated",
        "components": {},
        "probes": [],
    }
    spec = RunSpec.from_dict(run.to_dict() | changed)
    copied = {key: outcome[key] for key in ("study", "preset", "scale", "init_seed", "outcome", "weights_step")}
    new = {"run_id": spec.run_id, "method": spec.method, "eliminated_from": run.run_id}
    atomic_write_json(folder / "outcome.json", copied | new)
    listed = (folder / model_folder.WEIGHTS, folder / "outcome.json")
    files = {path.name: {"bytes": path.stat().st_size, "sha256": sha256_file(path)} for path in listed}
    manifest = {"run_id": spec.run_id, "spec": spec.to_dict(), "files": files} | facts
    fingerprint_file.write_facts(folder / "manifest.json", manifest)


def _without_any_query(model: Decoder, layers: list[int]) -> Decoder:
    """The model with queries of zero in `layers`: what logits would be if queries were lost, to read a residual by."""
    silent = copy.deepcopy(model)
    with torch.no_grad():
        for name, own in silent.parameter_roles.items():
            if own.layer in layers and "query" in (own.role, own.owner):
                silent.get_parameter(name).zero_()
    return silent


def _count(model: Decoder) -> int:
    return sum(value.numel() for value in model.parameters())
