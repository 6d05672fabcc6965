"""What the workflow knows about paths and runs. Plain functions over studies, so that they can be tested and reused.

Imports no torch: a dry run of every study takes seconds.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbline.studies.config import ROOT, check, load_preset
from plumbline.studies.sheet import Run, Study, expected_json, load

#: The study whose targets also stand directly under results/.
MAIN_STUDY = "transfer"


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """Everything that the rules need to know about a configuration."""

    config: dict[str, Any]
    preset: dict[str, Any]
    studies: dict[str, Study]

    @property
    def work(self) -> str:
        """The folder of this preset's heavy files."""
        return f"{self.config['work']}/{self.config['preset']}"

    @property
    def data_source(self) -> str:
        """Where documents come from, after `preset` is resolved."""
        source = self.config["data"]["source"]
        return self.preset["data"]["source"] if source == "preset" else source

    @property
    def evaluation_source(self) -> str:
        """Where evaluation items come from, after `preset` is resolved."""
        source = self.config["evaluation"]["source"]
        return self.preset["evaluation"]["source"] if source == "preset" else source

    @property
    def runs(self) -> dict[str, Run]:
        """All runs of all studies, by key."""
        return {key: run for study in self.studies.values() for key, run in study.runs.items()}

    def run(self, study: str, scale: str, method: str, seed: str | int) -> Run:
        """The run that a rule's wildcards name."""
        return self.studies[study].runs[f"{study}/{scale}/{method}/s{seed}"]

    def target_runs(self, study: str, target: str) -> list[Run]:
        """The runs that a table or figure needs."""
        return self.studies[study].group(*self.studies[study].sheet["targets"][target]["runs"])

    def target_expected(self, study: str, target: str) -> str:
        """The same as one string for a command line."""
        return expected_json(self.target_runs(study, target))

    def target_reads(self, study: str, target: str) -> list[str]:
        """Which frames beyond the runs themselves a target reads."""
        return self.studies[study].sheet["targets"][target]["reads"]

    def targets(self, kind: str) -> list[str]:
        """Names of all tables, or of all figures."""
        return sorted(
            {
                name
                for study in self.studies.values()
                for name, entry in study.sheet["targets"].items()
                if entry["kind"] == kind
            }
        )

    def pack_manifest(self, run: Run) -> str:
        """The manifest of the pack that a run reads."""
        return f"{self.work}/packs/context{run.spec.model.context}/{run.spec.data.pack}.json"

    def validation_manifest(self, run: Run) -> str:
        """The manifest of the held-out pack that goes with it."""
        return f"{self.work}/packs/context{run.spec.model.context}/validation.json"

    def source_settings(self) -> str:
        """What decides the documents, as one canonical string: a rule's parameter."""
        data = self.config["data"]
        settings: dict[str, Any] = {"source": self.data_source}
        if self.data_source == "local":
            settings["folder"] = data["folder"]
        if self.data_source == "hub":
            settings |= data["hub"]
        return json.dumps(settings, sort_keys=True)


def plan(config: dict[str, Any], root: Path = ROOT) -> Plan:
    """Check a configuration (config.yaml with command-line overrides) and load what it names.

    Raises:
        PlumblineError: the configuration or a study's file cannot be meant.
    """
    check(config, "config", "config/config.yaml (with --config)")
    preset = load_preset(config["preset"], root)
    studies = {name: load(name, config["preset"], root) for name in config["studies"]}
    return Plan(config=config, preset=preset, studies=studies)
