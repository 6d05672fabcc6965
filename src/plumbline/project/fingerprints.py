"""Fingerprints what a product is made of in addition to files: its code, and the parts of YAML that it shows."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from plumbline.core.files import canonical_json, sha256_file, sha256_text
from plumbline.data import hub_read_budget
from plumbline.data.sources import hub
from plumbline.project.configuration import Configuration
from plumbline.project.external_inputs import ExternalInputs
from plumbline.project.paths import REPORT, VERDICTS, WorkflowPaths
from plumbline.project.study_targets import StudyTargets
from plumbline.project.verdict_pages import VerdictPages
from plumbline.specs import code_hash, components, study_config, study_folders, study_parts, suites
from plumbline.specs.measurement import Measurement
from plumbline.specs.measurement_code import hash_measurement
from plumbline.specs.study_config import Run
from plumbline.specs.yaml_files import papers, read_yaml

#: Where the code begins of what is neither a target nor a measurement. An archive is checked by its SHA-256 instead.
VERBS = {
    "documents": "data/documents.py",
    "tokenizer": "data/tokenizer.py",
    "tokenize": "data/tokenize.py",
    "pack": "data/pack.py",
    "items": "evaluate/items.py",
    "scores": "evaluate/__main__.py",
}


class Fingerprints:
    """Computes fingerprints of a configuration's products: short texts that change exactly when a product has to be
    rebuilt.
    """

    def __init__(
        self,
        configuration: Configuration,
        paths: WorkflowPaths,
        inputs: ExternalInputs,
        targets: StudyTargets,
        verdicts: VerdictPages,
    ) -> None:
        self.configuration, self.paths, self.inputs = configuration, paths, inputs
        self.targets, self.verdicts = targets, verdicts

    def product(self, study: str, kind: str, target: str | None = None) -> str:
        """Fingerprint a study's product: its code, the parts of the study's YAML that it reads, and the runs that it
        needs.

        `kind` is table, figure, claims, interpretations or audit. What its runs and measurements found and the printed
        numbers are files, and are not in it. For measurements see `measurement`, for probes `probes`.
        """
        files = self._find_code(study, kind, target)
        if builds_models := code_hash.PACKAGE / "model" / "decoder.py" in files:  # whose components are found by name
            files |= {
                path for slot in components.SLOTS for path in (code_hash.PACKAGE / components.KINDS[slot]).glob("*.py")
            }
        parts: list[Any] = [code_hash.tree_hash(files)]
        if kind == "audit":  # whose page names the papers
            root = self.configuration.root
            parts.append([str(study_config.paper_of(name, root) or "") for name in papers(root)])
        else:
            parts.append(self._select_definition(study, kind))
        if kind in ("table", "figure", "claims"):
            parts.append(
                self.targets.hash_claimed_runs(study) if target is None else self.targets.hash_runs(study, target)
            )
            parts.append({} if target is None else self.configuration.studies[study].definition["targets"][target])
            if builds_models:  # those of the paper's own size, whatever the preset: the vocabulary is the corpus's
                corpus = read_yaml(
                    self.configuration.root
                    / "config"
                    / "corpora"
                    / f"{self.configuration.studies[study].definition['corpus']}.yaml"
                )
                parts.append(corpus["presets"].get("paper", {}).get("tokenizer"))
        return sha256_text(canonical_json(parts))[:16]

    def probes(self, run: Run) -> str:
        """Fingerprint the values that probes read of a run: the probes' shared code, and that of each probe of the
        run.

        The model's code, and that of probes which are read while it trains, is part of the run's own identity.
        """
        names = sorted({probe.name for probe in run.spec.probes})
        probe_code = {name: components.code_class("probe", name) for name in names}
        return sha256_text(canonical_json([_hash_probes(), probe_code]))[:16]

    def _select_definition(self, study: str, kind: str) -> Any:
        """The parts of a study's YAML that a kind of product can show."""
        definition = {
            key: value
            for key, value in self.configuration.studies[study].definition.items()
            if key not in ("runs", "targets")
        }
        if kind != "interpretations":
            definition.pop("measurements", None)
        definition["scales"] = {
            scale: {preset: _drop_keys(entry, "size") for preset, entry in presets.items()}
            for scale, presets in definition["scales"].items()
        }
        if "suite" in definition:
            definition["suite"] = self.suite_content(definition["suite"])
        if kind == "table":  # it names the interpretations in force
            definition["interpretations"] = [
                [entry["id"], entry.get("presets")] for entry in definition["interpretations"]
            ]
        elif kind != "interpretations":
            del definition["interpretations"]
        if kind == "interpretations":
            corpus = self._describe_corpus(definition["corpus"])
            return [definition, corpus, self.configuration.preset["evaluation"], self.configuration.evaluation_source]
        return definition

    def _find_code(self, study: str, kind: str, target: str | None) -> set[Path]:
        """What makes the product: the module of the target with its imports, or the verb's."""
        code_of = self.configuration.studies[study].code if study in self.configuration.studies else study
        root, starts = self.configuration.root, [code_hash.PACKAGE / "results" / "__main__.py"]
        if kind == "table" or kind == "figure":
            assert target is not None
            starts.append(study_parts.file(code_of, f"{kind}s", target, root))
        elif kind == "claims":
            starts += study_parts.files(code_of, "claims", root)
        elif kind == "interpretations":
            starts = [code_hash.PACKAGE / "results" / "interpretations.py"]
        else:
            starts = [code_hash.PACKAGE / "audit" / "__main__.py"]
            starts += [path for name in papers(root) for path in study_parts.files(name, "audit", root)]
        return {path for start in starts for path in code_hash.product_files(start)}

    def corpus(self, kind: str, name: str, split: str = "train") -> str:
        """Fingerprint documents, tokenizer, tokens (`tokenize`) or a pack (`kind`) of a corpus: ``<code>-<request>``.

        The request is what the configuration states, and which files a folder holds, down to this product: it includes
        what is requested of the stages before it, but not their code, nor how much of a hub's data set is read. That is
        hashed with the code of documents: where another budget gives the same bytes, nothing is trained anew for it.
        """
        corpus = self._describe_corpus(name)
        request: list[Any] = [corpus["source"], corpus["held_out_percent"], _list_sizes(self.inputs.corpus_files(name))]
        request += [corpus["copies"]] if "copies" in corpus else []
        request += [self._describe_hub(name)] if corpus["source"] == "hub" else []
        if tokens := bool(self.inputs.tokens.files(name)):
            request += [corpus["dtype"], corpus["document_end"]]
        if kind != "documents" or tokens:  # whose texts are decoded
            request.append(corpus["tokenizer"])
        if kind == "tokenize":
            request.append(self.configuration.preset["tokenize_shards"])
        if kind == "pack":
            request += [corpus["packs"] if split == "train" else corpus["validation"], corpus["sequences_per_shard"]]
        fingerprint = _join(kind, request)
        budgeted = self.inputs.budget_tokens(name) if kind == "documents" else None
        if budgeted is None:
            return fingerprint
        found_short = hub_read_budget.read_short(Path(self.paths.corpus(name)) / "documents")
        verb, _, rest = fingerprint.partition("-")
        return f"{sha256_text(canonical_json([verb, budgeted, corpus['tokenizer'], found_short]))[:16]}-{rest}"

    def _describe_corpus(self, name: str) -> dict[str, Any]:
        """What is requested of a corpus; without the rule for copies if it keeps all, as earlier versions did."""
        corpus: dict[str, Any] = msgspec.to_builtins(self.configuration.corpora[name])
        return corpus if corpus["copies"] != "keep" else _drop_keys(corpus, "copies")

    def _describe_hub(self, name: str) -> dict[str, Any]:
        """The data set that a corpus asks the hub for; to write down the commit that it was read at changes nothing."""
        source = self.configuration.corpora[name].hub
        commit = hub.read_locked_commit(Path(self.paths.corpus(name)) / "documents", source.path, source.configuration)
        dataset: dict[str, Any] = msgspec.to_builtins(source)
        return dataset | {"revision": ""} if source.revision == commit else dataset

    def items(self, name: str, suite: str) -> str:
        """Fingerprint the items of a suite, as `corpus` does; proxies among them are made from a corpus's documents."""
        local = (
            self.configuration.config["evaluation"]["missing"]
            if self.configuration.evaluation_source == "local"
            else None
        )
        documents = self.corpus("documents", name).partition("-")[2]
        request = [
            self.suite_content(suite, sources=True),
            self.configuration.evaluation_source,
            local,
            _list_sizes(self.inputs.item_files(suite)),
            documents,
        ]
        return _join("items", request)

    def scores(self, suite: str) -> str:
        """Fingerprint the scores of a suite, as `corpus` does, without run, items and tokenizer, which are files."""
        request = [
            self.suite_content(suite),
            self.configuration.preset["evaluation"]["limit"],
            self.configuration.config["evaluation"]["metric"],
        ]
        return _join("scores", request)

    def suite_content(self, name: str, *, sources: bool = False) -> Any:
        """What of a suite decides scores and their average, with `sources` its items too: everything but workloads,
        which are for plans, and how a release is converted, which is done by hand."""
        suite = suites.suite(name, self.configuration.root)
        left_out = ("workload", "released") if sources else ("workload", "released", "hub", "packaged", "proxy")
        return [suite.name, suite.average, [_drop_keys(task.to_plain(), *left_out) for task in suite.tasks]]

    def measurement(self, measurement: Measurement) -> str:
        """Fingerprint a measurement: its code, its options, and the specs of the runs that it names."""
        configuration = self.configuration
        owner = configuration.studies.get(measurement.study) or study_config.load(
            measurement.study, configuration.name, configuration.root
        )
        return hash_measurement(owner, measurement.name)

    def verdict(self) -> str:
        """Fingerprint the verdict's page; empty without a user's own file.

        It changes with the page's code, with what the file asks, with the printed tables and the earlier pages that it
        cites, and with what else was tried against its baselines: every p is multiplied by that.
        """
        if self.configuration.mine is None:
            return ""
        from plumbline.verdict import ledger
        from plumbline.verdict.own_method import decision_accuracy, ledger_costs

        ledger_entries = ledger.read(self.configuration.root / self.paths.verdict_ledger)
        counted = ledger_costs.count_tries(ledger_entries, ledger_costs.make_entries(self.configuration.mine))
        files = code_hash.product_files(code_hash.PACKAGE / "operate" / "experiments" / "own_verdict.py")
        labels = {method: self.configuration.mine.study.label(method) for method in self.configuration.mine.compared}
        cited: list[Any] = [
            sha256_file(path)
            for path in decision_accuracy.list_files(self.configuration.mine.study.code, self.configuration.root)
        ]
        cited += decision_accuracy.read_pages(
            (self.configuration.root / self.paths.verdict_ledger).parent, without=self.configuration.mine.name
        )
        request = [
            self.configuration.mine.asked,
            self.configuration.mine.against,
            labels,
            counted,
            cited,
            self.verdicts.hash_runs(),
        ]
        return sha256_text(canonical_json([code_hash.tree_hash(files), request]))[:16]

    def checks(self) -> str:
        """Fingerprint the checks before training: their code, the models' code, and the models that are checked."""
        from plumbline.specs.checked_models import fingerprint_checks

        return fingerprint_checks(self.configuration.mine) if self.configuration.mine else ""

    def report(self) -> str:
        """Fingerprint the report: the pages' code, templates, style and scripts, the studies' YAML and READMEs, and the
        verdicts' pages.

        All verdicts that are there count, since the user's file that requested one may no longer be known.
        """
        folder = code_hash.PACKAGE / REPORT
        files = code_hash.product_files(folder / "__main__.py")
        parts = [path for name in ("templates", "assets") for path in sorted((folder / name).iterdir())]
        verdicts = self.configuration.root / self.paths.results / VERDICTS
        parts += sorted([*verdicts.glob("*.md"), *verdicts.glob("*.svg")])
        parts += [
            study_folders.folder(study.code, self.configuration.root) / study_folders.README
            for study in self.configuration.studies.values()
        ]
        looks = [[path.name, sha256_file(path)] for path in parts if path.is_file()]
        definitions = [study.definition for study in self.configuration.studies.values()]
        return sha256_text(canonical_json([code_hash.tree_hash(files), looks, definitions]))[:16]

    def bundle(self) -> str:
        """Fingerprint the release bundle without its files: the code that packs it, and the configuration."""
        files = code_hash.measurement_files(code_hash.PACKAGE / "bundle" / "__main__.py")
        return sha256_text(canonical_json([code_hash.tree_hash(files), self.configuration.config]))[:16]


def _join(kind: str, request: Any) -> str:
    return f"{_hash_verb(kind)}-{sha256_text(canonical_json(request))[:16]}"


def verb_files(kind: str) -> list[Path]:
    """List the source files that decide the bytes of what a verb of `VERBS` writes."""
    start = code_hash.PACKAGE / VERBS[kind]
    if kind == "scores":  # the model's code is the run's, and items are files
        return code_hash.folder_files(start, except_names=("items.py",))
    return code_hash.measurement_files(start)


@cache
def _hash_verb(kind: str) -> str:
    return code_hash.tree_hash(verb_files(kind))


@cache
def _hash_probes() -> str:
    return code_hash.tree_hash(sorted((code_hash.PACKAGE / "evaluate" / "probes").glob("*.py")))


def _list_sizes(files: list[str]) -> list[list[Any]]:
    """List names and sizes; a change that keeps the size shows in the file's time of change."""
    folder = os.path.commonpath([os.path.dirname(path) for path in files]) if files else ""
    return [[os.path.relpath(path, folder), os.path.getsize(path)] for path in files]


def _drop_keys(entry: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name not in keys}
