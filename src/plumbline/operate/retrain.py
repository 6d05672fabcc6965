"""Trains runs of a record again from scratch, drawn at random, and compares them with what the record has of them.

A run is *equal* where weights, outcome and all logged values are bit for bit the record's. Where the record was made on
another kind of processor, or with other code, packages or settings, or does not say on which, it is *near* if no loss
lies further from the record's than `FINAL` and `LOGGED` allow, and else *different*; on the same kind whatever is not
equal is different. A run is not compared where `NUMERICS` or a component's code has changed since, or where its data
are not there; only the others are drawn.
"""

from __future__ import annotations

import json
import math
import random
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from plumbline import NUMERICS
from plumbline.core import fingerprint_file, frames, provenance, run_files
from plumbline.core.command_line import EXIT_RUN_AGAIN
from plumbline.core.errors import PlumblineError, visible
from plumbline.core.files import parse_json
from plumbline.core.formats import format_duration
from plumbline.core.stop_request import StopRequest
from plumbline.data import manifest as pack_manifest
from plumbline.plan.run_estimate import estimator
from plumbline.project import Project, load
from plumbline.project.config_arguments import change_config
from plumbline.results.runs.finished_runs import METRICS
from plumbline.specs.spec import RunSpec, require_present_code
from plumbline.specs.study_config import Run
from plumbline.specs.yaml_files import load_config

Status = Literal["equal", "near", "different"]
EQUAL: Status = "equal"
NEAR: Status = "near"
DIFFERENT: Status = "different"
STATUSES = (EQUAL, NEAR, DIFFERENT)

#: As those of `plumbline verify`.
EXIT_DIFFERENT, EXIT_NOTHING_COMPARED = 10, 16

#: Nats that losses may lie from the record's on another kind of processor. The final held-out loss: the most that
#: processors of two makers were measured to differ by in demo runs (benchmarks/precisions.md: baseline 0.0001, softpick
#: 0.005, HybridNorm 0.016). But two seeds of one method end as near in a quarter of all pairs of the kept records. Any
#: logged loss: less than any such pair differs by at its furthest step (0.041 and more, mostly 0.15).
FINAL, LOGGED = 0.016, 0.04

#: What of two manifests has to be alike for a run to come out bit for bit.
_KIND = (
    *("device", "device_name", "processor", "torch_threads", "deterministic_algorithms", "tf32"),
    *("compiled", "micro_batch", "accumulation", "recompute", "strategy", "world_size"),
)
_PACKAGES = ("torch", "numpy")
_ENDING = ("outcome", "step", "last_finite_step", "weights_step")
_LOSSES = ("last_finite_loss", "validation_loss")
_WEIGHTS = (run_files.MODEL, f"{run_files.POINTS}/{run_files.POINTS_INDEX}")


@dataclass(frozen=True, kw_only=True)
class RecordedRun:
    """What is kept of a run: its manifest, outcome and metrics over steps."""

    manifest: dict[str, Any]
    outcome: dict[str, Any]
    metrics: pd.DataFrame

    @property
    def key(self) -> str:
        """The run's place among the runs: ``study/scale/method/sSEED``."""
        spec = self.manifest["spec"]
        return f"{spec['study']}/{spec['scale']}/{spec['method']}/s{spec['init_seed']}"

    @classmethod
    def read(cls, folder: Path) -> RecordedRun:
        """Read a run's folder, whose files must be those that its manifest names.

        Raises:
            PlumblineError: naming the file that is missing, or is not as it was written.
        """
        path = folder / "manifest.json"
        manifest = fingerprint_file.read(path)
        if manifest is None:
            raise PlumblineError(f"{path} is not there, or is no manifest of a run")
        run_files.require_manifest(path, manifest)
        for name in (METRICS, "outcome.json"):
            run_files.require(folder, manifest, name)
        outcome = parse_json((folder / "outcome.json").read_bytes())
        return cls(manifest=manifest, outcome=outcome, metrics=frames.read(folder / METRICS, "metrics"))


@dataclass(frozen=True, kw_only=True, slots=True)
class RetrainedRun:
    """A run that was trained again, and how it compares with the record's.

    `distance`: nats between the logged losses that lie furthest apart; None where the two did not log the same steps.
    """

    key: str
    status: Status
    distance: float | None
    why: str


