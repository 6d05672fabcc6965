"""Every gain of the kept small.csv comes out of the record's probes by a few lines of numpy, which share nothing with
the code that judged it; so do the numbers that the page tells beside the verdicts."""

from __future__ import annotations

import io
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from plumbline.bundle import archive

ROOT = Path(__file__).resolve().parents[3]
RECORD = ROOT / "records/evening-key-norms-1d47efa/bundle.tar.xz"
SEEDS = range(101, 109)
#: Size -> its label, and how many layers it has.
SIZES = {"shallow": ("1.6M", 6), "deep": ("2.7M", 12)}


@cache
def read_ends(size: str, arm: str) -> dict[str, np.ndarray]:
    """Probe -> its values at the end, a row for each seed and a column for each layer."""
    rows: dict[str, list[np.ndarray]] = {"key_norm": [], "entropy": []}
    for seed in SEEDS:
        content = archive.read_file(RECORD, f"work/evening/probes/key_norms/{size}/{arm}/s{seed}/probes.parquet")
        frame = pd.read_parquet(io.BytesIO(content))
        last = frame[frame["fraction"] == 1.0]
        for probe, values in rows.items():
            values.append(last[last["probe"] == probe].groupby("layer")["value"].mean().sort_index().to_numpy())
    return {probe: np.array(values) for probe, values in rows.items()}


def derive_gains(size: str) -> dict[str, np.ndarray]:
    """Statement -> the gain of each seed: early layers are the first two, final ones the last two."""
    published, free, frozen = (read_ends(size, arm) for arm in ("as_published", "no_decay", "frozen_gains"))
    early, final = (slice(0, 2), slice(SIZES[size][1] - 2, SIZES[size][1]))

    def mean(values: np.ndarray, layers: slice) -> np.ndarray:
        return values[:, layers].mean(axis=1)

    def widths(arm: dict[str, np.ndarray]) -> np.ndarray:
        return mean(arm["entropy"], early) - mean(arm["entropy"], final)

    norms = published["key_norm"]
    return {
        "early_norms_fall": -mean(norms, early),
        "final_norms_rise": mean(norms, final),
        "final_above_early": mean(norms, final) - mean(norms, early),
        "decay_is_what_falls": mean(free["key_norm"], early) - mean(norms, early),
        "no_fall_without_decay": mean(free["key_norm"], early),
        "gradients_hold_against_decay": mean(norms, final),
        "early_attention_is_wider": widths(published),
        "width_is_not_the_norm": widths(published) - widths(frozen),
    }


@pytest.mark.parametrize("size", SIZES)
def test_each_gain_and_its_bounds_come_out_of_the_probes(size: str) -> None:
    table = pd.read_csv(ROOT / "studies/key_norms/small.csv")
    rows = table[table["size"] == SIZES[size][0]].set_index("statement")
    gains = derive_gains(size)
    assert set(gains) == set(rows.index)
    for statement, values in gains.items():
        row, margin = rows.loc[statement], stats.t.isf(0.025, 7) * values.std(ddof=1) / np.sqrt(8)
        assert row["gain"] == pytest.approx(values.mean())
        assert (row["low"], row["high"]) == pytest.approx((values.mean() - margin, values.mean() + margin))
        seen = values.mean() - margin > row["minimum"]
        assert row["verdict"] == ("seen" if seen else "not decided")


def test_the_first_layer_falls_without_decay_too() -> None:
    ends = {
        (arm, size): read_ends(size, arm)["key_norm"][:, 0].mean()
        for arm in ("no_decay", "as_published")
        for size in SIZES
    }
    page = " ".join((ROOT / "studies/key_norms/small_models.md").read_text(encoding="utf-8").split())
    free, decayed = ([f"{ends[arm, size]:.1f}" for size in SIZES] for arm in ("no_decay", "as_published"))
    assert f"to {free[0]} at 1.6M and {free[1]} at 2.7M" in page
    assert f"With decay the first layer ends at {decayed[0]} and {decayed[1]}" in page


def test_as_first_stated_one_verdict_is_another() -> None:
    """Six seeds and a minimum of 7.6."""
    low = {}
    for size in SIZES:
        values = derive_gains(size)["no_fall_without_decay"][:6]
        low[size] = values.mean() - stats.t.isf(0.025, 5) * values.std(ddof=1) / np.sqrt(6)
    assert low["shallow"] < 7.6 < low["deep"]
