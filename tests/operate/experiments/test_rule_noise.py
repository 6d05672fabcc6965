"""`plumbline noise --rule`: the made-up runs have the level, the noise and the direction of the bank's own."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from plumbline.core.errors import PlumblineError
from plumbline.operate.experiments.rule_noise import print_rule
from plumbline.verdict.decision.bank import Bank
from plumbline.verdict.decision.experiment import BASELINE, ArmRun

RULE = """\
def decide(baseline, candidate):
    assert (len(baseline), len(candidate)) == (2, 3)
    return sum(candidate) / 3 > sum(baseline) / 2
"""


def options(rule: str, *, lines: bool = False) -> argparse.Namespace:
    return argparse.Namespace(rule=rule, rule_runs="2,3", rule_lines=lines, json=True)


def test_rates_are_of_runs_like_the_banks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    bank = Bank(tmp_path / "runs.jsonl")
    monkeypatch.setattr("plumbline.verdict.rule_rates.MOST_OF_FUNCTION", 300)
    (tmp_path / "rule.py").write_text(RULE)
    rule = f"{tmp_path}/rule.py:decide"
    with pytest.raises(PlumblineError, match=r"no two.*method"):
        print_rule(options(rule), bank, metric="acc", higher=True)
    for seed, value in enumerate((70.0, 72.0, 74.0)):
        run = ArmRun(arm=BASELINE, seed=seed, value=value, run_id=str(seed), fingerprint="here")
        bank.append("trainer", "base", run)
    assert print_rule(options(rule), bank, metric="acc", higher=True) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["mean"], report["sigma"]) == (72.0, 2.0) and report["sessions"]["changes"] == 60
    shares = {change["gain_sigmas"]: change["share"] for change in report["changes"]}
    assert shares[0.0] == pytest.approx(0.5, abs=0.1) and shares[0.0] < shares[1.0] < shares[2.0]
    assert print_rule(options(rule), bank, metric="acc", higher=False) == 0
    lower = {change["gain_sigmas"]: change["share"] for change in json.loads(capsys.readouterr().out)["changes"]}
    assert lower[2.0] < 0.1, "a gain goes down, and the rule keeps what is higher"
    with pytest.raises(PlumblineError, match=r"--rule-lines.*command"):
        print_rule(options(rule, lines=True), bank, metric="acc", higher=True)
