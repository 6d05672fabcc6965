"""The published world reproduces its claims, a flipped world does not, and nothing is judged without its runs."""

from __future__ import annotations

import math
import subprocess
import sys

import pandas as pd
import pytest

from plumbline.results.judge import COLUMNS, judge, to_csv, to_markdown
from plumbline.results.measures import Measure
from plumbline.studies.transfer.claims import MEASURES, Evidence
from tests.studies.transfer.world import PUBLISHED, World, published_once, published_world, tasks_of

CLAIMS = PUBLISHED.claims()

#: Printed statements that the printed numbers themselves do not bear out, or that two sections print differently.
AGAINST_ITSELF = {
    "t2_order": "reproduced",
    "attention_span_ratio": "not reproduced",  # 0.170 over an interval of 0.0038
    "attention_six_of_eight": "partly",  # three up and five down are eight, not six
    "range_three_points": "not reproduced",  # 17 points
    "sigmoid_other_tasks": "partly",  # eleven losses of at most 0.08 do not add up to the printed drop
    "ssmax_uniform": "not reproduced",  # nor twelve of at most 0.025
    "tokens_1p2b": "partly",  # 2^20 tokens a step do not give 23.07 B
    "heads_policy": "partly",
    "a100_per_task": "partly",
    "val_pack": "partly",  # a ruling: smaller than printed
}
#: The synthetic world has no task structure beyond what is printed.
UNPRINTED = {"stouffer_qknorm", "stouffer_softpick", "layerscale_uniform", "attention_failures_sharp_tasks"}
UNPRINTED |= {"spearman_7", "a100_direction"}


def judged(world: World) -> pd.DataFrame:
    rows = judge(CLAIMS, MEASURES, Evidence(world.load(), world.study, PUBLISHED))
    return pd.DataFrame(rows).set_index("id")


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return judged(published_once())


def test_every_claim_is_measured_or_says_why_not():
    assert set(MEASURES) == {claim.id for claim in CLAIMS}
    assert all(isinstance(one, Measure) and (one.function or len(one.untested) > 10) for one in MEASURES.values())


def test_the_published_world_reproduces_the_published_claims(rows):
    assert list(rows.index) == [claim.id for claim in CLAIMS] and ["id", *rows.columns] == list(COLUMNS)
    expected = rows["verdict"].drop(list(UNPRINTED))
    other = expected[~expected.isin(["reproduced", "not tested"])]
    assert other.to_dict() == {name: word for name, word in AGAINST_ITSELF.items() if word != "reproduced"}
    assert set(rows.index[rows["verdict"] == "not tested"]) == {n for n, m in MEASURES.items() if m.function is None}
    assert (rows["verdict"] == "reproduced").sum() > 105


def test_each_verdict_names_its_runs(rows):
    study = published_once().study
    assert rows.loc["t2_softpick", "runs"].split() == [
        *(f"transfer/base/baseline/s{seed}" for seed in (42, 43, 44)),
        "transfer/base/softpick/s42",
    ]
    for name, measure in MEASURES.items():
        ids = rows.loc[name, "run_ids"].split()
        if measure.scope == "training" and measure.function is not None:
            assert ids, name
        assert ids == [study.runs[key].spec.run_id for key in rows.loc[name, "runs"].split()]


def test_a_flipped_world_does_not_reproduce_them(tmp_path, rows):
    flipped = judged(published_world(tmp_path, flipped=True))
    signs = [claim.id for claim in CLAIMS if claim.id.startswith(("t2_", "t3_")) and claim.kind == "sign"]
    assert len(signs) == 28 and flipped.loc[signs, "verdict"].eq("not reproduced").all()
    for name in ("bonferroni_names", "t2_order", "t3_order", "runs_3b", "hybrid_nan_steps", "ssmax_3b_divergence",
                 "t7_order", "sigmoid_lambada", "residual_none_improves", "welch_softpick", "failures_3b"):  # fmt: skip
        assert flipped.loc[name, "verdict"] in ("not reproduced", "partly"), name
    assert (flipped["verdict"] == "not reproduced").sum() > 60
    # What training does not decide stays as it is.
    exact = [name for name, measure in MEASURES.items() if measure.scope == "arithmetic"]
    assert flipped.loc[exact, "verdict"].equals(rows.loc[exact, "verdict"])


@pytest.mark.parametrize("preset", ["mini", "demo", "smoke"])
def test_small_presets_speak_only_about_sizes_and_definitions(tmp_path, preset):
    world = World(tmp_path, preset)
    for seed, value in ((42, 0.30), (43, 0.31), (44, 0.305)):
        world.completed("base", "baseline", seed, tasks_of(value), 5.0)
    world.completed("base", "softpick", 42, tasks_of(0.32), 4.9)
    world.diverged("base", "hyper", 42, 3, [(1, 2.0), (2, 9.0), (3, math.nan)])
    rows = judged(world)
    assert rows.loc["t2_softpick", "verdict"] == preset and "too small to speak" in rows.loc["t2_softpick", "why"]
    assert "z = " in rows.loc["t2_softpick", "reproduced"]
    assert rows.loc["params_baseline", "verdict"] == "reproduced" and rows.loc["fwer", "verdict"] == "reproduced"
    assert rows.loc["t2_attnres", "verdict"] == "not tested" and "is missing" in rows.loc["t2_attnres", "why"]
    assert rows.loc["t2_hyper", "verdict"] == preset and rows.loc["t2_hyper", "reproduced"] == "diverged"
    assert rows["preset"].eq(preset).all()


def test_a_divergence_is_a_verdict_where_a_value_is_claimed(tmp_path):
    world = World(tmp_path, "paper")
    for seed, value in ((42, 0.30), (43, 0.31), (44, 0.305)):
        world.completed("base", "baseline", seed, tasks_of(value), 5.0)
    world.diverged("base", "hyper", 42, 3, [(1, 2.0), (2, 9.0), (3, math.nan)])
    rows = judged(world)
    assert rows.loc["t2_hyper", "verdict"] == "diverged" and "transfer/base/hyper/s42" in rows.loc["t2_hyper", "why"]
    assert rows.loc["counts_by_z", "verdict"] == "not tested"


def test_renderings(rows):
    listed = rows.reset_index().to_dict("records")
    assert to_csv(listed).splitlines()[0] == ",".join(COLUMNS)
    markdown = to_markdown(listed, "A title", "paper")
    assert "Preset: paper" in markdown and "- not reproduced: " in markdown and "| fwer " in markdown


def test_the_verb(tmp_path, repository):
    out = tmp_path / "claims.csv"
    command = [
        sys.executable,
        "-m",
        "plumbline.results",
        "claims",
        "transfer",
        "--preset",
        "smoke",
        "--work",
        str(tmp_path / "none"),
    ]
    done = subprocess.run([*command, "--out", str(out)], cwd=repository, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    table = pd.read_csv(out, keep_default_na=False)
    assert len(table) == len(CLAIMS) and out.with_suffix(".md").exists()
    assert set(table["verdict"]) == {"not tested", "reproduced", "partly"}
