"""Holds a configuration that was checked: the content of config.yaml, its studies, corpora and runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError, nearest
from plumbline.specs import small_runs, study_config, study_folders, suites
from plumbline.specs.corpus import Corpus
from plumbline.specs.experiment_runs import ExperimentRuns
from plumbline.specs.own_methods_file import OwnMethodsFile
from plumbline.specs.study_config import Run, Study
from plumbline.specs.yaml_files import ROOT

#: The preset of the papers' own sizes.
PAPER = "paper"


def list_sizes(config: dict[str, Any]) -> list[str]:
    """The sizes of small models that a configuration names; empty: all."""
    sizes = config.get("sizes", "all")
    return [] if sizes == "all" else sizes


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """A checked configuration, with every study, corpus and run that it names loaded.

    `mine`: the user's own file that asks for a verdict, if there is one. It is none of `studies`, but its runs are
    among `runs`. `broken`: where all studies are requested, those that cannot be loaded, each with the reason: they are
    none of `studies`, and what needs one of them is refused.
    """

    config: dict[str, Any]
    preset: dict[str, Any]
    studies: dict[str, Study]
    corpora: dict[str, Corpus]
    mine: OwnMethodsFile | None = None
    experiment: ExperimentRuns | None = None
    root: Path = ROOT
    broken: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the preset."""
        return self.config["preset"]

    @property
    def sizes(self) -> list[str]:
        """The sizes of small models whose runs are made; empty: all."""
        return list_sizes(self.config)

    @cached_property
    def runs(self) -> dict[str, Run]:
        """All runs of all studies, of a file of the user's own, and those of the experiment, by key; without those that
        are made on request."""
        requested = {key for study in self.planned_studies for key in study.requested_runs | study.small_runs}
        return {key: run for key, run in self.every_run.items() if key not in requested}

    @cached_property
    def every_run(self) -> dict[str, Run]:
        """The runs, those that are made on request among them.

        A run that a study scores on its own suite stands here as the study that it is of has it, if that is there.
        """
        all_runs = [run for study in self.planned_studies for run in study.every_run.values()]
        runs = {run.key: run for run in sorted(all_runs, key=lambda run: run.scored_by is None)}
        runs = {run.key: runs[run.key] for run in all_runs}
        return (self.experiment.runs if self.experiment else {}) | runs

    @cached_property
    def scored_runs(self) -> dict[str, Run]:
        """All runs that studies score, by the key of their scores."""
        all_runs = [run for study in self.planned_studies for run in study.every_run.values()]
        return {run.scores_key: run for run in [*all_runs, *(self.experiment.runs.values() if self.experiment else [])]}

    @property
    def planned_studies(self) -> list[Study]:
        """The studies, and the user's own file (`mine`) as one more."""
        return [*self.studies.values(), *([self.mine.study] if self.mine else [])]

    def run(self, study: str, scale: str, method: str, seed: str | int) -> Run:
        """The run that a rule's wildcards name, those of a rule that scores among them.

        Raises:
            PlumblineError: no study of the configuration has such a run.
        """
        key = f"{study}/{scale}/{method}/s{seed}"
        if key in self.scored_runs and key not in self.every_run:
            return self.scored_runs[key]
        if method.endswith(small_runs.UNCHOSEN):
            raise PlumblineError(small_runs.explain_unchosen(key, self.root))
        if key not in self.every_run:
            raise PlumblineError(
                f"there is no run {key}{nearest(key, self.every_run)}; runs and their seeds are in "
                f"{study_folders.yaml_of(study, self.root)}: runs"
            )
        return self.every_run[key]

    def find_scored_run(self, study: str, scale: str, method: str, seed: str | int) -> Run:
        """The run whose scores a rule's wildcards name: a study scores runs of the one that it extends as its own,
        where it has its own suite.

        Raises:
            PlumblineError: as `run`, or the study names no suite.
        """
        key = f"{study}/{scale}/{method}/s{seed}"
        if key not in self.scored_runs:
            run = self.run(study, scale, method, seed)
            raise PlumblineError(
                f"{key} is scored here as {run.scores_key}, on the suite {run.suite!r}; add {study!r} to `studies` "
                f"(--config 'studies=[{study}]') for its scores on {run.spec.suite!r}"
            )
        if not self.scored_runs[key].suite:
            raise PlumblineError(
                f"{key} has no scores: {study_folders.yaml_of(study, self.root)} names no `suite`; name one of "
                f"config/suites there (suite: {suites.list_suites(self.root)[0]}) to have its runs scored"
            )
        return self.scored_runs[key]

    def study(self, name: str) -> Study:
        """Look up a study of the configuration by its name.

        Raises:
            PlumblineError: the configuration does not name it, or it is broken.
        """
        self.require_whole(name)
        if name not in self.studies:
            raise PlumblineError(f"config/config.yaml: studies: {name!r} is not among {sorted(self.studies)}")
        return self.studies[name]

    def require_whole(self, study: str) -> None:
        """Refuse what needs a study that cannot be loaded.

        Raises:
            PlumblineError: with the reason.
        """
        if study in self.broken:
            raise PlumblineError(self.broken[study])

    @cached_property
    def contexts(self) -> dict[str, list[int]]:
        """The context lengths (tokens) that runs train at, by corpus."""
        by_corpus: dict[str, set[int]] = {name: set() for name in self.corpora}
        for run in self.every_run.values():
            by_corpus[run.spec.data.corpus].add(run.spec.model.context)
        return {name: sorted(contexts) for name, contexts in by_corpus.items()}

    def require_context(self, corpus: str, context: int) -> None:
        """Refuse packs that no run would read, of this preset or of the papers' sizes: the GPU check trains at a
        paper's length on a smaller preset's corpus.

        Raises:
            PlumblineError: naming the context lengths that runs train at.
        """
        if context not in self.contexts[corpus] and context not in self._find_paper_contexts(corpus):
            raise PlumblineError(
                f"no run here trains on the corpus {corpus} at context {context}: packs are made for "
                f"{self.contexts[corpus]}, the `model.context` of the studies' scales"
            )

    def _find_paper_contexts(self, corpus: str) -> set[int]:
        names = [name for name in self.studies if study_config.has_preset(name, PAPER, self.root)]
        runs = [run for name in names for run in study_config.load(name, PAPER, self.root).runs.values()]
        return {run.spec.model.context for run in runs if run.spec.data.corpus == corpus}

    @property
    def evaluation_source(self) -> str:
        """The source of evaluation items; where the configuration has `preset`, the preset's."""
        source = self.config["evaluation"]["source"]
        return self.preset["evaluation"]["source"] if source == "preset" else source
