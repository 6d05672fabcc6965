"""Makes the runs of a trial: one method of a study against another one, with as many steps and seeds as a time allows.

It is the study's own recipe at one of its scales; what `config.trial` changes of that (steps, warm-up, held-out
sequences, pack) is part of the specs of its runs, which lie next to the study's:
``study/SCALE_STEPS_steps_DIGEST/method/sSEED``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError
from plumbline.core.files import canonical_json, sha256_text
from plumbline.specs import corpus, study_config, study_folders
from plumbline.specs.config import ROOT
from plumbline.specs.spec import RunSpec
from plumbline.specs.study_config import Run, Study

#: Where messages say that it is written.
WHERE = "config/config.yaml (with --config): trial"


def scale_name(given: dict[str, Any]) -> str:
    """The name of the scale of a trial's runs; it ends in a digest, so that trials which differ in anything but methods
    and seeds do not share a folder."""
    digest = sha256_text(canonical_json([given[key] for key in ("warmup_steps", "pack", "validation_sequences")]))[:6]
    return f"{given['scale']}_{given['steps']}_steps_{digest}"


def own_scale(scale: str) -> str:
    """The study's own scale that a trial's scale (`scale_name`) was made from; any other scale unchanged."""
    return re.sub(r"_\d+_steps_[0-9a-f]{6}\Z", "", scale)


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """A trial and its runs.

    Attributes:
        of: the study's own scale.
        scale: the name of the trial's scale, as its runs have it.
        against: the baseline that `method` is compared with.
        runs: key -> run; those of `against` come first, each with every seed.
    """

    study: Study
    of: str
    scale: str
    method: str
    against: str
    seeds: tuple[int, ...]
    runs: dict[str, Run]

    @property
    def name(self) -> str:
        """The name of the folder that the trial's page is written to."""
        return f"{self.study.name}-{self.scale}-{self.method}-against-{self.against}"

    @property
    def any_run(self) -> Run:
        """A run of the trial's baseline, to read the sizes that all of its runs share."""
        return next(iter(self.runs.values()))

    def of_method(self, method: str) -> list[Run]:
        """The trial's runs of `method`, in the order of the seeds."""
        return [run for run in self.runs.values() if run.spec.method == method]

    @property
    def digest(self) -> str:
        """A hash of what the trial's page says of its runs before they are read: their ids and labels."""
        labels = [self.study.label(name) for name in (self.against, self.method)]
        ids = [run.spec.run_id for run in self.runs.values()]
        return sha256_text(canonical_json([ids, labels, self.study.scale_label(self.of)]))[:16]


def numbers(given: Any) -> Any:
    """A trial's configuration with whole numbers as ints: Snakemake's command line makes texts of nested values."""
    if isinstance(given, dict):
        return {key: numbers(value) for key, value in given.items()}
    if isinstance(given, list):
        return [numbers(value) for value in given]
    return int(given) if isinstance(given, str) and re.fullmatch(r"[0-9]{1,15}", given) else given


def load(given: dict[str, Any], study: Study, root: Path = ROOT, source: str = corpus.AS_THE_CORPUS_SAYS) -> Trial:
    """Make the trial that a configuration asks for.

    Args:
        given: the configuration's ``trial``, already checked against its schema.
        study: the study that it names.
        source: replaces the source of the corpus's texts, unless it is `corpus`.

    Raises:
        PlumblineError: a scale, method, pack or number that the study, its corpus or its recipe does not allow.
    """
    of, method, against = given["scale"], given["method"], given["against"]
    study_config.check_scale(study.definition, of, study.preset, WHERE)
    if method == against:
        raise PlumblineError(f"{WHERE}: method: {method!r} is also `against`; name another method")
    read = corpus.load(study.corpus, study.preset, source, root, f"{WHERE}: ")
    if read.validation is not None and given["validation_sequences"] > read.validation:
        raise PlumblineError(
            f"{WHERE}: validation_sequences: {given['validation_sequences']}, but the held-out pack of {read.path} has "
            f"{read.validation} at preset {study.preset}; ask for at most so many"
        )
    scale, runs = scale_name(given), {}
    if scale in study.definition["scales"]:
        raise PlumblineError(
            f"{WHERE}: scale: the runs of this trial would be those of the scale {scale!r} of "
            f"{study.file}, which has that name already; rename that scale, or change `steps`"
        )
    extended = study_config.load(study.code, study.preset, root, source) if study.code != study.name else study
    for name in (against, method):
        owner = extended if name.partition(".")[0] in study.definition["inherited"] else study
        changed = _changed(owner.definition, given, scale, study.preset)
        for seed in given["seeds"]:
            spec = study_config.make_spec(changed, read, study.preset, scale, name, seed, WHERE)
            _require_kept(spec, given, root)
            size = study.definition["scales"][of][study.preset].get("size", "one_gpu")
            runs[spec.key] = Run(spec=spec, groups=("trial",), size=size)
    seeds = tuple(given["seeds"])
    return Trial(study=study, of=of, scale=scale, method=method, against=against, seeds=seeds, runs=runs)


def _require_kept(spec: RunSpec, given: dict[str, Any], root: Path) -> None:
    """Refuse a method that itself says what the trial says of every run."""
    kept = {"steps": spec.train.steps, "validation_sequences": spec.train.validation_sequences, "pack": spec.data.pack}
    other = [key for key, value in kept.items() if value != given[key]]
    if other:
        raise PlumblineError(
            f"{WHERE}: {other[0]}: {spec.method!r} has {kept[other[0]]!r} of its own in "
            f"{study_folders.yaml_of(spec.study, root)}, so the trial's does not apply to it; name another method"
        )


def _changed(of_study: dict[str, Any], given: dict[str, Any], scale: str, preset: str) -> dict[str, Any]:
    """A study's YAML with the trial's scale in it. It is validated at its end alone."""
    steps = given["steps"]
    train = {"steps": steps, "validate_every": steps, "validation_sequences": given["validation_sequences"]}
    change = {"train": train, "schedule": {"warmup_steps": given["warmup_steps"]}, "data": {"pack": given["pack"]}}
    entry = study_config.overlay(of_study["scales"][given["scale"]][preset], change)
    return of_study | {"scales": {scale: {preset: entry}}}
