"""A memory of words gives the tokens of the library, byte for byte."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import models, normalizers, pre_tokenizers

from plumbline.data import word_encoder
from plumbline.data.tokenizer import SEPARATOR, Tokenizer
from plumbline.data.word_encoder import WordEncoder, exact
from tests.data.conftest import Stages

_CACHE: dict[str, Tokenizer] = {}


def both(stages: Stages, texts: list[str]) -> tuple[list[bytes], list[bytes]]:
    """By the memory, which all examples share, and by the library."""
    tokenizer = _CACHE.setdefault(str(stages.tokenizer), Tokenizer(stages.tokenizer))
    return tokenizer.word_encoder.encode(texts), [
        np.array(tokenizer.encode(text), dtype=tokenizer.dtype).tobytes() for text in texts
    ]


#: Whitespace of many kinds, contractions, digits, marks, letters of one to four bytes.
_CHARACTERS = "ab1é世'sS._ \t\n\r\v\f\x1c\x1f\x85\u00a0\u1680\u180e\u2003\u200b\u2028\u3000\ufeff\U0001f600"


@given(texts=st.lists(st.text(st.sampled_from(_CHARACTERS), max_size=60), max_size=4))
def test_any_whitespace_beside_anything(stages: Stages, texts: list[str]) -> None:
    actual, expected = both(stages, texts)
    assert actual == expected


@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=200))
def test_any_text(stages: Stages, text: str) -> None:
    actual, expected = both(stages, [text, f"{text} {text}\n{text}"])
    assert actual == expected


@given(text=st.text(st.sampled_from("ab. \n\t"), max_size=40))
def test_runs_of_blanks_and_line_ends(stages: Stages, text: str) -> None:
    """Whitespace except for its last character is one pre-token, so that a text is cut only where it begins."""
    actual, expected = both(stages, [text, f"{text} a", f"b\n{text}"])
    assert actual == expected


def test_a_vocabulary_that_lacks_bytes_is_asked_word_by_word() -> None:
    """What is in none of its entries it leaves out, so that nothing tells which word a token is of."""
    tokenizer = tokenizers.Tokenizer(models.BPE(vocab={"a": 0, "Ġ": 1, "Ġa": 2}, merges=[("Ġ", "a")]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.encode_special_tokens = True
    memory = WordEncoder(tokenizer, np.dtype("<u2"))
    assert exact(tokenizer)
    assert np.frombuffer(memory.encode([" ab a b aba"])[0], "<u2").tolist() == [2, 2, 1, 2, 0]


def test_whatever_the_library_takes_for_whitespace(stages: Stages) -> None:
    """Every character up to the last that any version of Unicode calls whitespace: before two blanks and a letter
    pre-tokenisation shows what it takes it for."""
    split = tokenizers.Tokenizer.from_file(str(stages.tokenizer)).pre_tokenizer.pre_tokenize_str
    space = [character for character in map(chr, range(0x3001)) if split(f"a{character}  b")[1][1] == (1, 3)]
    assert {" ", "\t", "\u00a0", "\u3000"} <= set(space) and len(space) < 40
    for character in space:
        actual, expected = both(stages, [f"a{character}  b{character} c {character}d"])
        assert actual == expected, hex(ord(character))


def test_a_separator_in_a_text_and_a_full_memory(stages: Stages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_encoder, "MOST", 3)
    for text in (f"before {SEPARATOR} after", "one two three four five", "one six", ""):
        actual, expected = both(stages, [text, text])
        assert actual == expected


class Listening:
    """A tokenizer that notes the texts that it has to encode."""

    def __init__(self, tokenizer: tokenizers.Tokenizer, log: list[str]) -> None:
        self.tokenizer, self.asked = tokenizer, log

    def __getattr__(self, name: str) -> Any:
        return getattr(self.tokenizer, name)

    def encode_batch_fast(self, texts: list[str], **options: Any) -> list[tokenizers.Encoding]:
        self.asked += texts
        return self.tokenizer.encode_batch_fast(texts, **options)


def test_texts_without_blanks_are_not_remembered(stages: Stages) -> None:
    """Chinese, or base64: what never comes again would fill the memory with whole documents."""
    tokenizer = tokenizers.Tokenizer.from_file(str(stages.tokenizer))
    tokenizer.encode_special_tokens = True
    encoded: list[str] = []
    memory = WordEncoder(Listening(tokenizer, encoded), np.dtype("<u2"))  # type: ignore[arg-type]
    texts = [f"{'长' * 500}{number} ab {'x' * word_encoder.LONGEST}" for number in range(20)]
    tokens = [np.frombuffer(ids, "<u2").tolist() for ids in memory.encode(texts)]
    assert tokens == [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
    first = "".join(encoded)
    memory.encode(texts)
    again = "".join(encoded).removeprefix(first)
    assert " ab" in first and " ab" not in again
    assert all(word in again for text in texts for word in text.split() if word != "ab")


@pytest.mark.parametrize("change", ["normalizer", "pre_tokenizer", "special", "added"])
def test_other_tokenizers_encode_texts_whole(stages: Stages, change: str) -> None:
    tokenizer = tokenizers.Tokenizer.from_file(str(stages.tokenizer))
    tokenizer.encode_special_tokens = True
    assert exact(tokenizer)
    if change == "normalizer":
        tokenizer.normalizer = normalizers.Replace(" b", "_")
    elif change == "pre_tokenizer":
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    elif change == "special":
        tokenizer.encode_special_tokens = False
    else:
        tokenizer.add_tokens(["a b"])
    assert not exact(tokenizer)
    tokens = WordEncoder(tokenizer, np.dtype("<u2")).encode(["a b", f"a {SEPARATOR} a"])
    expected = [tokenizer.encode(text, add_special_tokens=False).ids for text in ("a b", f"a {SEPARATOR} a")]
    assert [np.frombuffer(ids, "<u2").tolist() for ids in tokens] == expected
