"""Estimates how far apart two seeds of a baseline are: from finished runs, else from a pilot at another size."""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from plumbline.core.errors import PlumblineError
from plumbline.experiment.judge import sigma_interval
from plumbline.plan.calibration import finished
from plumbline.project import Project
from plumbline.specs.experiment_runs import own_scale
from plumbline.specs.spec import RunSpec
from plumbline.specs.study_config import Run

#: What benchmarks/pilot.md says of the runs behind its sigma.
PILOT_TOKENS, PILOT_WORDS = 0.32e6, "a baseline of 1.58 M parameters after 0.32 M tokens (benchmarks/pilot.md)"


@dataclass(frozen=True, kw_only=True, slots=True)
class SeedNoise:
    """The noise floor: standard deviation (nats of validation loss) over `runs` seeds that read `tokens` each.

    `scale`: the study's scale at which they were measured; empty where they are of another size, so that the number is
    an assumption.
    """

    scale: str
    tokens: float
    sigma: float
    runs: int

    def words(self, scale: str, elsewhere: Iterable[SeedNoise] = ()) -> str:
        """Say where the number is from, for runs at `scale`; `elsewhere`: noise that was measured at other scales."""
        low, high = sigma_interval(self.sigma, self.runs - 1)
        unsure = f"its own 95 % interval is {low:.2g} to {high:.2g}"
        if self.scale:
            return (
                f"{self.sigma:.3g} nats, measured here on {self.runs} seeds of the baseline at scale {self.scale} "
                f"after {self.tokens / 1e6:.2f} M tokens; {unsure}"
            )
        return (
            f"{self.sigma:.3g} nats, ASSUMED: {unknown(scale, elsewhere)}. It is that of {self.runs} seeds of "
            f"{PILOT_WORDS}, not of this size; {unsure}"
        )


def unknown(scale: str, elsewhere: Iterable[SeedNoise] = ()) -> str:
    """Say that no noise was measured at a scale, and which was measured at others."""
    others = ", ".join(
        f"{one.sigma:.3g} nats at scale {one.scale} after {one.tokens / 1e6:.2f} M tokens" for one in elsewhere
    )
    known = f" (what was measured, {others}, is of another size)" if others else ""
    return f"no two seeds of the baseline are finished here at scale {scale}{known}"


def earlier(project: Project, study: str) -> list[Run]:
    """Find the finished runs of a study's experiments in the work folder, whatever the configuration says now."""
    found = []
    for path in sorted((Path(project.paths.work) / "runs" / study).glob("*_steps_*/*/s*/manifest.json")):
        try:
            spec = RunSpec.from_dict(json.loads(path.read_text(encoding="utf-8"))["spec"])
        except (OSError, ValueError, KeyError, TypeError):
            continue  # of another version, or damaged: it counts for nothing here
        run = Run(spec=spec, groups=("experiment",))
        if run.key == "/".join(path.parts[-5:-1]) and own_scale(spec.scale) != spec.scale:
            found.append(run)
    return found


def measured(project: Project, runs: Iterable[Run], against: str) -> tuple[SeedNoise, ...]:
    """Measure the noise of the baseline `against` wherever at least two seeds of one spec completed."""
    work = Path(project.paths.work)
    alike: dict[str, dict[str, tuple[Run, float]]] = defaultdict(dict)
    for run in runs:
        if run.spec.method == against and finished(run, work) is not None:
            loss = _loss(work / "runs" / run.key / "outcome.json")
            if loss is not None:
                alike[msgspec.structs.replace(run.spec, init_seed=0).to_json()][run.key] = (run, loss)
    found = []
    for seeds in alike.values():
        (first, _), *others = seeds.values()
        losses = [loss for _, loss in seeds.values()]
        if others and (sigma := statistics.stdev(losses)) > 0:
            train, scale = first.spec.train, own_scale(first.spec.scale)
            tokens = train.steps * train.batch_tokens
            found.append(SeedNoise(scale=scale, tokens=tokens, sigma=sigma, runs=len(losses)))
    return tuple(found)


def assumed(root: Path) -> tuple[SeedNoise, ...]:
    """Read the noise that the pilot found (benchmarks/pilot.json); nothing where that file is not there."""
    path = root / "benchmarks" / "pilot.json"
    try:
        read = json.loads(path.read_text(encoding="utf-8"))["validation_loss"]
        return (SeedNoise(scale="", tokens=PILOT_TOKENS, sigma=float(read["sigma"]), runs=int(read["seeds"])),)
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PlumblineError(f"{path} is not a result of benchmarks/pilot.py ({error!r}); restore it") from error


def _loss(path: Path) -> float | None:
    try:
        loss = json.loads(path.read_text(encoding="utf-8"))["validation_loss"]
        return None if loss is None else float(loss)
    except (OSError, ValueError, KeyError, TypeError):
        return None
