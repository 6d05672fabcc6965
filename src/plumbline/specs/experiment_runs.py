"""Makes the runs of an experiment: a method and its baseline, each with seeds of its own, by the study's own recipe.

`config.experiment` says which (`plumbline try` writes it; `plumbline screen` has more arms, methods and combinations of
them: `arms`). Where it names no budget, the runs are those of the study's
scale, next to its own: ``study/SCALE/method/sSEED``. What it changes of that (steps, warm-up, held-out sequences, pack,
the order of the data) is part of the runs' specs, which then lie in a folder of their own:
``study/SCALE_STEPS_steps_DIGEST/method/sSEED``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import structs

from plumbline.core.errors import PlumblineError
from plumbline.core.files import canonical_json, sha256_text
from plumbline.specs import combined_methods, corpus, spec_changes, spec_layers, study_config, study_folders
from plumbline.specs.spec import RunSpec
from plumbline.specs.study_config import Run, Study
from plumbline.specs.yaml_files import ROOT

#: Where it is written, as messages name it.
WHERE = "config/config.yaml (with --config): experiment"
#: The keys of a budget that is not the scale's own; all of them or none.
BUDGET = ("steps", "warmup_steps", "pack", "validation_sequences")
#: What a seed changes: the weights that a run starts from, or also the order of its data.
INITIALISATION, BOTH = "initialisation", "both"


def scale_name(experiment: dict[str, Any]) -> str:
    """The name of the scale of an experiment's runs; with a budget of its own it ends in a digest, so that experiments
    which differ in anything but methods and seeds do not share a folder."""
    if "steps" not in experiment:
        return str(experiment["scale"])
    parts = [experiment[key] for key in ("warmup_steps", "pack", "validation_sequences")]
    if experiment.get("vary", INITIALISATION) != INITIALISATION:
        parts.append(experiment["vary"])
    return f"{experiment['scale']}_{experiment['steps']}_steps_{sha256_text(canonical_json(parts))[:6]}"


def own_scale(scale: str) -> str:
    """The study's own scale that an experiment's scale (`scale_name`) was made from; any other scale unchanged."""
    return re.sub(r"_\d+_steps_[0-9a-f]{6}\Z", "", scale)


@dataclass(frozen=True, kw_only=True, slots=True)
class ExperimentRuns:
    """The runs of an experiment.

    Attributes:
        of: the study's own scale.
        scale: the name of the scale of these runs.
        runs: key -> run, arm by arm; those of the baseline come first, where there are two.
    """

    study: Study
    of: str
    scale: str
    runs: dict[str, Run]


def convert_numbers(configured: Any) -> Any:
    """A configuration's `experiment` with whole numbers as ints: Snakemake's command line makes texts of nested
    values."""
    if isinstance(configured, dict):
        return {key: convert_numbers(value) for key, value in configured.items()}
    if isinstance(configured, list):
        return [convert_numbers(value) for value in configured]
    return int(configured) if isinstance(configured, str) and re.fullmatch(r"[0-9]{1,15}", configured) else configured


def own_budget(study: Study, scale: str) -> dict[str, Any]:
    """The budget of a study's own scale, by the keys of BUDGET: what an experiment has that names none."""
    recipe, parts = study.definition["recipe"], study.definition["scales"][scale][study.preset]
    train = recipe.get("train", {}) | parts.get("train", {})
    schedule = recipe.get("schedule", {}) | parts.get("schedule", {})
    pack = (recipe.get("data", {}) | parts.get("data", {}))["pack"]
    values = (train["steps"], schedule["warmup_steps"], pack, train["validation_sequences"])
    return dict(zip(BUDGET, values, strict=True))


def budget(study: Study, scale: str, steps: int, texts: corpus.Corpus, runs: Iterable[Run]) -> dict[str, Any]:
    """The budget of so many steps at a study's scale, by the keys of BUDGET.

    It has the scale's own share of warm-up, the scale's own pack or the smallest that holds what a run reads, and,
    where its size is stated, the whole held-out pack except for what interventions of the project's `runs` read of it.
    """
    own_values = own_budget(study, scale)
    recipe, parts = study.definition["recipe"], study.definition["scales"][scale][study.preset]
    train = recipe.get("train", {}) | parts.get("train", {})
    sequences = steps * train["batch_tokens"] / int(parts["model"]["context"])
    sequences_apart = max((run.spec.sequences_apart for run in runs), default=0)
    return {
        "steps": steps,
        "warmup_steps": min(steps, math.ceil(own_values["warmup_steps"] * steps / own_values["steps"])),
        "pack": _pack(texts.packs, own_values["pack"], sequences),
        "validation_sequences": max(texts.validation - sequences_apart, 1)
        if texts.validation
        else own_values["validation_sequences"],
    }


