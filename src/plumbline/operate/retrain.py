"""Trains runs of a record again from scratch, drawn at random, and compares them with what the record has of them
(`plumbline.operate.recorded_run` says how).

A run is not compared where `NUMERICS` or a component's code has changed since, or where its data are not there; only
the others are drawn.
"""

from __future__ import annotations

import json
import math
import random
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

from plumbline import NUMERICS
from plumbline.core import locks, provenance
from plumbline.core.command_line import EXIT_DIFFERENT, EXIT_NOTHING_COMPARED, EXIT_RUN_AGAIN
from plumbline.core.errors import PlumblineError, visible
from plumbline.core.formats import format_duration
from plumbline.core.stop_request import StopRequest
from plumbline.data import manifest as pack_manifest
from plumbline.operate.console.forecast import describe_load
from plumbline.operate.recorded_run import (
    DIFFERENT,
    FINAL,
    LOGGED,
    STATUSES,
    RecordedRun,
    RetrainedRun,
    Status,
    compare,
)
from plumbline.plan.run_estimate import estimator
from plumbline.project import Project, load
from plumbline.project.config_arguments import change_config
from plumbline.specs.spec import RunSpec, require_present_code
from plumbline.specs.study_config import Run
from plumbline.specs.yaml_files import load_config


def explain_refusal(run: RecordedRun, project: Project) -> str:
    """Explain why a run cannot be trained here as it was; empty if it can."""
    numerics = run.manifest["spec"].get("numerics")
    if numerics != NUMERICS:
        return f"its numerics are {numerics}, and those of this code {NUMERICS}: no number is promised to stay"
    for name in ("torch_threads", "micro_batch"):
        if not isinstance(run.manifest.get(name), int | None):
            return f"its manifest says {name} {run.manifest[name]!r}, which is no number"
    try:
        spec = RunSpec.from_dict(run.manifest["spec"])
        require_present_code(spec)
    except PlumblineError as error:
        return str(error).removeprefix(f"{run.key}: ")
    if spec.run_id != run.manifest["run_id"]:
        return "this code reads another run's spec from its manifest"
    return next(_explain_other_packs(run, spec, project), "")


def _explain_other_packs(run: RecordedRun, spec: RunSpec, project: Project) -> Iterator[str]:
    """Explain of each pack that is not the one that the run was trained on why it is not."""
    for path, name in zip(_find_packs(spec, project), ("data_fingerprint", "validation_fingerprint"), strict=True):
        if not path.exists():
            command = f"snakemake {path.parent} --config preset={project.name} work={project.config['work']}"
            yield f"there is no pack {path.parent}; make it: {command}"
        elif (fingerprint := pack_manifest.fingerprint(pack_manifest.read_pack(path))) != run.manifest.get(name):
            yield f"{path} is another pack: its fingerprint is {fingerprint}, the record's {run.manifest.get(name)}"


def _find_packs(spec: RunSpec, project: Project) -> tuple[Path, Path]:
    run = Run(spec=spec, groups=())
    return Path(project.paths.pack_manifest(run)), Path(project.paths.validation_manifest(run))


def draw_runs(runs: Sequence[RecordedRun], count: int, seed: int) -> list[RecordedRun]:
    """Draw as many runs, or all if there are fewer, in the order in which they are trained."""
    return random.Random(seed).sample(list(runs), min(count, len(runs)))


def read_trained(run: RecordedRun, project: Project) -> RecordedRun | None:
    """Read what this very code has made of a run's spec and data before; None if it has not finished it, or if that is
    damaged by now."""
    try:
        trained = RecordedRun.read(_find_folder(run, project) / "out")
    except PlumblineError:
        return None
    same_data = all(
        trained.manifest[name] == run.manifest[name] for name in ("data_fingerprint", "validation_fingerprint")
    )
    return trained if same_data else None


def _find_folder(run: RecordedRun, project: Project) -> Path:
    return Path(project.paths.retraining(run.manifest["run_id"], provenance.code_sha256()))


def train(run: RecordedRun, project: Project, stop: StopRequest) -> RecordedRun | None:
    """Train a run from scratch as its manifest says it was, or go on with that; None if asked to stop.

    Another process that trains it is waited for, and what that made is read.

    Raises:
        PlumblineError: something a user can fix.
    """
    import torch

    from plumbline.train.pretrain import pretrain
    from plumbline.train.trainer_settings import TrainerSettings

    folder, manifest = _find_folder(run, project), run.manifest
    spec = RunSpec.from_dict(manifest["spec"])
    packs = _find_packs(spec, project)
    torch.set_num_threads(manifest.get("torch_threads") or 1)
    settings = TrainerSettings(
        training_pack=packs[0],
        validation_pack=packs[1],
        out=folder / "out",
        state=folder / "state",
        micro_batch=manifest.get("micro_batch"),
        compile=bool(manifest.get("compiled")),
        recompute_activations=bool(manifest.get("recompute")),
        attention="reference" if (manifest.get("attention") or {}).get("asked") == "reference" else "auto",
    )
    with locks.hold_folder(folder):
        if (trained := read_trained(run, project)) is not None:
            return trained
        if (folder / "out/outcome.json").exists():  # of other data, or damaged
            shutil.rmtree(folder / "out")
            shutil.rmtree(folder / "state", ignore_errors=True)
        if pretrain(spec, settings, stop) == EXIT_RUN_AGAIN:
            return None
        shutil.rmtree(folder / "state", ignore_errors=True)
    return RecordedRun.read(folder / "out")


