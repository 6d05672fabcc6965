"""Makes the specs of the runs that a study's small.yaml asks for, and the targets that read them.

They belong to the study at the preset of small models, next to runs that it may have there anyway, and are made on
request: `small_pilot` asks for those that are run first, `small` and its picture `small_gains` for all.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from plumbline.core.errors import PlumblineError
from plumbline.specs import corpus, small_file, small_measures, spec_layers, study_folders, study_names
from plumbline.specs.small_file import PILOT_SEEDS, SMALL_PRESET, SmallFile
from plumbline.specs.spec import RunSpec
from plumbline.specs.spec_changes import PARTS, overlay
from plumbline.specs.study_extension import complete_study
from plumbline.specs.yaml_files import ROOT, load_study, read_yaml

#: The targets, of which the tables are also the groups of runs that they read.
SMALL, PILOT, GAINS = "small", "small_pilot", "small_gains"
#: Ends the method's name of a run whose rate is not chosen yet: it is planned, and refused where it would be made.
UNCHOSEN = "-rate_not_chosen"
#: The frames of measures that targets read beside a run's own files.
_READ = ("probes", "scores")


@dataclass(frozen=True, kw_only=True, slots=True)
class StatedRun:
    """A run that a statement asks for.

    Attributes:
        statement: its id.
        rate: the multiple of the arm's own learning rate; None where it is not chosen yet.
        tuning: whether it is one of those that choose the rate.
        pilot: whether it is one of those that are run first.
        measured: what is read of it, `probes` or `scores`, if not its own files alone.
    """

    statement: str
    size: str
    arm: str
    rate: float | None
    tuning: bool
    pilot: bool
    measured: str | None
    spec: RunSpec


def load_definition(small: SmallFile, root: Path = ROOT) -> dict[str, Any]:
    """Load the study's definition with the sizes and targets of its small models."""
    path = study_folders.yaml_of(small.study, root)
    return add_targets(complete_study(load_study(small.study, root), path, root), small, root)


def add_targets(definition: dict[str, Any], small: SmallFile, root: Path = ROOT) -> dict[str, Any]:
    """Add the sizes as scales of the preset of small models, and the targets of their runs.

    A study that has no scale of its own there has nothing else at this preset.
    """
    path = small_file.path_of(small.study, root)
    raw_sizes = read_yaml(path)["sizes"]  # a component's options are in no struct
    definition = copy.deepcopy(definition)
    if clashes := [
        name for name in (SMALL, PILOT, GAINS) if name in definition["targets"] or name in definition["runs"]
    ]:
        yaml = study_folders.yaml_of(small.study, root)
        raise PlumblineError(
            f"{yaml}: {clashes[0]!r} is a target and a group of runs of {path}; rename this study's own"
        )
    scales = definition["scales"]
    if not any(SMALL_PRESET in presets for presets in scales.values()):
        definition |= {"runs": {}, "targets": {}, "measurements": {}}
    new_scales = {}
    for name, size in small.sizes.items():
        spec_layers.check_scale(definition, size.scale, small.sizes_of, f"{path}: sizes.{name}")
        changes = {part: raw_sizes[name][part] for part in PARTS if part in raw_sizes[name]}
        new_scales[name] = {SMALL_PRESET: overlay(scales[size.scale][small.sizes_of], changes) | {"label": size.label}}
        models = [{**new_scale[SMALL_PRESET], "label": ""} for new_scale in new_scales.values()]
        if models.index(models[-1]) < len(models) - 1:
            twin = [*new_scales][models.index(models[-1])]
            raise PlumblineError(f"{path}: sizes.{name}: is {twin!r} under another name; change it, or remove it")
    definition["scales"] = scales | new_scales
    for arm in definition.get("arms", {}).values():
        if small.sizes_of in arm:
            arm[SMALL_PRESET] = arm[small.sizes_of]
    reads = [name for name in _READ if any(each.measure.frame == name for each in small.statements)]
    for name, kind, group in ((SMALL, "table", SMALL), (GAINS, "figure", SMALL), (PILOT, "table", PILOT)):
        read_of = {frame: [f"{group}_{frame}"] for frame in reads}
        definition["runs"] |= {each: [] for each in (group, *(f"{group}_{frame}" for frame in reads))}
        definition["targets"][name] = {
            "kind": kind,
            "runs": [group],
            "reads": reads,
            "read_of": read_of,
            "published": [],
            "on_request": True,
            # Enters a product's fingerprint: a changed margin makes the table stale, though it changes no run.
            "stated": [*(each.digest for each in small.statements), msgspec.to_builtins(small.noise)],
        }
    return definition


def list_specs(runs: Iterable[StatedRun]) -> dict[str, tuple[RunSpec, tuple[str, ...]]]:
    """Key -> spec and groups of each run, which several statements may ask for."""
    specs: dict[str, tuple[RunSpec, tuple[str, ...]]] = {}
    for run in runs:
        groups = specs.get(run.spec.key, (run.spec, ()))[1]
        targets = [SMALL, *([PILOT] if run.pilot else [])]
        run_groups = [*targets, *(f"{name}_{run.measured}" for name in targets if run.measured)]
        specs[run.spec.key] = (run.spec, tuple(dict.fromkeys([*groups, *run_groups])))
    return specs


