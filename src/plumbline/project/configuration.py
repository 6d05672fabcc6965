"""Holds a configuration that was checked: what config.yaml says, its studies, corpora and runs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError, nearest
from plumbline.specs import study_folders
from plumbline.specs.config import ROOT
from plumbline.specs.corpus import Corpus
from plumbline.specs.mine import Mine
from plumbline.specs.study_config import Run, Study
from plumbline.specs.trial import Trial


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """Everything that a configuration names, read.

    `mine`: the file of one's own that asks for a verdict, if there is one. It is none of `studies`, but its runs are
    among `runs`.
    """

    config: dict[str, Any]
    preset: dict[str, Any]
    studies: dict[str, Study]
    corpora: dict[str, Corpus]
    mine: Mine | None = None
    trial: Trial | None = None
    root: Path = ROOT

    @property
    def name(self) -> str:
        """The preset's name."""
        return self.config["preset"]

    @cached_property
    def runs(self) -> dict[str, Run]:
        """All runs of all studies, of a file of one's own, and those of the trial, by key."""
        runs = {key: run for study in self.planned_studies for key, run in study.runs.items()}
        return runs | (self.trial.runs if self.trial else {})

    @property
    def planned_studies(self) -> list[Study]:
        """The studies, and a file of one's own as one."""
        return [*self.studies.values(), *([self.mine.study] if self.mine else [])]

    def run(self, study: str, scale: str, method: str, seed: str | int) -> Run:
        """The run that a rule's wildcards name.

        Raises:
            PlumblineError: no study of the configuration has such a run.
        """
        key = f"{study}/{scale}/{method}/s{seed}"
        if key not in self.runs:
            raise PlumblineError(
                f"there is no run {key}{nearest(key, self.runs)}; runs and their seeds are in "
                f"{study_folders.yaml_of(study, self.root)}: runs"
            )
        return self.runs[key]

    def study(self, name: str) -> Study:
        """A study of the configuration.

        Raises:
            PlumblineError: the configuration does not name it.
        """
        if name not in self.studies:
            raise PlumblineError(f"config/config.yaml: studies: {name!r} is not among {sorted(self.studies)}")
        return self.studies[name]

    @property
    def contexts(self) -> dict[str, list[int]]:
        """Context lengths that runs train at, by corpus."""
        found: dict[str, set[int]] = {name: set() for name in self.corpora}
        for run in self.runs.values():
            found[run.spec.data.corpus].add(run.spec.model.context)
        return {name: sorted(contexts) for name, contexts in found.items()}

    @property
    def evaluation_source(self) -> str:
        """Where evaluation items come from, after `preset` is resolved."""
        source = self.config["evaluation"]["source"]
        return self.preset["evaluation"]["source"] if source == "preset" else source
