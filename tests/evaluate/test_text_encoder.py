"""A memory of words gives the tokenizer's own ids."""

from __future__ import annotations

import pytest
from tokenizers import Tokenizer, pre_tokenizers

from plumbline.data.word_encoder import WordEncoder
from plumbline.evaluate.text_encoder import TextEncoder

from .conftest import prose


@pytest.mark.parametrize("exact", [True, False])
def test_ids_are_the_tokenizers_own(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch, exact: bool) -> None:
    """Of texts with its special token, too, and of a tokenizer whose tokens are not those of words."""
    encode = WordEncoder.encode
    copy = Tokenizer.from_str(tokenizer.to_str())
    if not exact:
        copy.pre_tokenizer = pre_tokenizers.Metaspace()
    remembered = []
    monkeypatch.setattr(WordEncoder, "encode", lambda *inputs: remembered.append(inputs) or encode(*inputs))
    texts = TextEncoder(copy)
    inputs = [*prose(2), "", " a  b\n", "Harbour<|endoftext|> lantern", "Harbour lantern\u00a0meadow"]
    for _ in range(2):  # the second time from memory
        assert texts.encode(inputs) == [copy.encode(text, add_special_tokens=False).ids for text in inputs]
    assert bool(remembered) is exact
    assert copy.token_to_id("<|endoftext|>") in texts.encode(inputs)[-2]