def compare(recorded: RecordedRun, trained: RecordedRun) -> RetrainedRun:
    """Compare a run that was trained again with what a record has of it."""
    same_weights = _hash_weights(recorded) == _hash_weights(trained)
    ending = [name for name in _ENDING if recorded.outcome.get(name) != trained.outcome.get(name)]
    losses = [name for name in _LOSSES if recorded.outcome.get(name) != trained.outcome.get(name)]
    same_log = recorded.metrics.equals(trained.metrics)
    distance = _find_distance(recorded, trained)
    differences = list_differences(recorded.manifest, trained.manifest)
    if same_weights and same_log and not ending and not losses:
        why = f"weights bit for bit, and all {len(trained.metrics)} logged losses"
        return RetrainedRun(key=recorded.key, status=EQUAL, distance=0.0, why=why)
    reasons = [f"{name} is {recorded.outcome.get(name)}, here {trained.outcome.get(name)}" for name in ending + losses]
    if same_weights:
        reasons.insert(0, "weights are bit for bit the record's, and what it says of them is not")
        reasons += [] if same_log else [f"{METRICS} has other values"]
        status = DIFFERENT
    else:
        apart = "the logs cannot be compared" if distance is None else f"logged losses up to {distance:.2g} nats apart"
        reasons.insert(0, f"other weights; {apart}")
        far = bool(ending) or distance is None or distance > LOGGED or _find_final_distance(recorded, trained) > FINAL
        far |= same_log and not losses  # as no rounding leaves them
        status = DIFFERENT if far or not differences else NEAR
        reasons.append(
            "made with " + "; ".join(differences)
            if differences
            else "on the same kind of processor, with the same packages"
        )
    return RetrainedRun(key=recorded.key, status=status, distance=distance, why="; ".join(reasons))


def list_differences(recorded: Mapping[str, Any], trained: Mapping[str, Any]) -> list[str]:
    """List what a run was made with that was not the same, or of which the record says nothing."""
    on_gpu = recorded.get("device") == trained.get("device") == "cuda"
    before, now = (
        {name: facts.get(name) for name in _KIND if not (on_gpu and name == "processor")}
        | {name: (facts.get("packages") or {}).get(name) for name in _PACKAGES}
        | {
            "code": str(facts.get("code_sha256"))[:12],
            "attention": (facts.get("attention") or {}).get("kernel"),
            "environment": _select_environment(facts),
        }
        for facts in (recorded, trained)
    )
    return [
        f"{name} {'not recorded' if before[name] is None else before[name]}, here {now[name]}"
        for name in before
        if before[name] != now[name]
    ]


def _select_environment(manifest: Mapping[str, Any]) -> dict[str, str] | None:
    """Variables that change numbers, but for numbers of threads, of which `torch_threads` has what came out."""
    environment = manifest.get("environment")
    if environment is None:
        return None
    return {name: value for name, value in environment.items() if not name.endswith("_NUM_THREADS")}


def _hash_weights(run: RecordedRun) -> list[str | None]:
    """The SHA-256 of the weights and of the index of probe points, which has theirs; None where there is none."""
    return [run.manifest.get("files", {}).get(name, {}).get("sha256") for name in _WEIGHTS]


def _find_distance(recorded: RecordedRun, trained: RecordedRun) -> float | None:
    """Nats between the logged losses of two runs that lie furthest apart; None where they log other steps, or one of
    them a loss that is no number."""
    logs = recorded.metrics, trained.metrics
    steps, losses = (frame[["step", "split"]] for frame in logs), [frame["loss"] for frame in logs]
    if not next(steps).equals(next(steps)) or not losses[0].isna().equals(losses[1].isna()):
        return None
    distance = float((losses[0] - losses[1]).abs().max())
    return distance if math.isfinite(distance) else None


def _find_final_distance(recorded: RecordedRun, trained: RecordedRun) -> float:
    """Nats between the final held-out losses; 0 where neither has one (both diverged)."""
    before, now = (run.outcome.get("validation_loss") for run in (recorded, trained))
    if before is None or now is None:
        return 0.0 if before is now else math.inf
    return float(abs(before - now))


def read_runs(folder: Path) -> list[RecordedRun]:
    """Read all runs below a folder, in order of their keys."""
    return [RecordedRun.read(manifest.parent) for manifest in sorted(folder.rglob("manifest.json"))]


def explain_refusal(run: RecordedRun, project: Project) -> str:
    """Explain why a run cannot be trained here as it was; empty if it can."""
    numerics = run.manifest["spec"].get("numerics")
    if numerics != NUMERICS:
        return f"its numerics are {numerics}, and those of this code {NUMERICS}: no number is promised to stay"
    try:
        spec = RunSpec.from_dict(run.manifest["spec"])
        require_present_code(spec)
    except PlumblineError as error:
        return str(error).removeprefix(f"{run.key}: ")
    if spec.run_id != run.manifest["run_id"]:
        return "this code reads another run's spec from its manifest"
    return next((why for why in _check_packs(run, spec, project) if why), "")


