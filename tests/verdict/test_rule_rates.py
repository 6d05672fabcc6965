"""A rule of somebody else's: its measured rates are those of benchmarks/experiment_rules.md and loop_rules.md, and what
answers neither keep nor discard is an error."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from plumbline.core.errors import PlumblineError
from plumbline.verdict import rule_rates
from plumbline.verdict.rule_rates import MadeUpRuns, Share, load_rule, measure_lines, measure_sessions, measure_single

RUNS = MadeUpRuns(mean=3.0, sigma=0.01, higher=False, baseline_runs=3, candidate_runs=3)
#: autoresearch-mlx: of all pairs of resampled means of three runs 95 in 100 are better.
BOOTSTRAP = """\
import numpy as np
from itertools import product
DRAWS = np.array(list(product(range(3), repeat=3)))
def decide(baseline, candidate):
    base, own = (np.array(arm)[DRAWS].mean(axis=1) for arm in (baseline, candidate))
    return (own[:, None] < base).mean() >= 0.95
"""
#: autoresearch: keep if better.
GREEDY = """\
import json, sys
arms = json.load(sys.stdin)
better = min if not arms["higher_is_better"] else max
sys.exit(0 if better(arms["baseline"][0], arms["candidate"][0]) == arms["candidate"][0] else 10)
"""


def is_within(expected: float, share: Share) -> bool:
    low, high = share.interval
    return low <= expected <= high


def test_a_function_has_the_rates_of_the_pages(tmp_path: Path) -> None:
    (tmp_path / "rule.py").write_text(BOOTSTRAP)
    rule, is_function = load_rule(f"{tmp_path}/rule.py:decide", metric="loss", higher=False)
    shares = measure_single(rule, RUNS, most=2000)
    assert is_function and [share.tried for share in shares.values()] == [2000] * 3
    for gain, expected in zip(rule_rates.GAINS, (0.126, 0.487, 0.862)):  # experiment_rules.md
        assert is_within(expected, shares[gain]), (gain, shares[gain])
    sessions = measure_sessions(rule, RUNS, most=60)
    for mean, error, expected in (  # loop_rules.md: six gains of 2 sigma, the others do nothing
        (sessions.real, sessions.real_error, 3.8),
        (sessions.nothing, sessions.nothing_error, 1.6),
    ):
        assert abs(mean - expected) < 2.5 * error + 0.05 and error < 0.3, sessions


def test_a_script_has_them_by_its_exit_code_and_sees(tmp_path: Path) -> None:
    script = tmp_path / "rule.py"
    script.write_text(GREEDY)
    for higher in (False, True):
        rule, is_function = load_rule(f"{sys.executable} -S -E {script}", metric="loss", higher=higher)
        runs = MadeUpRuns(mean=3.0, sigma=0.01, higher=higher, baseline_runs=1, candidate_runs=1)
        shares = measure_single(rule, runs, most=12, at_once=2)
        assert not is_function
        for gain, expected in zip(rule_rates.GAINS, (0.501, 0.760, 0.922)):
            assert is_within(expected, shares[gain]), (higher, gain, shares[gain])
        assert shares[0.0].kept < shares[2.0].kept


def test_a_script_that_is_given_all_changes_at_once_answers_each(tmp_path: Path) -> None:
    script = tmp_path / "rule.py"
    script.write_text(
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    arms = json.loads(line)\n"
        "    print('keep' if arms['candidate'][0] < arms['baseline'][0] else 'discard')\n"
    )
    shares = measure_lines(f"{sys.executable} -S -E {script}", RUNS, metric="loss")
    assert all(is_within(expected, shares[gain]) for gain, expected in zip(rule_rates.GAINS, (0.501, 0.760, 0.922)))
    assert shares[0.0].tried == 2000
    for text, message in (("print('keep')", "after 1 answers"), ("print('perhaps')", "'perhaps' is neither")):
        script.write_text(text)
        with pytest.raises(PlumblineError, match=message):
            measure_lines(f"{sys.executable} -S -E {script}", RUNS, metric="loss", most=2)


@pytest.mark.parametrize(
    ("code", "answer"),
    [
        ("print('thinking'); print('Keep')", True),
        ("print('discard')", False),
        ("import sys; sys.exit(11)", False),
        ("pass", True),
        ("print('maybe')", "neither keep nor discard"),
        ("print('keep'); import sys; sys.exit(10)", "is no keep"),
        ("raise KeyError('no such arm')", "exit code 1: KeyError: 'no such arm'"),
        ("import os; os.kill(os.getpid(), 9)", "exit code -9"),
        ("import time; time.sleep(60)", "no answer in"),
    ],
)
def test_a_command_answers_by_word_or_exit_code(monkeypatch: pytest.MonkeyPatch, code: str, answer: bool | str) -> None:
    monkeypatch.setattr(rule_rates, "ANSWER_SECONDS", 1.0 if "sleep" in code else 30.0)
    rule, _ = load_rule(f'{sys.executable} -S -E -c "{code}"', metric="loss", higher=False)
    if isinstance(answer, bool):
        assert rule([1.0], [2.0]) is answer
        return
    with pytest.raises(PlumblineError, match=answer):
        measure_single(rule, RUNS, most=1)


def test_what_cannot_be_called_is_named(tmp_path: Path) -> None:
    (tmp_path / "rules.py").write_text(
        "def worse(baseline, candidate):\n    return 0.3\ndef broken(a, b):\n    1 / 0\n"
    )
    for text, message in (
        ("./no-such-rule --fast", "cannot be run: No such file"),
        (f"{tmp_path}/no.py:decide", "cannot be loaded"),
        ("no_such_module:decide", "cannot be loaded"),
        (f"{tmp_path}/rules.py:other", "has no function other"),
        (f"{tmp_path}/rules.py:worse", "returned 0.3"),
        (f"{tmp_path}/rules.py:broken", "ZeroDivisionError"),
        (" ", "names no command"),
        ("python 'rule.py", "no closing quotation"),
    ):
        with pytest.raises(PlumblineError, match=message):
            measure_single(load_rule(text, metric="loss", higher=False)[0], RUNS, most=1)


def test_the_interval_of_a_share_is_exact() -> None:
    assert Share(0, 20).interval == (0.0, pytest.approx(0.16843, abs=1e-5))
    assert Share(20, 20).interval == (pytest.approx(0.83157, abs=1e-5), 1.0)
