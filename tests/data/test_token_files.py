"""The user's own token files: every format gives the same documents, and the tokens that are packed are the files'."""

from __future__ import annotations

import dataclasses
import json
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from plumbline.core.errors import PlumblineError
from plumbline.data import documents, pack, token_files, tokenize, tokenizer
from plumbline.data.split import is_held_out
from plumbline.data.tokenizer import Tokenizer
from tests.data.conftest import Stages, corpus

Write = Callable[[Path, list[int]], None]


def encode(magic: int, version: int, dtype: str, ids: list[int], count: int | None = None) -> bytes:
    header = struct.pack("<3i", magic, version, len(ids) if count is None else count)
    return header.ljust(1024, b"\0") + np.array(ids, dtype).tobytes()


def npy(shape: str, data: bytes, descr: str = "'<u2'") -> bytes:
    """A .npy file whose header states what it likes."""
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header + data


def numpy_file(dtype: str) -> Write:
    return lambda path, ids: np.save(path, np.array(ids, dtype))


#: ending, what writes it, and what the corpus's file has to state
FORMATS: dict[str, tuple[str, Write, str]] = {
    "uint16": (".bin", lambda path, ids: np.array(ids, "<u2").tofile(path), "uint16"),
    "uint32": (".bin", lambda path, ids: np.array(ids, "<u4").tofile(path), "uint32"),
    "header": (".bin", lambda path, ids: path.write_bytes(encode(20240520, 1, "<u2", ids)) and None, ""),
    "header, 4 bytes": (".bin", lambda path, ids: path.write_bytes(encode(20240801, 7, "<u4", ids)) and None, ""),
    "npy uint16": (".npy", numpy_file("<u2"), ""),
    "npy int64": (".npy", numpy_file("<i8"), ""),
    "npy big-endian": (".npy", numpy_file(">u4"), ""),
}


@dataclass(frozen=True, kw_only=True)
class Folder:
    """A folder of token files next to the tokenizer of the synthetic corpus, and the verbs on it."""

    path: Path
    tokenizer: Path
    dtype: str = ""
    end: int = 0

    @property
    def out(self) -> Path:
        return self.path.parent / "out"

    def documents(self, *more: str) -> dict[str, Any]:
        dtype = ["--token-files-dtype", self.dtype] if self.dtype else []
        args = [
            *["--corpus", "mine", "--documents-source", "local", "--local-texts-folder"],
            str(self.path),
            "--out",
            str(self.out),
        ]
        args += [*dtype, "--document-end", str(self.end), "--token-files-tokenizer", str(self.tokenizer)]
        documents.main([*args, *more])
        return json.loads((self.out / "documents.json").read_text())

    def lines(self, split: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.out / f"{split}.jsonl").read_text("utf-8").splitlines()]

    def tokens(self, split: str, shards: int = 3) -> np.ndarray:
        dtype = ["--token-files-dtype", self.dtype] if self.dtype else []
        paths = [self.out / f"{split}-{shard:04d}.npy" for shard in range(shards)]
        for shard, path in enumerate(paths):
            args = ["--documents", f"{self.out}/{split}.jsonl", "--tokenizer", str(self.tokenizer)]
            args += ["--shard-number", str(shard), "--shard-count", str(shards), "--out", str(path)]
            tokenize.main(
                [
                    *args,
                    "--local-texts-folder",
                    str(self.path),
                    "--corpus",
                    "mine",
                    *dtype,
                    "--document-end",
                    str(self.end),
                ]
            )
        return np.concatenate([np.load(path) for path in paths])


def texts(stages: Stages) -> list[list[int]]:
    encoder = Tokenizer(stages.tokenizer)
    return [encoder.encode(row["text"]) for row in corpus(200)]


def folder(stages: Stages, tmp_path: Path, dtype: str = "uint16") -> Folder:
    (tmp_path / "in").mkdir()
    return Folder(path=tmp_path / "in", tokenizer=stages.tokenizer, dtype=dtype, end=Tokenizer(stages.tokenizer).eot)


def join_rows(rows: list[list[int]], end: int) -> list[int]:
    return [token for row in rows for token in [*row, end]]


