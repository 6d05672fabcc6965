"""Stores what was read of documents so far next to the corpus: a stage that was interrupted continues from there.

`.hub-<hash>` in the folder of the documents, by the hash of what is read and how, holds the files of the shuffle and,
written last, `cursor.json`: the place in the data set up to which they go, and what was counted. Both reach the disk
every `SAVE_BYTES` of text; what a kill leaves beyond that is cut off. When the documents are written these files are
removed, and hard links to the documents are kept instead (they take no room on the disk while the documents are there),
so that a later, larger fetch reads on, and merges what is new.

Of a folder of one's own it is `.local-<hash>`, by the files' own hashes and how they are cut and held out: a folder
whose files have changed since is read from the beginning.

The bytes of the documents depend on the data set and what is asked of it, never on where a fetch was interrupted.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError
from plumbline.core.files import (
    atomic_write_json,
    canonical_json,
    free_name,
    fsync_directory,
    open_atomically,
    sha256_file,
    sha256_text,
)
from plumbline.core.formats import format_megabytes
from plumbline.data.document import START, StreamPosition, name_key
from plumbline.data.split import DocumentShuffle, Sizes

#: Changes with the bytes of documents of the same data set: what was read before is then read again.
FORMAT = 2

#: Text between two saves: 20 s of a stream of 50 MB/s, which a kill costs, against some seconds of waiting for a disk.
SAVE_BYTES = 1_000_000_000

#: Begin the names of the folders, of a hub's data set and of a folder of one's own.
HUB_PREFIX, LOCAL_PREFIX = ".hub-", ".local-"

_CURSOR = "cursor.json"


@dataclass(kw_only=True)
class StreamTotals:
    """Counts of the documents taken so far.

    Attributes:
        taken: side of the split -> documents.
        sizes: side -> bytes of text.
        sources: side -> source -> pieces written.
        bytes: text of all documents, before they were cut.
        last: text of the last document.
    """

    taken: Counter[str] = field(default_factory=Counter)
    sizes: Counter[str] = field(default_factory=Counter)
    sources: dict[str, Counter[str]] = field(default_factory=dict)
    bytes: int = 0
    last: int = 0

    @classmethod
    def read(cls, content: dict[str, Any]) -> StreamTotals:
        """Read a tally from the dictionary that `vars` gave of one."""
        sources = {split: Counter(counts) for split, counts in content["sources"].items()}
        counters = {name: Counter(content[name]) for name in ("taken", "sizes")}
        return cls(**counters, sources=sources, bytes=content["bytes"], last=content["last"])


class StreamCache:
    """The folder that keeps what was read of one data set; this process is its only user."""

    #: Up to where documents were taken, and what was counted of them.
    at: StreamPosition
    tally: StreamTotals
    #: Bytes a token as measured, with how; None before.
    measured: dict[str, Any] | None
    #: Folder of finished documents that those in the files come on top of ("": none), with number and checksum.
    whole: dict[str, Any]
    _files: dict[str, Sizes]
    _saved: int

    #: Begins the names of the folders of this kind.
    prefix = HUB_PREFIX

    def __init__(self, out: Path, request: dict[str, Any], corpus: str) -> None:
        """Find what `out` keeps of `request`; what it keeps of anything else is named, and left alone.

        Raises:
            PlumblineError: the cursor cannot be read.
        """
        self.corpus, self._asked = corpus, request
        self.folder = out / f"{self.prefix}{sha256_text(canonical_json([FORMAT, request]))[:16]}"
        self._begin()
        for other in sorted(out.glob(f"{self.prefix}*")):
            if other != self.folder:
                self._report_other(other)
        path = self.folder / _CURSOR
        try:
            cursor = json.loads(path.read_text(encoding="utf-8"))
            if cursor.pop("sha256") != sha256_text(canonical_json(cursor)):
                raise ValueError("its sha256 is another")
            self.at, self.tally = StreamPosition(**cursor["position"]), StreamTotals.read(cursor["tally"])
            self.measured, self.whole = cursor["measured"], cursor["whole"]
            self._files = {
                split: {int(number): size for number, size in sizes.items()} for split, sizes in cursor["files"].items()
            }
        except FileNotFoundError:
            return
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise PlumblineError(
                f"{path}: not what was written there ({type(error).__name__}: {error}); delete {self.folder} to start "
                "again"
            ) from error
        self._saved = self.tally.bytes
        print(
            f"{self.folder}: {format_megabytes(self.tally.bytes)} of text ({self.at.number:,} rows) were read before; "
            "reading continues from there",
            file=sys.stderr,
        )

    def _report_other(self, folder: Path) -> None:
        """Report a folder of something else than is requested."""
        print(_describe_unused(folder), file=sys.stderr)

    def _begin(self) -> None:
        self.at, self.tally, self.measured = START, StreamTotals(), None
        self.whole = {"folder": "", "splits": {}}
        self._files, self._saved = {}, 0

    def set_aside_longer(self, limit: int | None) -> None:
        """Set the wanted number of bytes of text (None: all).

        Where more was read already, it is put aside and the data set is read from the beginning, because the documents
        would otherwise depend on what was requested before.
        """
        if limit is None or self.tally.bytes - self.tally.last < limit:
            return
        aside = free_name(self.folder, "larger")
        os.replace(self.folder, aside)
        print(
            f"{name_key(self.corpus, 'packs')}: {format_megabytes(limit)} of text are needed now, and "
            f"{format_megabytes(self.tally.bytes)} were read before, which is another corpus: reading starts again, "
            f"and the old text is kept as {aside}, until you delete it",
            file=sys.stderr,
        )
        measured = self.measured
        self._begin()
        self.measured = measured

    def restore(self, shuffles: dict[str, DocumentShuffle]) -> None:
        """Continue the shuffles of the kept folder from the last `save`."""
        for split, shuffle in shuffles.items():
            shuffle.restore(self._files.get(split, {}))

    def note_taken(self, end: StreamPosition | None) -> None:
        """Note that a document was taken, so that reading continues after its end."""
        assert end is not None
        self.at = end

    def save(self, shuffles: dict[str, DocumentShuffle], *, now: bool = True) -> None:
        """Make the documents taken so far survive a kill or a power cut; unless `now`, only every `SAVE_BYTES`."""
        if now or self.tally.bytes - self._saved >= SAVE_BYTES:
            self._files = {split: shuffle.save() for split, shuffle in shuffles.items()}
            self._write()
            self._saved = self.tally.bytes

    def keep_all(self, shuffles: dict[str, DocumentShuffle]) -> None:
        """Keep all documents, which were taken."""
        self.save(shuffles)

    def keep_partial(self, shuffles: dict[str, DocumentShuffle]) -> bool:
        """Keep what was taken when reading failed or was stopped; whether it is kept."""
        self.save(shuffles)
        return True

    def _write(self) -> None:
        content = {
            "asked": self._asked,
            "position": self.at._asdict(),
            "tally": vars(self.tally),
            "measured": self.measured,
            "whole": self.whole,
            "files": self._files,
        }
        # As JSON has it: its keys are texts.
        sha256 = sha256_text(canonical_json(json.loads(json.dumps(content))))
        atomic_write_json(self.folder / _CURSOR, content | {"sha256": sha256})

    def find_earlier_documents(self, split: str) -> Path | None:
        """The finished documents of one side from an earlier fetch, to which the new ones are added; None if there
        are none.

        Raises:
            PlumblineError: the file is not what was written then.
        """
        if not self.whole["folder"]:
            return None
        path = self.folder / self.whole["folder"] / f"{split}.jsonl"
        sha256, was = sha256_file(path) if path.is_file() else "that of no file", self.whole["splits"][split][1]
        if sha256 != was:
            raise PlumblineError(
                f"{path}: its sha256 is {sha256}, and was {was}; delete {self.folder} to read the data set again"
            )
        return path

    def restore_finished_documents(self, split: str, path: Path) -> dict[str, Any]:
        """Put the finished documents of an earlier fetch back as `path`; returns their number and checksum."""
        path.unlink(missing_ok=True)
        whole = self.folder / self.whole["folder"] / path.name
        try:
            os.link(whole, path)
            os.utime(path)  # it was made now, as far as those can see who read it
        except OSError:  # another user's, who alone may link it or say when it was made
            with open(whole, "rb") as original, open_atomically(path) as copy:
                shutil.copyfileobj(original, copy, 1 << 20)
        documents, sha256 = self.whole["splits"][split]
        return {"documents": documents, "sha256": sha256}

    def finish(self, out: Path, described: dict[str, dict[str, Any]]) -> None:
        """Keep hard links to the documents that are now written, and remove the files that they were made from.

        Where the file system has no hard links, nothing is kept and a message says that a later fetch reads all again.
        """
        whole = self.folder / f"whole-{self.at.number}"
        if self.whole["folder"] != whole.name:
            shutil.rmtree(whole, ignore_errors=True)
            whole.mkdir()
            try:
                for split, facts in described.items():
                    os.link(out / facts["file"], whole / f"{split}.jsonl")
                fsync_directory(whole)
            except OSError as error:
                print(
                    f"{whole}: no hard links here ({error.strerror}): a larger fetch will read all of it again",
                    file=sys.stderr,
                )
                shutil.rmtree(self.folder)
                return
            splits = {split: [facts["documents"], facts["sha256"]] for split, facts in described.items()}
            self.whole = {"folder": whole.name, "splits": splits}
        self._files = {}
        self._write()
        for path in self.folder.iterdir():
            if path.is_dir() and path != whole:
                shutil.rmtree(path)


def _describe_unused(folder: Path) -> str:
    """State that a folder holds something else than is requested."""
    try:
        request = json.loads((folder / _CURSOR).read_text(encoding="utf-8"))["asked"]
        text = ", ".join(f"{name} {value!r:.80}" for name, value in request.items() if not isinstance(value, dict))
    except (OSError, ValueError, KeyError, TypeError):
        text = "it does not say what"
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and path.stat().st_nlink == 1)
    return (
        f"{folder}: was read from other data, or in another way, than is asked for now ({text}), so it is not "
        f"used; it takes {format_megabytes(size)} until you delete it"
    )


class LocalReadCache(StreamCache):
    """The folder that keeps what was read of one's own files; this process is its only user.

    Nothing is kept once the documents are written: the folder itself can be read again, and faster than a network.
    """

    prefix = LOCAL_PREFIX

    def _report_other(self, folder: Path) -> None:
        print(
            f"{folder}: was read before a file of the folder of texts, or what is asked of them, changed: reading "
            "starts again, and what was read before is removed",
            file=sys.stderr,
        )
        shutil.rmtree(folder)

    def keep_all(self, shuffles: dict[str, DocumentShuffle]) -> None:
        """Keep all documents, which were taken; a small folder is read again as fast as this is synced."""
        if self._worth_it():
            self.save(shuffles)

    def keep_partial(self, shuffles: dict[str, DocumentShuffle]) -> bool:
        """Keep what was taken when reading failed or was stopped, if it is much; whether it is kept."""
        if self._worth_it():
            return super().keep_partial(shuffles)
        shutil.rmtree(self.folder, ignore_errors=True)
        return False

    def finish(self, out: Path, described: dict[str, dict[str, Any]]) -> None:
        """Remove what the documents were made from."""
        shutil.rmtree(self.folder)

    def _worth_it(self) -> bool:
        return self.tally.bytes >= SAVE_BYTES
