"""What steers a terminal is taken out of what programs print, and nothing else."""

from __future__ import annotations

import time

import pytest

from plumbline.core.escape_sequences import LINE_END, decode


@pytest.mark.parametrize(
    ("printed", "text"),
    [
        (b"loss \x1b[32m2.5\x1b[0m", "loss 2.5"),
        (b"\x1b[1;38;5;12mloss\x1b[m \x1b[38:2::1:2:3m2.5\x1b[0K", "loss 2.5"),
        (b"loss \x9b31m2.5\x9b0m", "loss 2.5"),
        (b"loss \xc2\x9b31m2.5", "loss 2.5"),
        (b"\x1b]0;a title\x07loss 2.5", "loss 2.5"),
        (b"\x1b]8;;https://x.org/\xc3\xbc\x1b\\loss\x1b]8;;\x1b\\ 2.5", "loss 2.5"),
        (b"\x9d0;a title\x9closs 2.5", "loss 2.5"),
        (b"\x1bPq#0;2\x1b\\loss\x1b(B 2.5\x1b7\x1b=\x0f\x1bc", "loss 2.5"),
        (b"loss 2.5\x1b[3", "loss 2.5"),
        (b"lossy\b 3.1\b\b\b2.5", "loss 2.5"),
        ("Verlust für θ: 2,5 →".encode(), "Verlust für θ: 2,5 →"),
        ("验证 loss 2.5".encode("gbk"), "\ufffd\ufffd\u05a4 loss 2.5"),
        ("泟loss 2.5".encode("gbk"), "\ufffdloss 2.5"),
        (b"a\tb", "a\tb"),
    ],
)
def test_no_sequence_is_left_and_no_letter_is_lost(printed: bytes, text: str) -> None:
    assert decode(printed) == text


def test_a_move_of_the_cursor_ends_a_line() -> None:
    assert LINE_END.split(b"a\x1b[2K\x1b[1Gb\x1b[1A\rc\nd") == [b"a\x1b[2K", b"b", b"", b"c", b"d"]


def test_what_never_ends_takes_no_longer_than_it_is_long() -> None:
    began = time.monotonic()
    for begin in (b"\x1b[", b"\x1b]", b"\x9d", b"\xc2\x9d", b"\x1b[1;", b"\x1bP ", b"x\b"):
        decode(begin * 50_000)
    assert time.monotonic() - began < 2