def _pack(packs: Mapping[str, int | None], own_pack: str, sequences: float) -> str:
    """The scale's own pack if it holds so many sequences, else the smallest that does, else the largest."""
    sizes = {name: math.inf if size is None else size for name, size in packs.items()}
    if sizes[own_pack] >= sequences:
        return own_pack
    candidates = [name for name, size in sizes.items() if size >= sequences]
    return min(candidates, key=sizes.__getitem__) if candidates else max(sizes, key=sizes.__getitem__)


def load(
    experiment: dict[str, Any], study: Study, root: Path = ROOT, source: str = corpus.AS_THE_CORPUS_SAYS
) -> ExperimentRuns:
    """Make the runs that a configuration asks for.

    Args:
        experiment: the configuration's ``experiment``, already checked.
        study: the study that it names, or that of a user's own file.
        source: replaces the source of the corpus's texts, unless it is `corpus`.

    Raises:
        PlumblineError: a scale, method, pack or number that the study, its corpus or its recipe does not allow.
    """
    study_scale, against = experiment["scale"], experiment["against"]
    spec_layers.check_scale(study.definition, study_scale, study.preset, WHERE)
    arms = list_arms(experiment)
    if "method" in experiment and experiment["method"] == against:
        raise PlumblineError(f"{WHERE}: method: {against!r} is also `against`; name another method")
    vary = experiment.get("vary", INITIALISATION)
    if vary != INITIALISATION and "steps" not in experiment:
        experiment = experiment | own_budget(study, study_scale)
    texts = corpus.load(study.corpus, study.preset, source, root, f"{WHERE}: ")
    scale = scale_name(experiment)
    if scale != study_scale and scale in study.definition["scales"]:
        raise PlumblineError(
            f"{WHERE}: scale: the runs of this experiment would be those of the scale {scale!r} of "
            f"{study.file}, which has that name already; rename that scale, or change `steps`"
        )
    extended = study_config.load(study.code, study.preset, root, source) if study.code != study.name else study
    definitions = {
        inherited: _change_study(owner.definition, experiment, scale, study.preset)
        if scale != study_scale
        else owner.definition
        for inherited, owner in ((True, extended), (False, study))
    }

    @cache
    def make_spec(name: str, seed: int) -> RunSpec:
        definition = definitions[name.partition(".")[0] in study.definition["inherited"]]
        spec = spec_layers.make_spec(definition, texts, study.preset, scale, name, seed, WHERE)
        if scale != study_scale:
            _require_unchanged(spec, experiment, root)
        return structs.replace(spec, data_seed=seed) if vary == BOTH else spec

    size = study.definition["scales"][study_scale][study.preset].get("size", "one_gpu")
    runs: dict[str, Run] = {}
    for arm in arms:
        for seed in arm["seeds"]:
            if "method" in arm:
                spec = make_spec(arm["method"], seed)
            else:
                choices = {slot: make_spec(name, seed) for slot, name in arm["levels"].items()}
                spec = combined_methods.combine(make_spec(against, seed), choices)
            runs[spec.key] = Run(spec=spec, groups=("experiment",), size=size)
    return ExperimentRuns(study=study, of=study_scale, scale=scale, runs=runs)


def list_arms(experiment: dict[str, Any]) -> list[dict[str, Any]]:
    """List the arms of an experiment, each with its seeds: those of a screen, or the baseline and the method."""
    if "arms" in experiment:
        return list(experiment["arms"])
    return [
        {"method": experiment["against"], "seeds": experiment["baseline_seeds"]},
        {"method": experiment["method"], "seeds": experiment["seeds"]},
    ]


def _require_unchanged(spec: RunSpec, experiment: dict[str, Any], root: Path) -> None:
    """Refuse a method that itself states what the experiment states of every run."""
    values = {
        "steps": spec.train.steps,
        "validation_sequences": spec.train.validation_sequences,
        "pack": spec.data.pack,
    }
    changed_keys = [key for key, value in values.items() if value != experiment[key]]
    if changed_keys:
        raise PlumblineError(
            f"{WHERE}: {changed_keys[0]}: {spec.method!r} has {values[changed_keys[0]]!r} of its own in "
            f"{study_folders.yaml_of(spec.study, root)}, so the experiment's does not apply to it; name another method"
        )


def _change_study(definition: dict[str, Any], experiment: dict[str, Any], scale: str, preset: str) -> dict[str, Any]:
    """A study's YAML with the experiment's scale in it. It is validated at its end alone."""
    steps = experiment["steps"]
    train = {"steps": steps, "validate_every": steps, "validation_sequences": experiment["validation_sequences"]}
    change = {
        "train": train,
        "schedule": {"warmup_steps": experiment["warmup_steps"]},
        "data": {"pack": experiment["pack"]},
    }
    entry = spec_changes.overlay(definition["scales"][experiment["scale"]][preset], change)
    return definition | {"scales": {scale: {preset: entry}}}