def split_rows(ids: list[int], end: int) -> list[tuple[int, ...]]:
    return [tuple(map(int, row)) for row in np.split(ids, np.flatnonzero(np.array(ids) == end) + 1)]


@pytest.mark.parametrize("name", FORMATS)
def test_what_is_packed_are_the_files_tokens(stages: Stages, tmp_path: Path, name: str) -> None:
    """As they are: the ids here are none that the tokenizer would give for the text."""
    ending, write, dtype = FORMATS[name]
    mine = folder(stages, tmp_path, dtype)
    rows = [ids[::-1] for ids in texts(stages)]
    write(mine.path / f"a{ending}", join_rows(rows[:150], mine.end))
    write(mine.path / f"b{ending}", join_rows(rows[150:], mine.end)[:-1])  # which its end ends
    manifest = mine.documents("--validation-percent", "20")
    counts = {f"a{ending}": (150, 0), f"b{ending}": (50, 1)}
    files = manifest["tokens"]["files"]
    assert {file: (facts["documents"], facts["unended"]) for file, facts in files.items()} == counts
    arrays = {split: mine.tokens(split) for split in documents.SPLITS}
    assert {ids.dtype.str for ids in arrays.values()} == {"<u2"}
    whole = [row for split in documents.SPLITS for row in split_rows(arrays[split].tolist(), mine.end) if row]
    assert sorted(whole) == sorted((*row, mine.end) for row in rows)
    encoder = Tokenizer(stages.tokenizer)
    for split in documents.SPLITS:
        lines = mine.lines(split)
        assert [line["text"] for line in lines] == [
            encoder.decode(row[:-1]) for row in split_rows(arrays[split].tolist(), mine.end) if row
        ]
        assert all(is_held_out(line["id"], 20) is (split == "validation") for line in lines)
        out = tmp_path / "packs" / split
        sizes = ["--pack-size", "some=all", "--context", "16", "--document-end", str(mine.end), "--out", str(out)]
        args = [
            "--token-shards",
            str(mine.out),
            "--shard-count",
            "3",
            "--tokenizer",
            str(stages.tokenizer),
            "--split",
            split,
        ]
        pack.main([*args, "--documents", f"{mine.out}/documents.json", *sizes])
        packed = np.fromfile(out / split / "shard-00000.bin", "<u2")
        np.testing.assert_array_equal(packed, arrays[split][: len(packed)])
        assert json.loads((out / "some.json").read_text())["separator"] == mine.end


@settings(max_examples=15)
@given(ids=st.lists(st.integers(0, 3), min_size=1, max_size=40).filter(lambda ids: 0 in ids and any(ids)))
def test_documents_are_what_lies_between_ends(tmp_path_factory: pytest.TempPathFactory, ids: list[int]) -> None:
    """Whatever the ids: ends side by side, at the start, none at the end; and a text may be empty."""
    root = tmp_path_factory.mktemp("cut")
    blank = tokenizers.Tokenizer(tokenizers.models.WordLevel({"<end>": 0, "": 1, "a": 2, "b": 3}, unk_token=""))
    blank.save(str(root / "tokenizer.json"))
    (root / "in").mkdir()
    FORMATS["uint32"][1](root / "in" / "train.bin", ids)
    FORMATS["uint32"][1](root / "in" / "val.bin", [2, 0])
    mine = Folder(path=root / "in", tokenizer=root / "tokenizer.json", dtype="uint32", end=0)
    mine.documents()
    expected = [row for row in "".join(map(str, ids)).split("0") if row]
    digits = "".join(map(str, mine.tokens("train", 2)))
    assert sorted(digits.split("0")[:-1]) == sorted(expected)