def describe_plan(runs: Sequence[RecordedRun], project: Project) -> str:
    """Write how long the training of some runs takes here by the plan's estimate, and how long the record's took."""
    manifests = [run.manifest for run in runs if read_trained(run, project) is None]
    if not manifests:
        return "nothing is to be trained: this code has trained them before"
    prices = estimator(project)
    planned = [
        prices.pretrain_seconds(Run(spec=RunSpec.from_dict(manifest["spec"]), groups=())) for manifest in manifests
    ]
    took = sum(manifest.get("wall_seconds") or math.nan for manifest in manifests)
    record_time = "" if math.isnan(took) else f"; the record's own took {format_duration(took)}"
    estimate = f"about {format_duration(sum(planned))} of training on {prices.machine.label} by the plan"
    return ". ".join(filter(None, [estimate + record_time, describe_load()]))


def retrain_runs(
    record: str,
    preset: str,
    runs: Sequence[RecordedRun],
    count: int,
    *,
    seed: int | None,
    changes: Sequence[str],
    as_json: bool,
) -> int:
    """Train runs of a record again and print how each compares with it, as soon as it is known.

    Args:
        record: its name.
        preset: of its runs.
        count: how many are drawn, of those that this code can train on data that are there.
        seed: of the draw; None for one by chance.
        changes: of the configuration, as ``--config`` of Snakemake has them.
        as_json: print one object at the end, and only the progress before it.

    Returns:
        0 where all that were drawn are equal or near, 10 where one is different, 16 where none could be compared, 75
        where asked to stop, 1 where one could not be trained.
    """
    stop = StopRequest().install()
    say = partial(print, file=sys.stderr if as_json else sys.stdout, flush=True)
    project = load(change_config(load_config() | {"preset": preset}, changes))
    refusals = {run.key: explain_refusal(run, project) for run in runs}
    comparable_runs = [run for run in runs if not refusals[run.key]]
    seed = random.SystemRandom().randrange(10**6) if seed is None else seed
    drawn_runs = draw_runs(comparable_runs, count, seed)
    say(f"{record}: {len(drawn_runs)} of {len(runs)} runs, drawn with --seed {seed}, which continues this after a stop")
    for why, keys in _group_refusals(refusals).items():
        say(visible(f"not compared: {keys[0]}{f' and {len(keys) - 1} more' if len(keys) > 1 else ''}: {why}"))
    results: list[RetrainedRun] = []
    code, faults = 0, dict[str, str]()
    if drawn_runs:
        say(describe_plan(drawn_runs, project))
    for number, run in enumerate(drawn_runs, 1):
        try:
            trained = read_trained(run, project) or train(run, project, stop)
        except PlumblineError as error:
            faults[run.key] = str(error)
            say(visible(f"not trained: {run.key}: {error}"))
            continue
        if trained is None:
            code = EXIT_RUN_AGAIN
            say(f"asked to stop after {number - 1} of {len(drawn_runs)}; the same command with --seed {seed} continues")
            break
        results.append(compare(run, trained))
        say(visible(f"{results[-1].status} ({number} of {len(drawn_runs)}) {run.key}: {results[-1].why}"))
    counted = Counter(result.status for result in results)
    code = code or _choose_exit_code(counted, faults)
    say(
        ", ".join(f"{counted[status]} {status}" for status in STATUSES)
        + f"; near: final loss within {FINAL} nats, all within {LOGGED}"
    )
    if as_json:
        facts = {
            "exit_code": code,
            "seed": seed,
            "final": FINAL,
            "logged": LOGGED,
            "runs": [asdict(result) for result in results],
        }
        print(
            json.dumps(facts | {"not_compared": {key: why for key, why in refusals.items() if why} | faults}, indent=1)
        )
    return code


def _choose_exit_code(counted: Mapping[Status, int], faults: Mapping[str, str]) -> int:
    if counted.get(DIFFERENT):
        return EXIT_DIFFERENT
    if faults:
        return 1
    return 0 if any(counted.values()) else EXIT_NOTHING_COMPARED


def _group_refusals(refusals: Mapping[str, str]) -> dict[str, list[str]]:
    """Group the runs that are not compared by the reason."""
    groups: dict[str, list[str]] = {}
    for key, why in refusals.items():
        if why:
            groups.setdefault(why, []).append(key)
    return groups
