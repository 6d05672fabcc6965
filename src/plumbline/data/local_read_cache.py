"""Stores what was read of a folder of one's own so far: a `documents` stage that was killed continues from there.

As of a hub's data set (hub_read_cache.py), below `.local-<hash>`; the hash is that of the files' own hashes and of how
they are cut and held out. A folder whose files have changed since is read from the beginning. Nothing is kept once the
documents are written: the folder itself can be read again, and faster than a network.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

from plumbline.data import hub_read_cache
from plumbline.data.hub_read_cache import StreamCache
from plumbline.data.split import DocumentShuffle

#: Begins the names of the folders.
PREFIX = ".local-"


class LocalReadCache(StreamCache):
    """The folder that keeps what was read of one's own files; this process is its only user."""

    prefix = PREFIX

    def _found_other(self, folder: Path) -> None:
        print(
            f"{folder}: was read before a file of the folder of texts, or what is asked of them, changed: reading "
            "starts again, and what was read before is removed",
            file=sys.stderr,
        )
        shutil.rmtree(folder)

    def ended(self, shuffles: dict[str, DocumentShuffle]) -> None:
        """All documents were taken; a small folder is read again as fast as this is synced."""
        if self._worth_it():
            self.save(shuffles)

    def interrupted(self, shuffles: dict[str, DocumentShuffle]) -> bool:
        """Keep what was taken when reading failed or was stopped, if it is much; whether it is kept."""
        if self._worth_it():
            return super().interrupted(shuffles)
        shutil.rmtree(self.folder, ignore_errors=True)
        return False

    def finish(self, out: Path, described: dict[str, dict[str, Any]]) -> None:
        """Remove what the documents were made from."""
        shutil.rmtree(self.folder)

    def _worth_it(self) -> bool:
        return self.tally.bytes >= hub_read_cache.SAVE_BYTES
