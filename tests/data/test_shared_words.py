"""Items of which 13 words in a row stand in a training text are counted, whatever their case and punctuation."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from plumbline.data import shared_words

ROW = "the quick brown fox jumps over one lazy dog and then sleeps well"  # 13 words


def write(path: Path, *texts: str) -> Path:
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return path


@pytest.mark.parametrize(
    ("item", "text", "counts"),
    [
        (ROW, f"Before. {ROW}, after", (1, 1)),
        (ROW.upper(), f"{ROW.replace(' ', ', ')}!", (1, 1)),
        (f"{ROW} again", f"a {ROW}", (1, 1)),
        (f"x {ROW}", f"{ROW} y", (1, 1)),
        (ROW, ROW.replace("lazy", "idle"), (1, 0)),
        (ROW.removesuffix(" well"), ROW, (0, 0)),
        (ROW, ROW.removesuffix(" well"), (1, 0)),
    ],
)
def test_thirteen_words_in_a_row_count(item: str, text: str, counts: tuple[int, int], tmp_path: Path) -> None:
    counted = shared_words.count([{"question": "q", "choices": {"text": ["w", item]}}], write(tmp_path / "t", text))
    assert (counted.compared, counted.shared) == counts


def test_an_item_counts_once_as_its_pairs_of_texts_do(tmp_path: Path) -> None:
    rng = random.Random(1)

    def draw(length: int) -> list[str]:
        return rng.choices(["a", "b", "c"], k=length)

    items = [" ".join(draw(rng.randint(5, 30))) for _ in range(80)]
    texts = [" ".join(draw(40)) for _ in range(300)] + [items[3] + " " + items[3]]
    rows = {
        " ".join(words[at : at + 13]) for words in (text.split() for text in texts) for at in range(len(words) - 12)
    }
    expected = {
        number
        for number, words in enumerate(item.split() for item in items)
        if any(" ".join(words[at : at + 13]) in rows for at in range(len(words) - 12))
    }
    counted = shared_words.count([{"text": item} for item in items], write(tmp_path / "t", *texts))
    assert 0 < len(expected) < len(items) and counted.shared == len(expected)
    assert counted.compared == sum(len(item.split()) > 12 for item in items) and counted.items == 80


def test_of_a_larger_corpus_a_part_is_read_and_said_to_be(tmp_path: Path) -> None:
    texts = write(tmp_path / "t", "no", "not", ROW)
    assert shared_words.count([ROW], texts).describe() == "1 of 1 items have 13 words in a row with a training text"
    part = shared_words.count([ROW, "short"], texts, most_bytes=16)
    assert part.describe().startswith("0 of 1 items") and part.describe().endswith(
        f"; 1 more are shorter; {100 * 31 / texts.stat().st_size:.2g} % of the training texts were read"
    )
