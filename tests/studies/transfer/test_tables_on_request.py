"""What the paper's limitations name next: more seeds, lower rates, and the packs that runs read."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from plumbline.core import fingerprint_file
from plumbline.core.errors import PlumblineError
from plumbline.data.manifest import pack_folder
from plumbline.results.runs.finished_runs import load
from plumbline.studies.transfer.tables.packs import packs
from tests.studies.transfer.synthetic_runs import PUBLISHED, World, tasks_of
from tests.studies.transfer.test_transfer_tables import make_table

BASELINE = {42: 0.481, 43: 0.483, 44: 0.485}
MEAN, SIGMA = 0.483, 0.002


def add_seeds(world: World, scale: str, method: str, values: dict[int, float]) -> None:
    for seed, value in values.items():
        world.completed(scale, method, seed, tasks_of(value), 2.3)


def test_a_borderline_method_is_tested_by_its_own_three_seeds(tmp_path: Path) -> None:
    world, hybrid = World(tmp_path), {42: 0.489, 43: 0.485, 44: 0.487}
    add_seeds(world, "base", "baseline", BASELINE)
    add_seeds(world, "base", "hybrid_norm", hybrid)
    add_seeds(world, "base", "relu_squared", {42: 0.488})
    table = make_table(world, "borderline_seeds")
    row = table.frame.set_index("method").loc["hybrid_norm"]
    assert row["n_seeds"] == 3 and row["climb_avg_delta"] == pytest.approx(0.004) and row["z"] == pytest.approx(2.0)
    expected = stats.ttest_ind([*hybrid.values()], [*BASELINE.values()], equal_var=False)
    assert (row["welch_t"], row["welch_p"]) == (pytest.approx(expected.statistic), pytest.approx(expected.pvalue))
    assert row["z_published"] == 3.19 and table.cell("baseline", "z").word == "reference"
    assert table.cell("relu_squared", "sigma").word == "one seed" and table.cell("softpick", "z").word == "missing"
    assert list(table.frame["method"])[3:] == ["hybrid_norm", "sandwich_norm", "relu_squared", "selective_attn"]


def test_one_seed_is_measured_by_its_own_scales_spread(tmp_path: Path) -> None:
    world = World(tmp_path)
    add_seeds(world, "large", "baseline", BASELINE)
    add_seeds(world, "base", "baseline", {42: 0.1, 43: 0.9})
    add_seeds(world, "large", "qknorm_geglu", {42: 0.493})
    world.diverged("large", "ssmax", 42, 5800, [(step, 0.2) for step in range(0, 5800, 100)] + [(5800, math.nan)])
    table = make_table(world, "large_seeds")
    row = table.frame.set_index("method").loc["qknorm_geglu"]
    assert row["climb_avg_delta"] == pytest.approx(0.493 - MEAN) and row["z"] == pytest.approx(0.010 / SIGMA)
    assert row["climb_avg_delta_published"] == 0.0169
    assert table.cell("qknorm_geglu", "z_published").word == "not printed"
    assert table.cell("ssmax", "z").word == "diverged" and "geglu_ffn" not in set(table.frame["method"])


def test_a_lower_rate_is_compared_with_the_baseline_at_that_rate(tmp_path: Path) -> None:
    world = World(tmp_path)
    norms = [(step, 0.2) for step in range(0, 3500, 100)] + [(3500, math.nan)]
    world.diverged("large", "hybrid_norm", 42, 3500, norms)
    for method, value, loss in (
        ("baseline", 0.50, 2.30),
        ("baseline_half_rate", 0.49, 2.35),
        ("hybrid_norm_half_rate", 0.51, 2.32),
        ("hybrid_norm_quarter_rate", 0.48, 2.40),
    ):
        world.completed("large", method, 42, tasks_of(value), loss)
    table = make_table(world, "retuned_rates")
    frame = table.frame.set_index("method")
    assert list(frame.index[:6]) == [
        *("baseline", "baseline_half_rate", "baseline_quarter_rate"),
        *("hybrid_norm", "hybrid_norm_half_rate", "hybrid_norm_quarter_rate"),
    ]
    half = frame.loc["hybrid_norm_half_rate"]
    assert half["peak_lr"] == 1.5e-4 and half["rate_over_shared"] == 0.5
    assert half["loss_minus_baseline_same_rate"] == pytest.approx(-0.03)
    assert half["loss_minus_baseline_shared_rate"] == pytest.approx(0.02)
    assert half["climb_avg_minus_baseline_same_rate"] == pytest.approx(0.02)
    shared = frame.loc["hybrid_norm"]
    assert shared["first_nan_step"] == shared["first_nan_step_published"] == 3500
    assert table.cell("hybrid_norm_half_rate", "first_nan_step").word == "no divergence"
    # The baseline has no run at a quarter of the rate here, and none at another rate stands in for it.
    assert table.cell("hybrid_norm_quarter_rate", "loss_minus_baseline_same_rate").word == "missing"
    assert table.cell("ssmax_half_rate", "validation_loss").word == "missing"


def test_every_lower_rate_is_that_share_of_shared_one() -> None:
    for preset in ("paper", "mini", "evening", "demo", "smoke"):
        study = World(Path(), preset).study
        group = study.group("retuned_rates")
        assert len(group) == 8 and not {run.key for run in group} & study.runs.keys()
        shared = study.definition["scales"]["large"][preset].get("optimizer", {}).get("learning_rate", 3e-4)
        for run in group:
            share = 0.5 if "half" in run.spec.method else 0.25
            assert run.spec.optimizer.learning_rate == pytest.approx(share * shared), run.key


def write_pack(root: Path, split: str, name: str, shards: list[str], sequences: int) -> None:
    """Write the manifest of a pack, whose files have 100 sequences each but for the last."""
    lengths = [100] * (len(shards) - 1) + [sequences - 100 * (len(shards) - 1)]
    files = [
        {"file": f"{split}/{sha}", "sequences": length, "sha256": sha}
        for sha, length in zip(shards, lengths, strict=True)
    ]
    manifest = {
        **{"name": name, "split": split, "context": 1024, "dtype": "<u4", "vocabulary": 65536, "separator": 0},
        **{"tokenizer_sha256": "t" * 64, "sequences": sequences, "tokens": sequences * 1024, "documents": 7},
        **{"discarded": {"tokens": 512}, "available": {"tokens": 51200}, "sequences_per_shard": 100},
        **{"shards": files, "corpus": {"source": "hub"}},
    }
    path = root / pack_folder("corpora/climbmix", 1024, split) / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    fingerprint_file.write_facts(path, manifest)


def test_packs_are_read_from_their_manifests(tmp_path: Path) -> None:
    world = World(tmp_path)
    write_pack(tmp_path, "train", "base", ["a", "b"], 110)
    write_pack(tmp_path, "train", "large", ["a", "c"], 120)
    frames = load([], tmp_path, packs=True)
    table = packs(frames, world.study, PUBLISHED)
    frame = table.frame.set_index("pack")
    assert (frame.loc["base", "shards"], frame.loc["base", "sequences"], frame.loc["base", "documents"]) == (2, 110, 7)
    assert frame.loc["base", "tokens_b"] == pytest.approx(110 * 1024 / 1e9) and frame.loc["base", "discarded_pct"] == 1
    assert frame.loc["base", "shards_published"] == 474 and frame.loc["large", "sequences_published"] == 58_637_625
    assert frame.loc["validation", "sequences_published"] == 131_072 and np.isnan(frame.loc["validation", "sequences"])
    # Their second files differ, so that one is not the beginning of the other.
    assert list(frame["begins_largest"]) == ["no", "yes", "missing"]
    write_pack(tmp_path, "train", "base", ["a"], 100)
    assert packs(frames, world.study, PUBLISHED).cell("base", "begins_largest").value == "yes"
    with pytest.raises(PlumblineError, match=r"'base'.*`packs`"):
        packs(load([], tmp_path), world.study, PUBLISHED)
