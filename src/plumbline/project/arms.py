"""Trains the arms of an experiment or a screen as runs of the DAG: Snakemake is asked for those that are missing.

What an arm gives is read from the finished run: its last validation loss, what it took, and on what it was made.
"""

from __future__ import annotations

import json
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from msgspec import structs

from plumbline.core import run_files
from plumbline.core.called_program import call
from plumbline.core.errors import PlumblineError
from plumbline.core.files import canonical_json, read_json, sha256_text
from plumbline.project.project import Project
from plumbline.specs import experiment_runs
from plumbline.specs.experiment_runs import BOTH
from plumbline.specs.spec import RunSpec
from plumbline.specs.spec_words import describe_budget, describe_size, list_differences
from plumbline.specs.study_config import Run, Study
from plumbline.verdict.decision.experiment import BASELINE, CRASHED, DIVERGED, FINISHED, ArmRun
from plumbline.verdict.evidence import RunEvidence
from plumbline.verdict.sources.study_runs import run_evidence

METRIC, UNIT = "validation_loss", "nats a token"
#: What the log of a job ends with where the machine was at fault: it is not evidence about the candidate.
MACHINES = ("no disk space", "No space left", "cannot be read or written", "asked to stop", "Permission denied")


@dataclass(frozen=True, kw_only=True)
class ArmsOfStudy(ABC):
    """Arms that a study, or a user's own file, trains; one of them is the baseline.

    Attributes:
        project: with everything that the command line stated.
        settings: `config.experiment` without its seeds, and without the arms of a screen.
        snakemake_options: further arguments for Snakemake: profiles, and the KEY=VALUE words of the user.
        at_once: runs that stand next to each other.
    """

    project: Project
    settings: dict[str, Any]
    snakemake_options: Sequence[str] = ()
    at_once: int = 1

    @property
    @abstractmethod
    def names(self) -> Sequence[str]:
        """The names of the arms in the experiment."""

    @abstractmethod
    def ask_for(self, seeds: Mapping[str, Sequence[int]]) -> dict[str, Any]:
        """Write `config.experiment` for these runs: arm -> seeds, in the order of `names`."""

    @cached_property
    def study(self) -> Study:
        """The study, or that of the user's own file."""
        own_file = self.project.mine
        return (
            own_file.study
            if own_file and own_file.name == self.settings["study"]
            else self.project.study(self.settings["study"])
        )

    @cached_property
    def _runs(self) -> dict[str, Run]:
        """A run of each arm, by the arm's name, with the seed 0."""
        # Each with a seed of its own, so that arms which train the same are told apart.
        config = self.ask_for({arm: [number] for number, arm in enumerate(self.names)})
        experiment = experiment_runs.load(config, self.study, self.project.root, self.project.config["data"]["source"])
        runs = zip(self.names, experiment.runs.values(), strict=True)
        return {arm: replace(run, spec=self._reseed(run.spec, 0)) for arm, run in runs}

    def run_of(self, arm: str) -> Run:
        """A run of an arm, to read what all of its runs share."""
        return self._runs[arm]

    @property
    def spec(self) -> RunSpec:
        """A spec of the baseline, to read the sizes that all runs share."""
        return self._runs[BASELINE].spec

    @cached_property
    def group(self) -> str:
        """Trainer and budget: the baseline's whole spec, whatever the seed, in short."""
        return f"{self.spec.study}/{self.spec.preset}/{self.spec.scale}/{self.spec.run_id}"

    @property
    def trainer(self) -> str:
        """What trains both arms, as text."""
        return f"study {self.study.code}, preset {self.study.preset}, scale {self.settings['scale']}"

    @property
    def budget(self) -> str:
        """How long a run trains, as text."""
        return describe_budget([self.spec])

    @property
    def size(self) -> str:
        """How large the model is and how long it trains, as a verdict's sentence states it."""
        specs = [run.spec for run in self._runs.values()]
        return describe_size(self.study.scale_label(self.settings["scale"]), self.study.preset, specs)

    @property
    def varies(self) -> str:
        """What a seed changes, as text."""
        return "initialisation and data order" if self.settings.get("vary") == BOTH else "initialisation"

    def method(self, arm: str) -> str:
        """Name what an arm trains: other code of the same name is another method."""
        spec = self._runs[arm].spec
        return f"{spec.study}/{spec.method}@{spec.run_id}"

    def run_id(self, arm: str, seed: int) -> str:
        """Name a run by its own id."""
        return self.spec_of(arm, seed).run_id

    def spec_of(self, arm: str, seed: int) -> RunSpec:
        """The spec of a run."""
        return self._reseed(self._runs[arm].spec, seed)

    def _reseed(self, spec: RunSpec, seed: int) -> RunSpec:
        other_seeds = {"data_seed": seed} if self.settings.get("vary") == BOTH else {}
        return structs.replace(spec, init_seed=seed, **other_seeds)

    def folder(self, arm: str, seed: int) -> Path:
        """The folder of a run's outputs."""
        return Path(self.project.paths.work) / "runs" / self.spec_of(arm, seed).key

    def run(self, pairs: Sequence[tuple[str, int]]) -> Iterator[ArmRun]:
        """Have Snakemake make these runs, and read them as they are when it has ended.

        Raises:
            PlumblineError: a run is missing for a reason that is not its arm's: a full disk, a corpus that cannot be
                made, a stop that was requested.
            KeyboardInterrupt: Snakemake was interrupted.
        """
        began = time.time()
        targets = [str(self.folder(*pair) / "outcome.json") for pair in pairs]
        code = call(
            [
                sys.executable,
                "-m",
                "snakemake",
                *targets,
                *self.snakemake_options,
                "--config",
                *self.configuration(pairs),
            ]
        )
        runs = {pair: self.read(*pair) for pair in pairs}
        yield from (run for run in runs.values() if run is not None)
        for pair, run in runs.items():
            if run is None:
                yield self._make_missing_run(*pair, began, code)

    def configuration(self, pairs: Sequence[tuple[str, int]]) -> list[str]:
        """The KEY=VALUE words that put these runs into the DAG."""
        seeds = {name: sorted(seed for arm, seed in pairs if arm == name) for name in self.names}
        # Of a user's own file the study that it extends is planned next to it.
        study = self.study.code if self.project.mine else self.study.name
        return [
            f"preset={self.project.name}",
            f"studies=[{study}]",
            f"main_study={study}",
            *([f"mine={self.project.mine.path}"] if self.project.mine else []),
            f"experiment={json.dumps(self.ask_for(seeds))}",
        ]

    def read(self, arm: str, seed: int) -> ArmRun | None:
        """Read a finished run; None if there is none of this very spec.

        Raises:
            PlumblineError: its manifest or its outcome is not as it was written.
        """
        folder, run_id = self.folder(arm, seed), self.run_id(arm, seed)
        outcome, manifest = read_json(folder / "outcome.json"), read_json(folder / "manifest.json")
        if not outcome or not manifest or outcome.get("run_id") != run_id:
            return None
        run_files.require_manifest(folder / "manifest.json", manifest)
        run_files.require(folder, manifest, "outcome.json")
        value = outcome.get("validation_loss")
        has_value = outcome["outcome"] == "completed" and value is not None
        return ArmRun(
            arm=arm,
            seed=seed,
            value=float(value) if has_value else None,
            outcome=FINISHED if has_value else DIVERGED,
            seconds=manifest.get("wall_seconds"),
            run_id=run_id,
            why="" if has_value else str(outcome.get("reason") or ""),
            fingerprint=_fingerprint(manifest),
        )

    def evidence(self, run: ArmRun) -> RunEvidence:
        """Collect what is known of a run: what it left in its folder, or what is known of it without that."""
        folder = self.folder(run.arm, run.seed)
        outcome, manifest = read_json(folder / "outcome.json"), read_json(folder / "manifest.json")
        if not outcome or not manifest or outcome.get("run_id") != run.run_id:
            return run.evidence
        evidence = run_evidence(folder, outcome, manifest, run.value)
        return replace(evidence, seed=str(run.seed))

    def _make_missing_run(self, arm: str, seed: int, began: float, code: int) -> ArmRun:
        """A run that Snakemake did not make: its own crash, or an error that is not its own."""
        spec = self.spec_of(arm, seed)
        log = Path(self.project.paths.logs) / "pretrain" / f"{spec.key.replace('/', '.')}.log"
        try:
            fresh = log.stat().st_mtime >= began - 1
            lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
        except OSError:
            fresh, lines = False, []
        if not fresh or not lines:
            raise PlumblineError(f"{spec.key} was not made: Snakemake ended with {code}, as it says above")
        if any(word in line for word in MACHINES for line in lines[-20:]):
            raise PlumblineError(
                f"{spec.key} was not made, for a reason of this machine and not of the method: {lines[-1]} ({log}); "
                "put that right and repeat the command: what is finished is used"
            )
        return ArmRun(
            arm=arm, seed=seed, value=None, outcome=CRASHED, run_id=spec.run_id, why=f"{lines[-1]}; the log is {log}"
        )