def _check_packs(run: RecordedRun, spec: RunSpec, project: Project) -> Iterator[str]:
    """Explain for each of a run's two packs why it is not the one that the run was trained on; empty if it is."""
    for path, name in zip(_find_packs(spec, project), ("data_fingerprint", "validation_fingerprint"), strict=True):
        if not path.exists():
            command = f"snakemake {path.parent} --config preset={project.name} work={project.config['work']}"
            yield f"there is no pack {path.parent}; make it: {command}"
        elif (fingerprint := pack_manifest.fingerprint(pack_manifest.read_pack(path))) != run.manifest.get(name):
            yield f"{path} is another pack: its fingerprint is {fingerprint}, the record's {run.manifest.get(name)}"
        else:
            yield ""


def _find_packs(spec: RunSpec, project: Project) -> tuple[Path, Path]:
    run = Run(spec=spec, groups=())
    return Path(project.paths.pack_manifest(run)), Path(project.paths.validation_manifest(run))


def draw_runs(runs: Sequence[RecordedRun], count: int, seed: int) -> list[RecordedRun]:
    """Draw as many runs, or all if there are fewer, in the order in which they are trained."""
    return random.Random(seed).sample(list(runs), min(count, len(runs)))


def read_trained(run: RecordedRun, project: Project) -> RecordedRun | None:
    """Read what this very code has made of a run's spec and data before; None if it has not finished it."""
    folder = _find_folder(run, project) / "out"
    if not (folder / "outcome.json").exists():
        return None
    trained = RecordedRun.read(folder)
    same = all(trained.manifest[name] == run.manifest[name] for name in ("data_fingerprint", "validation_fingerprint"))
    return trained if same else None


def _find_folder(run: RecordedRun, project: Project) -> Path:
    return Path(project.paths.retrained(run.manifest["run_id"], provenance.code_sha256()))


def train(run: RecordedRun, project: Project, stop: StopRequest) -> RecordedRun | None:
    """Train a run from scratch as its manifest says it was, or go on with that; None if asked to stop.

    Raises:
        PlumblineError: something a user can fix.
    """
    import torch

    from plumbline.train.pretrain import pretrain
    from plumbline.train.trainer_settings import TrainerSettings

    folder, manifest = _find_folder(run, project), run.manifest
    if (folder / "out/outcome.json").exists():  # of other data
        shutil.rmtree(folder)
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
    if pretrain(spec, settings, stop) == EXIT_RUN_AGAIN:
        return None
    shutil.rmtree(folder / "state", ignore_errors=True)
    return RecordedRun.read(folder / "out")


def describe_plan(runs: Sequence[RecordedRun], project: Project) -> str:
    """Write how long the training of some runs takes here by the plan's estimate, and how long the record's took."""
    left = [run.manifest for run in runs if read_trained(run, project) is None]
    if not left:
        return "nothing is to be trained: this code has trained them before"
    prices = estimator(project)
    planned = [prices.pretrain_seconds(Run(spec=RunSpec.from_dict(manifest["spec"]), groups=())) for manifest in left]
    took = sum(manifest.get("wall_seconds") or math.nan for manifest in left)
    before = "" if math.isnan(took) else f"; the record's own took {format_duration(took)}"
    return f"about {format_duration(sum(planned))} of training on {prices.machine.label} by the plan{before}"


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
    able = [run for run in runs if not refusals[run.key]]
    seed = random.SystemRandom().randrange(10**6) if seed is None else seed
    drawn = draw_runs(able, count, seed)
    say(f"{record}: {len(drawn)} of {len(runs)} runs, drawn with --seed {seed}, which continues this after a stop")
    for why, keys in _group_refusals(refusals).items():
        say(visible(f"not compared: {keys[0]}{f' and {len(keys) - 1} more' if len(keys) > 1 else ''}: {why}"))
    results: list[RetrainedRun] = []
    code, faults = 0, dict[str, str]()
    if drawn:
        say(describe_plan(drawn, project))
    for number, run in enumerate(drawn, 1):
        try:
            trained = read_trained(run, project) or train(run, project, stop)
        except PlumblineError as error:
            faults[run.key] = str(error)
            say(visible(f"not trained: {run.key}: {error}"))
            continue
        if trained is None:
            code = EXIT_RUN_AGAIN
            say(f"asked to stop after {number - 1} of {len(drawn)}; the same command with --seed {seed} continues")
            break
        results.append(compare(run, trained))
        say(visible(f"{results[-1].status} ({number} of {len(drawn)}) {run.key}: {results[-1].why}"))
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
