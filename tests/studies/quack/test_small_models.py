"""What the page of small models tells beside the verdicts comes out of the record's runs by a few lines of numpy."""

from __future__ import annotations

import io
import json
import tarfile
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

ROOT = Path(__file__).resolve().parents[3]
(RECORD,) = ROOT.glob("records/evening-quack-*/bundle.tar.xz")
PAGE = (ROOT / "studies/quack/small_models.md").read_text(encoding="utf-8").partition("## Beside the verdicts")[2]
WORDS = " ".join(PAGE.split())
DEFAULT, QUACK, QK_NORM = "default.eta_0.003", "quack.eta_0.003-tau_1", "qk_norm.eta_0.003"
#: Arm -> its method at each multiple of 0.003, from the smallest rate to the largest; how many seeds it has.
METHODS = {
    "default": [f"{DEFAULT}-rate_0.316", DEFAULT, f"{DEFAULT}-rate_3.16", "default.eta_0.03", f"{DEFAULT}-rate_31.6"],
    "QuacK": [f"{QUACK}-rate_0.316", QUACK, f"{QUACK}-rate_3.16", "quack.eta_0.03-tau_1", f"{QUACK}-rate_31.6"],
    "QK norm": [QK_NORM + end for end in ("-rate_0.316", "", "-rate_3.16", "-rate_10", "-rate_31.6")],
}
SEEDS = {"default": 9, "QuacK": 9, "QK norm": 6}


@cache
def read_record() -> dict[str, bytes]:
    """`runs/METHOD/sSEED/FILE`, or `probes/...` -> content, of the size that is judged."""
    files = {}
    with tarfile.open(RECORD) as bundle:
        for member in bundle:
            folder, inside, path = member.name.partition("/quack/mha_small/")
            if inside and path.endswith(("outcome.json", "probes.parquet")):
                content = bundle.extractfile(member)
                assert content is not None
                files[f"{folder.rpartition('/')[2]}/{path}"] = content.read()
    return files


def read_seeds(method: str, count: int) -> np.ndarray:
    """Final losses of a method's first seeds."""
    outcomes = [json.loads(read_record()[f"runs/{method}/s{101 + n}/outcome.json"]) for n in range(count)]
    return np.array([outcome["validation_loss"] for outcome in outcomes])


@cache
def read_losses(arm: str) -> np.ndarray:
    """Final losses: a row for each rate, a column for each seed."""
    return np.array([read_seeds(method, SEEDS[arm]) for method in METHODS[arm]])


def bound_mean(gains: np.ndarray) -> tuple[float, float]:
    margin = stats.t.isf(0.025, len(gains) - 1) * gains.std(ddof=1) / np.sqrt(len(gains))
    return gains.mean() - margin, gains.mean() + margin


def measure_sensitivity(losses: np.ndarray) -> np.ndarray:
    return losses.mean(axis=0) - losses.min(axis=0)


def test_the_table_of_losses_is_the_records() -> None:
    means = {arm: read_losses(arm).mean(axis=1) for arm in METHODS}
    for place, rate in enumerate(("0.00095", "0.003", "0.0095", "0.03", "0.095")):
        assert f"| {rate} | {' | '.join(f'{means[arm][place]:.3f}' for arm in METHODS)} |" in PAGE
    spreads = [losses.std(axis=1, ddof=1) for losses in map(read_losses, METHODS)]
    assert f"{np.min(np.concatenate(spreads)):.3f} to {np.max(np.concatenate(spreads)):.3f}" in WORDS


def test_no_run_of_the_size_diverged() -> None:
    ends = [json.loads(content)["outcome"] for path, content in read_record().items() if path.endswith("outcome.json")]
    assert ends == ["completed"] * 132 and "No run diverged" in WORDS


def test_what_is_told_of_qk_norm_is_the_records() -> None:
    default, quack, qk_norm = (read_losses(arm)[:, :6] for arm in METHODS)
    best = {name: losses.min(axis=0) for name, losses in (("default", default), ("QuacK", quack), ("norm", qk_norm))}
    low, high = bound_mean(best["QuacK"] - best["norm"])
    assert f"(QuacK above it by {low:.3f} to {high:.3f})" in WORDS
    low, high = bound_mean(best["default"] - best["norm"])
    assert f"{low:.3f} to {high:.3f} above at 0.03" in WORDS and high < 0.05
    lowest = np.array([losses.mean(axis=1) for losses in (default, quack, qk_norm)]).argmin(axis=0)
    assert list(lowest[3:]) == [2, 2] and 2 not in lowest[:3]


def test_what_is_told_of_the_fixed_rate_is_the_records() -> None:
    follows, fixed = (read_seeds(f"{arm}.eta_0.03-tau_0.1", 6) for arm in ("quack", "ablation"))
    low, high = bound_mean(fixed - follows)
    assert f"to {high:.3f} nats, at rate 0.03" in WORDS and low < 0
    above = [follows.mean() - read_losses(arm)[3, :6].mean() for arm in ("QuacK", "default")]
    said = f"ends at {follows.mean():.3f}, {above[0]:.3f} above tau 1 and {above[1]:.3f} above the default"
    assert said in WORDS


def test_what_is_told_of_the_largest_rate_is_the_records() -> None:
    default, quack = read_losses("default"), read_losses("QuacK")
    for losses, word in ((quack, "QuacK run ends"), (default, "default")):
        above = losses[4] - losses.min(axis=0)
        assert f"each {word} {above.min():.3f} to {above.max():.3f}" in WORDS
    gains = measure_sensitivity(default[:4]) - measure_sensitivity(quack[:4])
    low, high = bound_mean(gains)
    assert f"({gains.mean():.3f}, {low:.3f} to {high:.3f})" in WORDS
    lower = (default - quack)[:2]
    assert (lower > 0).all() and f"in every seed, by {lower.mean():.3f}" in WORDS


def test_as_stated_before_the_pilot_the_verdicts_are_the_same() -> None:
    """By six seeds, and a target of 0.05 for the change of logits."""
    default, quack = (read_losses(arm)[:, :6] for arm in ("default", "QuacK"))
    low, high = bound_mean(measure_sensitivity(default) - measure_sensitivity(quack))
    assert 0 < low < high < 0.03
    assert bound_mean(default.min(axis=0) - quack.min(axis=0)) == (
        pytest.approx(-0.0075, abs=1e-4),
        pytest.approx(0.0234, abs=1e-4),
    )
    changes = [np.array([read_change(METHODS[arm][3], 101 + n) for n in range(9)]) for arm in ("QuacK", "default")]
    assert f"logits by {changes[0].mean():.2f} with QuacK and by {changes[1].mean():.2f} without" in WORDS
    low, high = bound_mean((changes[1] - changes[0])[:6])
    assert 0 < low < high < 0.05


def read_change(method: str, seed: int) -> float:
    frame = pd.read_parquet(io.BytesIO(read_record()[f"probes/{method}/s{seed}/probes.parquet"]))
    return float(frame[(frame["probe"] == "logit_change") & (frame["fraction"] == 1.0)]["value"].mean())
