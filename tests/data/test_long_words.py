"""Words without end are cut before a tokenizer is trained, and counted; no other text is touched."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import pre_tokenizers

from plumbline.core.fingerprint_file import read_verified
from plumbline.data import long_words
from plumbline.data.long_words import LONGEST_WORD, WordCutter

PRE_TOKENIZER = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)


def measure_words(text: str) -> list[int]:
    return [end - begin for _, (begin, end) in PRE_TOKENIZER.pre_tokenize_str(text)]


RUNS = st.lists(st.tuples(st.sampled_from("abé世²1'-_ \n\t\u00a0\u2028\u0301"), st.integers(1, 12)), max_size=8)


@given(runs=RUNS, longest=st.integers(2, 9))
def test_no_word_is_longer_than_the_bound(runs: list[tuple[str, int]], longest: int) -> None:
    text, cutter = "".join(character * count for character, count in runs), WordCutter()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(long_words, "LONGEST_WORD", longest)
        parts = list(cutter.cut([text]))
    assert "".join(parts) == text
    assert cutter.words == sum(size > longest for size in measure_words(text))
    assert max([0, *(size for part in parts for size in measure_words(part))]) <= longest
    assert cutter.words or parts == [text]


def test_a_word_as_long_as_the_bound_is_whole() -> None:
    text = f"ab {'x' * (LONGEST_WORD - 1)} {'=' * (LONGEST_WORD - 1)}\n"
    assert list(WordCutter().cut([text])) == [text]
    assert len(list(WordCutter().cut([f"{text}{'=' * (LONGEST_WORD + 1)}"]))) == 2


def test_a_document_of_one_word_trains_a_tokenizer(tmp_path: Path) -> None:
    """Of 3 MB; uncut, twice the characters take four times as long, and these more than an hour."""
    documents, out = tmp_path / "train.jsonl", tmp_path / "tokenizer.json"
    documents.write_text(json.dumps({"id": "key held down", "source": "s", "text": "a" * 3_000_000}) + "\n")
    arguments = ["--training-documents", str(documents), "--vocabulary-size", "265", "--out", str(out)]
    command = [sys.executable, "-m", "plumbline.data.tokenizer", "train", *arguments]
    process = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    assert "1 words of more than 4,096" in process.stdout
    assert read_verified(out)["words_cut"] == 1
