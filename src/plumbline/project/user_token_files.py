"""Finds a user's own token files: which corpora have them, and what tokenizer and documents are then made from."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from plumbline.core.errors import PlumblineError
from plumbline.data import token_files
from plumbline.data.sources import local
from plumbline.project.configuration import Configuration
from plumbline.project.paths import WorkflowPaths


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

    def _mixed(self, name: str) -> bool:
        return len({path.suffix for path in self._folder_files.get(name, [])}) > 1

    @cached_property
    def _token_files(self) -> dict[str, list[str]]:  # every job of every run asks
        found = {
            name: [] if self._mixed(name) else self._folder_files.get(name, []) for name in self.configuration.corpora
        }
        return {
            name: [path.as_posix() for path in files if path.suffix in token_files.SUFFIXES]
            for name, files in found.items()
        }

    @cached_property
    def _folder_files(self) -> dict[str, list[Path]]:
        mine = {
            name: read.folder
            for name, read in self.configuration.corpora.items()
            if read.source == "local" and read.folder
        }
        return {name: local.found(Path(folder)) for name, folder in mine.items()}

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
        """Check, before anything is planned, that each corpus's YAML says what its token files need.

        Raises:
            PlumblineError: naming the key and what to write there.
        """
        for name, read in self.configuration.corpora.items():
            if self._mixed(name):
                continue  # whose files they are, texts or tokens, nobody can tell
            if read.source == "local" and read.folder:
                token_files.require(
                    name,
                    read.preset,
                    read.tokenizer.kind,
                    Path(read.folder),
                    [Path(path) for path in self.files(name)],
                    dtype=read.dtype,
                    document_end=read.document_end,
                )
            elif read.source != "local" and read.tokenizer.kind == "given":
                raise PlumblineError(
                    f"{read.path}: presets.{read.preset}.tokenizer.kind: given: it belongs to your own token files, "
                    f"but documents come from {read.source}: add --config data='{{source: local}}', or choose another"
                )