@dataclass(frozen=True, kw_only=True)
class StudyArms(ArmsOfStudy):
    """The two arms of a method of a study, or of a user's own file, against its baseline.

    Attributes:
        candidate: the candidate's name in the experiment.
    """

    candidate: str

    @property
    def names(self) -> Sequence[str]:
        """The baseline, then the candidate."""
        return (BASELINE, self.candidate)

    def ask_for(self, seeds: Mapping[str, Sequence[int]]) -> dict[str, Any]:
        """Write `config.experiment` for these runs."""
        return self.settings | {"baseline_seeds": list(seeds[BASELINE]), "seeds": list(seeds[self.candidate])}

    @property
    def differs(self) -> tuple[str, ...]:
        """In what the candidate's recipe differs beyond its model."""
        return tuple(list_differences(self._runs[self.candidate].spec, self.spec))


@dataclass(frozen=True, kw_only=True)
class ScreenArms(ArmsOfStudy):
    """Combinations of a study's methods.

    Attributes:
        arms: arm -> the `method` of the study that it is, or its `levels` (slot -> method).
    """

    arms: Mapping[str, Mapping[str, Any]]

    @property
    def names(self) -> Sequence[str]:
        """The arms, in their order."""
        return tuple(self.arms)

    def ask_for(self, seeds: Mapping[str, Sequence[int]]) -> dict[str, Any]:
        """Write `config.experiment` for these runs; arms without one are left out."""
        arms = [{**self.arms[arm], "seeds": list(each)} for arm, each in seeds.items() if each]
        return self.settings | {"arms": arms}


def _fingerprint(manifest: dict[str, Any]) -> str:
    """What means may not cross: device, torch, precision and data."""
    packages = manifest.get("packages") or {}
    parts = [manifest.get(key) for key in ("device", "device_name", "precision", "tf32")]
    parts += [manifest.get(key) for key in ("data_fingerprint", "validation_fingerprint")]
    return sha256_text(canonical_json([*parts, packages.get("torch")]))[:16]
