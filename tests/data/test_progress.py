"""What a person sees of long work."""

from __future__ import annotations

import io
import sys

import pytest

from plumbline.data import progress
from plumbline.data.progress import ProgressCounter


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_log_gets_a_plain_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with ProgressCounter("pack train", "sequences", 400) as counter:
        for _ in range(12):
            now[0] += 1
            counter.add(10)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "pack train:  12% 50/400 [00:05<00:35, 10.00 sequences/s]",
        "pack train:  25% 100/400 [00:10<00:30, 10.00 sequences/s]",
    ]


def test_a_terminal_gets_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with ProgressCounter("documents", "documents") as counter:
        for _ in range(30):
            counter.add()
    assert "\rdocuments: 30 documents" in terminal.getvalue()
    assert terminal.getvalue().endswith("\n")