def list_stated_runs(
    definition: dict[str, Any], small: SmallFile, root: Path = ROOT, source: str = corpus.AS_THE_CORPUS_SAYS
) -> list[StatedRun]:
    """List the runs of all statements, statement by statement: each size, arm, rate and seed; of a tuned one those that
    choose the rate, and those at the chosen one, which have a name of their own until it is chosen. What trains the
    same has one spec, whatever arm and rate it is stated as.

    Args:
        definition: the study's, with the sizes (`add_targets`).

    Raises:
        PlumblineError: an arm is not there or does not write what is measured, or a size's changes give no valid spec.
    """
    chosen_rates = small_file.load_rates(small, root)
    specs = _make_arm_specs(definition, small, root, source)
    runs = []
    for statement in small.statements:
        tuning, frame = statement.tuning, statement.measure.frame
        where = f"{small_file.path_of(small.study, root)}: statements.{statement.id}.measure"
        for size in statement.sizes:
            for arm in statement.arms:
                small_measures.require_written(statement.measure, specs[size, arm, 1.0], where)
                requests: list[tuple[float | None, list[int], bool]]
                if tuning:
                    requests = [(rate, tuning.seeds, True) for rate in statement.rates or []]
                    requests.append((chosen_rates.get(size, {}).get(arm), statement.seeds, False))
                    requests.append((1.0, tuning.own_seeds or [], False))
                else:
                    requests = [(rate, statement.seeds, False) for rate in statement.rates or [1.0]]
                runs += [
                    StatedRun(
                        statement=statement.id,
                        size=size,
                        arm=arm,
                        rate=rate,
                        tuning=is_tuning,
                        pilot=is_tuning or (not tuning and seed in statement.seeds[:PILOT_SEEDS]),
                        measured=frame if frame in _READ else None,
                        spec=msgspec.structs.replace(specs[size, arm, rate], init_seed=seed),
                    )
                    for rate, seeds, is_tuning in requests
                    for seed in seeds
                ]
    return runs


def explain_unchosen(key: str, root: Path) -> str:
    """Say why a run whose rate is not chosen yet cannot be made, and what chooses it."""
    study, size = key.split("/")[:2]
    rates = study_folders.format_path(small_file.rates_path_of(study, root), root)
    return (
        f"{key} has no learning rate yet: {rates} has none of its size; make "
        f"results/{SMALL_PRESET}/{study}/{PILOT}.csv with 'sizes=[{size}]', whose runs choose it, then run "
        f"python -m plumbline.report.small_rates {study} --write"
    )


def _make_arm_specs(
    definition: dict[str, Any], small: SmallFile, root: Path, source: str
) -> dict[tuple[str, str, float | None], RunSpec]:
    """(size, arm, rate) -> its spec, with the seed 0; of two names of one training the arm's own comes first."""
    path = str(small_file.path_of(small.study, root))
    texts = corpus.load(definition["corpus"], SMALL_PRESET, source, root, f"{path}: ")
    specs: dict[tuple[str, str, float | None], RunSpec] = {}
    for statement in small.statements:
        where = f"{path}: statements.{statement.id}.contrasts"
        for arm in statement.arms:
            if not study_names.is_wanted(definition, arm, small.sizes_of, where):
                raise PlumblineError(f"{where}: {arm!r} is not there at preset {small.sizes_of}; name another arm")
            for size in statement.sizes:
                specs[size, arm, 1.0] = spec_layers.make_spec(definition, texts, SMALL_PRESET, size, arm, 0, path)
    by_training = {_describe_training(spec): spec for spec in reversed(specs.values())}
    for statement in small.statements:
        for arm in statement.arms:
            for size in statement.sizes:
                own_spec = specs[size, arm, 1.0]
                for rate in statement.rates or ():
                    changed_spec = _multiply_rate(own_spec, rate)
                    specs[size, arm, rate] = by_training.setdefault(_describe_training(changed_spec), changed_spec)
                if statement.tuning:
                    specs[size, arm, None] = msgspec.structs.replace(own_spec, method=f"{own_spec.method}{UNCHOSEN}")
    by_key: dict[str, RunSpec] = {}
    for (_, arm, multiple), spec in specs.items():
        if by_key.setdefault(spec.key, spec) != spec:
            raise PlumblineError(
                f"{path}: statements: {arm} at rate {multiple!r} would have the folder of another run, {spec.key}; "
                "rates are told apart by six digits: change one, or the name of the method"
            )
    return specs


def _describe_training(spec: RunSpec) -> str:
    """Everything but the name."""
    return msgspec.structs.replace(spec, method="").to_json()


def _multiply_rate(spec: RunSpec, rate: float) -> RunSpec:
    """The same run at a multiple of its learning rate, named by it."""
    if rate == 1:
        return spec
    content = spec.to_dict()
    content["optimizer"]["learning_rate"] *= rate
    content["method"] = f"{spec.method}-rate_{rate:g}"
    return RunSpec.from_dict(content)