def test_small_batches_and_long_documents(stages: Stages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks, batches and parts of any size give the same documents and ids."""
    from plumbline.data.sources import tokens

    mine = folder(stages, tmp_path)
    FORMATS["uint16"][1](mine.path / "a.bin", join_rows(texts(stages), mine.end))
    mine.documents("--validation-percent", "20")
    whole = {split: mine.tokens(split).tolist() for split in documents.SPLITS}
    places = [line["tokens"] for line in mine.lines("train")]
    for name, size in (("_BLOCK", 7), ("_BATCH", 50), ("_DOCUMENTS", 3), ("_PART", 11)):
        monkeypatch.setattr(tokens, name, size)
        mine.documents("--validation-percent", "20")
        assert [line["tokens"] for line in mine.lines("train")] == places
        assert {split: mine.tokens(split).tolist() for split in documents.SPLITS} == whole


@pytest.mark.parametrize("name", ["val.bin", "validation-07.bin", "shakespeare_val.bin", "val/000.bin"])
def test_a_validation_file_is_the_held_out_side(
    stages: Stages, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = folder(stages, tmp_path)
    rows = texts(stages)
    (mine.path / name).parent.mkdir(exist_ok=True)
    write = FORMATS["uint16"][1]
    write(mine.path / "interval.bin", join_rows(rows[:190], mine.end))
    write(mine.path / name, join_rows(rows[190:], mine.end))
    manifest = mine.documents("--validation-percent", "50")
    assert {line["source"] for line in mine.lines("validation")} == {name}
    assert {split: len(mine.lines(split)) for split in documents.SPLITS} == {"train": 190, "validation": 10}
    assert manifest["validation_percent"] is None
    assert manifest["split_rule"].startswith("a document is held out if `val`")
    assert f"held_out.percent is not used: {name} " in capsys.readouterr().err
    (mine.path / "interval.bin").unlink()
    with pytest.raises(PlumblineError, match=r"every token file .* none is left"):
        mine.documents()


WRONG: dict[str, tuple[str, bytes, str, str]] = {
    "an id above the vocabulary": ("a.bin", b"\1\0\0\0\x40\1\2\0", "uint16", r"a\.bin: id 320 at position 2 is not"),
    "a negative id": ("a.npy", b"npy[1, 0, -4]", "", r"a\.npy: id -4 at position 2 is not an entry of .* go to 319"),
    "half an id": ("a.bin", b"\1\0\0\0\2", "uint16", r"a\.bin: 5 bytes are not a whole number of ids of uint16 \(2 "
                                                     r"bytes"),
    "no id": ("a.bin", b"", "uint16", r"a\.bin: holds no ids"),
    "no id in an npy": ("a.npy", b"npy[]", "", r"a\.npy: holds no ids"),
    "no id after a header": ("a.bin", encode(20240520, 1, "<u2", []), "", r"a\.bin: holds no ids"),
    "no type": ("a.bin", b"\1\0\0\0", "", r"mine\.yaml: local\.dtype: missing"),
    "another type": ("a.bin", encode(20240520, 1, "<u2", [0]), "uint32", r"local\.dtype: uint32, but .*are uint16"),
    "a truncated file": ("a.bin", encode(20240520, 1, "<u2", [0], 2), "", r"names 2 ids .*1,028 bytes; it has 1,026"),
    "another version": ("a.bin", encode(20240520, 2, "<u2", [0]), "", r"magic 20240520 and version 2; only version 1"),
    "a table": ("a.npy", b"npy[[0, 1]]", "", r"a\.npy: shape \(1, 2\) of int64; a token file is one row"),
    "halves": ("a.npy", b"npy[0.5]", "", r"a\.npy: shape \(1,\) of float64; a token file is one row of whole numbers"),
    "half an id beyond what an npy says": ("a.npy", npy("(2,)", b"\1\0\0\0\7"), "", r"names 2 entries .* 5 come"),
    "ids beyond what an npy says": ("a.npy", npy("(2,)", b"\1\0\0\0\7\0\0\0"), "", r"4 bytes; 8 come after it\)"),
    "an npy of petabytes": ("a.npy", npy(f"({10**15},)", b""), "", r"a\.npy: truncated, or .*2,000,000,000,000,000 b"),
    "an npy beyond numbers": ("a.npy", npy(f"({2**70},)", b""), "", r"a\.npy: truncated, or not a \.npy file"),
    "an npy without end": ("a.npy", npy("((" * 3000, b"\0" * 99), "", r"a\.npy: truncated, or not a \.npy file \(its"),
    "an archive of npys": ("a.npy", b"PK\3\4" + b"\0" * 99, "", r"a\.npy: truncated, or not a \.npy file \(the magic"),
    "no npy": ("a.npy", b"\1\0", "", r"a\.npy: truncated, or not a \.npy file"),
    "no end": ("a.bin", b"\1\0\2\0", "uint16", r"local\.document_end: 0 \('<\|endoftext\|>'\) never occurs"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_token_file_is_refused(stages: Stages, tmp_path: Path, case: str) -> None:
    name, content, dtype, message = WRONG[case]
    mine = folder(stages, tmp_path, dtype)
    assert mine.end == 0
    if content.startswith(b"npy"):
        np.save(mine.path / name, np.array(json.loads(content[3:]), int if content == b"npy[]" else None))
    else:
        (mine.path / name).write_bytes(content)
    with pytest.raises(PlumblineError, match=message):
        mine.documents()
    assert not mine.out.exists()


def test_two_kinds_of_files_are_refused(stages: Stages, tmp_path: Path) -> None:
    mine = folder(stages, tmp_path)
    FORMATS["uint16"][1](mine.path / "a.bin", [0, 1])
    FORMATS["header"][1](mine.path / "b.bin", [0, 1])
    with pytest.raises(PlumblineError, match=r"b\.bin.*header.*a\.bin"):
        mine.documents()
    (mine.path / "b.bin").unlink()
    FORMATS["npy int64"][1](mine.path / "c.npy", [0, 1])
    with pytest.raises(PlumblineError, match=r"\*\.npy files \(a\.bin, c\.npy\)"):
        mine.documents()
    (mine.path / "c.npy").rename(mine.path / "c.txt")
    with pytest.raises(PlumblineError, match=r"has both \*\.txt and \*\.bin files"):
        mine.documents()


@pytest.mark.parametrize("end", [0, 5])
def test_a_file_of_four_bytes_an_id_is_not_read_as_one_of_two(stages: Stages, tmp_path: Path, end: int) -> None:
    """Every second id is 0 then, which is an entry of every vocabulary and, where it ends documents, an end."""
    ids = [7, 8, 9, 300, end] * 30
    mine = dataclasses.replace(folder(stages, tmp_path), end=end)
    FORMATS["uint32"][1](mine.path / "a.bin", ids)
    with pytest.raises(PlumblineError, match=r"dtype: uint16.*a\.bin is 0, .*`dtype: uint32`"):
        mine.documents()
    assert not mine.out.exists()
    FORMATS["uint16"][1](mine.path / "a.bin", [0, *ids, 300, 0, 9] + [end, 0] * 100)
    mine.documents("--validation-percent", "50")
    FORMATS["uint16"][1](mine.path / "a.bin", ids)
    with pytest.raises(PlumblineError, match=r"a\.bin: id \d+ at position 0.*entry"):
        dataclasses.replace(mine, dtype="uint32").documents()


def test_a_file_that_changed_since_it_was_cut_is_named(stages: Stages, tmp_path: Path) -> None:
    mine = folder(stages, tmp_path)
    path = mine.path / "a.bin"
    ids = join_rows(texts(stages), mine.end)
    FORMATS["uint16"][1](path, ids)
    mine.documents("--validation-percent", "20")
    mine.tokens("train")
    ids[100:200] = [5] * 100
    FORMATS["uint16"][1](path, ids)
    with pytest.raises(PlumblineError, match=r"a\.bin: ids \d+ to \d+ are not those that .*train\.jsonl was made from"):
        mine.tokens("train")
    path.unlink()
    with pytest.raises(PlumblineError, match=r"a\.bin: ids \d+ to \d+ are not those"):
        mine.tokens("train")
    (mine.out / "train.jsonl").write_text('{"id": "a", "source": "s", "text": "t"}\n')
    (mine.out / "documents.json").unlink()  # which would say that it is another file
    with pytest.raises(PlumblineError, match=r"byte 0: not a document.*'tokens'"):
        mine.tokens("train")


def test_the_end_of_documents_may_be_any_entry(tmp_path: Path) -> None:
    """Also of a tokenizer that has no <|endoftext|>, or another one for something else; ids may have gaps."""
    encoder = tokenizers.Tokenizer(tokenizers.models.WordLevel({"<s>": 0, "a": 1, "b": 2, "z": 9}, unk_token="a"))
    encoder.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "in").mkdir()
    mine = Folder(path=tmp_path / "in", tokenizer=tmp_path / "tokenizer.json", dtype="uint16", end=2)
    FORMATS["uint16"][1](mine.path / "a.bin", [2, 1, 9, 2, 0, 2])
    FORMATS["uint16"][1](mine.path / "val.bin", [1, 2])
    mine.documents()
    assert sorted(split_rows(mine.tokens("train").tolist(), 2)) == [(), (0, 2), (1, 9, 2)]
    with pytest.raises(PlumblineError, match=r"local\.document_end: 10.*not an entry.*to 9"):
        Folder(path=mine.path, tokenizer=mine.tokenizer, dtype="uint16", end=10).documents()
    with pytest.raises(PlumblineError, match=r"there is no entry <\|endoftext\|>"):
        _ = Tokenizer(mine.tokenizer).eot


def test_a_given_tokenizer_is_copied_or_refused(stages: Stages, tmp_path: Path) -> None:
    copy = tmp_path / "tokenizer.json"
    args = [
        "given",
        "--corpus",
        "mine",
        "--tokenizer-file",
        str(stages.tokenizer),
        "--document-end",
        "0",
        "--out",
        str(copy),
    ]
    tokenizer.main([*args, "--vocabulary-size", "320"])
    assert copy.read_bytes() == stages.tokenizer.read_bytes()
    with pytest.raises(PlumblineError, match=r"mine\.yaml.*preset: 1024.*has 320"):
        tokenizer.main([*args, "--vocabulary-size", "1024"])


def require(root: Path, **facts: Any) -> None:
    files = [path for path in sorted(root.iterdir()) if path.suffix in token_files.SUFFIXES]
    here: dict[str, Any] = {"kind": "given", "dtype": "", "document_end": None} | facts
    kind = here.pop("kind")
    token_files.require("mine", "smoke", kind, root, files, **here)


def test_what_the_corpus_file_has_to_say(tmp_path: Path) -> None:
    """Asked when a plan is made: nothing is guessed, and nothing that is stated is passed over."""
    at = re.escape("config/corpora/mine.yaml: ")
    with pytest.raises(PlumblineError, match=rf"^{at}local\.document_end: .* holds no token files"):
        require(tmp_path, kind="gpt2", document_end=0)
    with pytest.raises(PlumblineError, match=rf"^{at}local\.dtype: .* holds no token files"):
        require(tmp_path, kind="gpt2", dtype="uint16")
    with pytest.raises(PlumblineError, match=rf"^{at}presets\.smoke\.tokenizer\.kind: given: .* holds none"):
        require(tmp_path)
    require(tmp_path, kind="byte_level_bpe")
    (tmp_path / "a.bin").write_bytes(b"\0\0\1\0")
    with pytest.raises(PlumblineError, match=rf"^{at}local\.document_end: missing; .*\(a\.bin\).*write `document_end:"):
        require(tmp_path)
    with pytest.raises(PlumblineError, match=rf"^{at}presets\.smoke\.tokenizer\.kind: byte_level_bpe: .*write `given`"):
        require(tmp_path, kind="byte_level_bpe", document_end=0)
    with pytest.raises(PlumblineError, match=rf"^{at}presets\.smoke\.tokenizer\.kind: .*tokenizer\.j"):
        require(tmp_path, document_end=0)
    with pytest.raises(PlumblineError, match=rf"^{at}local\.dtype: missing; a\.bin .* ends without a type: write"):
        require(tmp_path, kind="gpt2", document_end=0)
    require(tmp_path, kind="gpt2", document_end=0, dtype="uint16")
    (tmp_path / "a.bin").write_bytes(encode(20240520, 1, "<u2", [0]))
    require(tmp_path, kind="gpt2", document_end=0)
