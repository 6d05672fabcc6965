"""What a product is made of, beside files: its code, and the parts of YAML that it shows. One short text each."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from plumbline.core.files import canonical_json, sha256_text
from plumbline.data import budget
from plumbline.data.sources import hub
from plumbline.specs import code, components, study_parts, suites
from plumbline.specs.config import documents, read_yaml

if TYPE_CHECKING:
    from plumbline.specs.corpus import Corpus
    from plumbline.specs.study_config import Run, Study
    from plumbline.specs.trial import Trial


#: Where the code begins of what is neither a target nor a measurement. An archive is checked by its SHA-256 instead.
VERBS = {
    "documents": "data/documents.py",
    "tokenizer": "data/tokenizer.py",
    "tokenize": "data/tokenize.py",
    "pack": "data/pack.py",
    "items": "evaluate/items.py",
    "scores": "evaluate/__main__.py",
}


class MadeOf:
    """The part of a `plumbline.project.project.Plan` that tells when a product has to be made anew."""

    config: dict[str, Any]
    preset: dict[str, Any]
    studies: dict[str, Study]
    corpora: dict[str, Corpus]
    trial: Trial | None
    root: Path
    evaluation_source: str
    corpus_folder: Callable[[str], str]
    corpus_files: Callable[[str], list[str]]
    token_files: Callable[[str], list[str]]
    budget_tokens: Callable[[str], int | None]
    item_files: Callable[[str], list[str]]
    target_expected: Callable[[str, str], str]
    study_expected: Callable[[str], str]

    def made_of(self, study: str, kind: str, target: str | None = None) -> str:
        """Changes when a product's code, the parts of the study's YAML that it reads or the runs that it needs change,
        and not otherwise.

        `kind` is table, figure, claims, deviations or audit. What its runs and measurements found and the printed
        numbers are files. For measurements see `of_measurement`, for probes `probes_made_of`.
        """
        files = self._code(study, kind, target)
        if builds_models := code.PACKAGE / "model" / "decoder.py" in files:  # whose components are found by name
            files |= set((code.PACKAGE / "model").glob("*/*.py"))
        parts: list[Any] = [code.tree_hash(files)]
        if kind != "audit":
            parts.append(self._said(study, kind))
        if kind in ("table", "figure", "claims"):
            parts.append(self.study_expected(study) if target is None else self.target_expected(study, target))
            parts.append({} if target is None else self.studies[study].sheet["targets"][target])
            if builds_models:  # those of the document's own size, whatever the preset: the vocabulary is the corpus's
                corpus = read_yaml(self.root / "config" / "corpora" / f"{self.studies[study].sheet['corpus']}.yaml")
                parts.append(corpus["presets"].get("paper", {}).get("tokenizer"))
        return sha256_text(canonical_json(parts))[:16]

    def trial_made_of(self) -> str:
        """What the page of the trial is made of, beside its runs: its code, and what it says of them."""
        files = code.measurement_files(code.PACKAGE / "experiment" / "trial.py")
        return sha256_text(canonical_json([code.tree_hash(files), self.trial.digest if self.trial else ""]))[:16]

    def probes_made_of(self, run: Run) -> str:
        """What the readings of a run are made of: the probes' shared code, and each of its own. The model's code, and
        that of probes which are read while it trains, is the run's."""
        named = sorted({probe.name for probe in run.spec.probes})
        own = {name: components.code_class("probe", name) for name in named}
        return sha256_text(canonical_json([_probes_code(), own]))[:16]

    def _said(self, study: str, kind: str) -> Any:
        """The parts of a study's YAML that a kind of product can show."""
        said = {key: value for key, value in self.studies[study].sheet.items() if key not in ("runs", "targets")}
        if kind != "deviations":
            said.pop("measurements", None)
        said["scales"] = {
            scale: {preset: _without(entry, "size") for preset, entry in presets.items()}
            for scale, presets in said["scales"].items()
        }
        if "suite" in said:
            said["suite"] = self.suite_content(said["suite"])
        if kind == "table":  # it names the rulings in force
            said["rulings"] = [[ruling["id"], ruling.get("presets")] for ruling in said["rulings"]]
        elif kind != "deviations":
            del said["rulings"]
        if kind == "deviations":
            read = msgspec.to_builtins(self.corpora[said["corpus"]])
            return [said, read, self.preset["evaluation"], self.evaluation_source]
        return said

    def _code(self, study: str, kind: str, target: str | None) -> set[Path]:
        """What makes the product: the module of the target with its imports, or the verb's."""
        code_of = self.studies[study].code if study in self.studies else study
        starts = [code.PACKAGE / "results" / "__main__.py"]
        if kind == "table" or kind == "figure":
            assert target is not None
            starts.append(study_parts.file(code_of, f"{kind}s", target))
        elif kind == "claims":
            starts += study_parts.files(code_of, "claims")
        elif kind == "deviations":
            starts = [code.PACKAGE / "results" / "deviations.py"]
        else:
            starts = [code.PACKAGE / "audit" / "__main__.py"]
            starts += [path for name in documents(self.root) for path in study_parts.files(name, "audit")]
        return {path for start in starts for path in code.product_files(start)}

    def corpus_made_of(self, kind: str, name: str, split: str = "train") -> str:
        """What documents, tokenizer, tokens (`tokenize`) or a pack of a corpus are made of: ``<code>-<asked>``.

        Asked is what the configuration says, and which files a folder holds, down to this product: what the stages
        before it are asked for is in it, their code is not. Nor is how much of a hub's data set is read, which stands
        with the code of documents: where another budget gives the same bytes, nothing is trained anew for it.
        """
        read = msgspec.to_builtins(self.corpora[name])
        asked: list[Any] = [read["source"], read["held_out_percent"], _sizes(self.corpus_files(name))]
        asked += [self._hub(name)] if read["source"] == "hub" else []
        if tokens := bool(self.token_files(name)):
            asked += [read["dtype"], read["document_end"]]
        if kind != "documents" or tokens:  # whose texts are decoded
            asked.append(read["tokenizer"])
        if kind == "tokenize":
            asked.append(self.preset["tokenize_shards"])
        if kind == "pack":
            asked += [read["packs"] if split == "train" else read["validation"], read["sequences_per_shard"]]
        made = _joined(kind, asked)
        budgeted = self.budget_tokens(name) if kind == "documents" else None
        if budgeted is None:
            return made
        found_short = budget.short(Path(self.corpus_folder(name)) / "documents")
        verb, _, rest = made.partition("-")
        return f"{sha256_text(canonical_json([verb, budgeted, read['tokenizer'], found_short]))[:16]}-{rest}"

    def _hub(self, name: str) -> dict[str, Any]:
        """The data set that a corpus asks the hub for; to write down the commit that it was read at changes nothing."""
        asked = self.corpora[name].hub
        commit = hub.locked(Path(self.corpus_folder(name)) / "documents", asked.path, asked.configuration)
        read: dict[str, Any] = msgspec.to_builtins(asked)
        return read | {"revision": ""} if asked.revision == commit else read

    def items_made_of(self, name: str, suite: str) -> str:
        """What the items of a suite are made of, as in `corpus_made_of`; proxies are made from a corpus's documents."""
        local = self.config["evaluation"]["missing"] if self.evaluation_source == "local" else None
        documents = self.corpus_made_of("documents", name).partition("-")[2]
        asked = [self.suite_content(suite), self.evaluation_source, local, _sizes(self.item_files(suite)), documents]
        return _joined("items", asked)

    def scores_made_of(self, suite: str) -> str:
        """What scores are made of beside a run, items and a tokenizer, as in `corpus_made_of`."""
        asked = [self.suite_content(suite), self.preset["evaluation"]["limit"], self.config["evaluation"]["metric"]]
        return _joined("scores", asked)

    def suite_content(self, name: str) -> Any:
        """What of a suite decides scores and their average: everything but the sizes, which are for plans."""
        suite = suites.suite(name, self.root)
        return [suite.name, suite.average, [_without(asdict(task), "size") for task in suite.tasks]]


def _joined(kind: str, asked: Any) -> str:
    return f"{_verb_code(kind)}-{sha256_text(canonical_json(asked))[:16]}"


def verb_files(kind: str) -> list[Path]:
    """The code that decides the bytes of one of `VERBS`."""
    start = code.PACKAGE / VERBS[kind]
    if kind == "scores":  # the model's code is the run's, and items are files
        return code.folder_files(start, but=("items.py",))
    return code.measurement_files(start)


@cache
def _verb_code(kind: str) -> str:
    return code.tree_hash(verb_files(kind))


@cache
def _probes_code() -> str:
    return code.tree_hash(sorted((code.PACKAGE / "probes").glob("*.py")))


def _sizes(files: list[str]) -> list[list[Any]]:
    """Names and sizes; that a file was changed within its size is for its time to say."""
    folder = os.path.commonpath([os.path.dirname(path) for path in files]) if files else ""
    return [[os.path.relpath(path, folder), os.path.getsize(path)] for path in files]


def _without(entry: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name != key}
