"""Counts exact copies among the documents of a corpus, within each side of the split and across it, and leaves them out
where that is requested.

Compared are the lines of train.jsonl and validation.jsonl, a line being a document or, where documents are cut, a piece
of one; of token files, what lies between two document ends, as text. Two are copies if their texts are the same byte
for byte. Near copies are not looked for.

While the files are written, 16 bytes of BLAKE2b of each text are put next to them: 16 bytes of disk a document, 1.6 GB
of a hundred million, and one byte of memory where copies are left out. They are compared in parts by their first bits,
some `PART_LINES` at a time, so that the rest of the memory (some 200 MB) depends on no corpus's size; only where one
text is most of a corpus, its copies are in one part.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from plumbline.core.errors import PlumblineError
from plumbline.core.files import open_atomically
from plumbline.data.document import name_key
from plumbline.data.split import read_lines

#: What is done about copies: nothing but to count them, or each text stays once, one that is on both sides on this one.
CopyRule = Literal["keep", "once_in_train", "once_in_validation"]
RULES: tuple[str, ...] = get_args(CopyRule)

#: Lines that are compared at a time, and hashes that are looked up in one go.
PART_LINES, _BLOCK = 1 << 21, 1 << 20
#: Begins the name of the folder of the hashes, in that of the documents.
SCRATCH = ".copies."
_SPLITS = ("train", "validation")


@dataclass(frozen=True, kw_only=True, slots=True)
class CopyCount:
    """The copies of a corpus.

    Attributes:
        lines: of each side.
        repeated: of each side, lines whose text an earlier line of that side has.
        shared: of each side, lines whose text the other side has too.
        left_out: of each side, which lines the rule leaves out (N); empty if it keeps all.
    """

    rule: CopyRule
    lines: dict[str, int]
    repeated: dict[str, int]
    shared: dict[str, int]
    left_out: dict[str, np.ndarray]

    def facts(self, unit: str) -> dict[str, Any]:
        """What documents.json states; `unit`: what a line is."""
        sides = {
            split: {
                unit: self.lines[split],
                "repeated_on_this_side": self.repeated[split],
                "also_on_the_other_side": self.shared[split],
                "left_out": int(self.left_out[split].sum()) if self.left_out else 0,
            }
            for split in _SPLITS
        }
        return {"rule": self.rule, "compared": f"{unit}, by their whole text"} | sides


def describe(corpus: str, facts: dict[str, Any]) -> str:
    """What documents.json states of copies, in a sentence; empty if it is older and has no such entry."""
    copies = facts.get("copies")
    if not isinstance(copies, dict):
        return ""
    unit = next(name for name in copies["train"] if name in ("documents", "pieces"))
    train, held_out = copies["train"], copies["validation"]
    message = (
        f"copies: {held_out['also_on_the_other_side']:,} of {held_out[unit]:,} held-out {unit} are in train as well; "
        f"{train['repeated_on_this_side']:,} of {train[unit]:,} in train and {held_out['repeated_on_this_side']:,} "
        "held-out ones repeat another one there"
    )
    if copies["rule"] != "keep":
        left_out = train["left_out"] + held_out["left_out"]
        return f"{message}; {left_out:,} were left out ({name_key(corpus, 'copies')}: {copies['rule']})"
    if not train["repeated_on_this_side"] + held_out["repeated_on_this_side"] + held_out["also_on_the_other_side"]:
        return message
    return (
        f"{message}; all are kept ({name_key(corpus, 'copies')}: once_in_train or once_in_validation leaves them out)"
    )


def count(hash_files: Mapping[str, Path], rule: CopyRule) -> CopyCount:
    """Count the copies on both sides, and find which of them a rule leaves out.

    Args:
        hash_files: of each side, the file of its lines' hashes (`split.hash_text`), one after another.
    """
    first, second = ("validation", "train") if rule == "once_in_validation" else _SPLITS
    repeated, shared = dict.fromkeys(_SPLITS, 0), dict.fromkeys(_SPLITS, 0)
    hashes = {split: _map_hashes(hash_files[split]) for split in _SPLITS}
    lines = {split: len(hashes[split]) for split in _SPLITS}
    left_out = {split: np.zeros(lines[split], dtype=bool) for split in _SPLITS} if rule != "keep" else {}
    bits = max(sum(lines.values()) // PART_LINES, 0).bit_length()
    for part in range(1 << bits):
        places = {split: _select_part(hashes[split], bits, part) for split in _SPLITS}
        # The side that keeps a text first, and each in the order of its file: the sort is stable.
        values = np.concatenate([np.asarray(hashes[split][places[split]]) for split in (first, second)])
        order = np.lexsort((values[:, 1], values[:, 0]))
        values = values[order]
        begins = np.ones(len(values), dtype=bool)
        begins[1:] = (values[1:] != values[:-1]).any(axis=1)
        group, of_first = np.cumsum(begins) - 1, order < len(places[first])
        for split, mine in ((first, of_first), (second, ~of_first)):
            own = np.bincount(group[mine], minlength=int(begins.sum()))
            others = np.bincount(group[~mine], minlength=int(begins.sum()))
            repeated[split] += int(np.maximum(own - 1, 0).sum())
            shared[split] += int(own[others > 0].sum())
            if left_out:
                gone = order[mine & ~begins] - (0 if split == first else len(places[first]))
                left_out[split][places[split][gone]] = True
    return CopyCount(rule=rule, lines=lines, repeated=repeated, shared=shared, left_out=left_out)


def leave_out(folder: Path, copies: CopyCount, described: dict[str, dict[str, Any]], corpus: str) -> None:
    """Write the files again without the lines that the rule leaves out, and correct what is `described` of each side.

    Raises:
        PlumblineError: nothing would be left of a side.
    """
    for split, leaves in copies.left_out.items():
        if leaves.all():
            [other] = set(_SPLITS) - {split}
            both = copies.shared[other] == copies.lines[other]  # then the other rule leaves nothing of the other side
            remedy = f"keep them on this side (once_in_{split}), or give other texts"
            if both:
                remedy = "each text is on both sides: give more texts, or keep the copies (keep)"
            raise PlumblineError(
                f"{name_key(corpus, 'copies')}: {copies.rule}: every document of {split} is on the other side as well, "
                f"and none would be left; {remedy}"
            )
    for split, leaves in copies.left_out.items():
        if not leaves.any():
            continue
        facts, path, digest = described[split], folder / f"{split}.jsonl", hashlib.sha256()
        with open_atomically(path) as file, open(path, "rb") as before:
            for line, out in zip(read_lines(before), leaves):
                if out:
                    document = json.loads(line)
                    facts["text_bytes"] -= len(document["text"].encode())
                    facts["documents_of_source"][document["source"]] -= 1
                else:
                    file.write(line)
                    digest.update(line)
        facts["documents_of_source"] = {name: number for name, number in facts["documents_of_source"].items() if number}
        facts |= {"documents": facts["documents"] - int(leaves.sum()), "sha256": digest.hexdigest()}


def _map_hashes(file: Path) -> np.ndarray:
    """Map the hashes (N, 2) of a file, as two whole numbers each."""
    if not file.stat().st_size:  # nothing cannot be mapped
        return np.zeros((0, 2), dtype="<u8")
    return np.memmap(file, dtype="<u8", mode="r").reshape(-1, 2)


def _select_part(hashes: np.ndarray, bits: int, part: int) -> np.ndarray:
    """Places of the hashes whose first `bits` bits are `part`."""
    if not bits:
        return np.arange(len(hashes))
    return np.concatenate(list(_places(hashes, bits, part)) or [np.zeros(0, dtype=np.int64)])


def _places(hashes: np.ndarray, bits: int, part: int) -> Iterator[np.ndarray]:
    for start in range(0, len(hashes), _BLOCK):
        block = hashes[start : start + _BLOCK, 0] >> np.uint64(64 - bits)
        yield np.flatnonzero(block == part) + start
