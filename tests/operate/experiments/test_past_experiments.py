"""What a name brings to a console is shown and does nothing there."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from plumbline.operate.experiments import past_experiments


def test_a_trainers_name_steers_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    row = {"group": "python a\u202eb\x1b[2J.py {flags}", "sigma": 0.1, "low": 0.05, "high": 0.3, "runs": 4, "arms": 1}
    row |= {"bank": 3, "resolves": dict.fromkeys(map(str, past_experiments.SEEDS), 0.2)}
    monkeypatch.setattr(past_experiments, "noise", lambda bank, beside: [row])
    place = SimpleNamespace(bank=lambda: SimpleNamespace(path="bank.jsonl"), first="plumbline try")
    assert past_experiments.print_noise(SimpleNamespace(json=False), place) == 0
    output = capsys.readouterr().out
    assert "\u202e" not in output and "\x1b" not in output and r"python a\u202eb\x1b[2J.py: sigma" in output
