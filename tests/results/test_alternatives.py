"""The table of alternatives: each run next to the one that has the chosen meaning, and next to its control."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from plumbline.core.frames import SCHEMAS
from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.runs.expected_runs import list_expected_runs
from plumbline.results.runs.finished_runs import load
from plumbline.results.tables.table import Table
from plumbline.specs import study_config, study_parts
from tests.studies import made_targets
from tests.studies.run_files import make_run, write_run

#: Losses by scale, method and seed; whatever is not here did not run.
LOSSES = {
    "premature/base/gpt/s42": 4.0,
    "premature/base/gpt/s43": 4.1,
    "premature/base/gpt_slow/s42": 3.9,
    "premature/base/gpt_slow.patience_1/s42": 3.95,
    "premature/base/gpt.unscaled_outputs/s42": 4.5,
    "premature/base/gpt_slow.unscaled_outputs/s42": 4.3,
    "premature/base/gpt.order_1/s43": 4.15,
    "key_norms/base/as_published/s42": 3.0,
    "key_norms/base/as_published/s43": 3.2,
    "key_norms/base/adamw/s42": 3.5,
    "key_norms/base/adamw_no_decay/s42": 3.4,
    "quack/mha/default.eta_0.0003/s42": 2.0,
    "quack/mha/quack.eta_0.0003-tau_1/s42": 1.9,
    "quack/mha/quack.adamw/s42": 2.5,
    "quack/mha/default.adamw/s42": 2.6,
    "quack/mha/quack.eta_0.003-tau_1/s42": 1.5,
    "quack/mha/quack.no_ratio_limit/s42": 1.6,
}


def make_table(name: str, root: Path) -> pd.DataFrame:
    study = study_config.load(name, "smoke")
    target = study.definition["targets"]["alternatives"]
    for key, loss in LOSSES.items():
        if key.startswith(f"{name}/"):
            metrics = pd.DataFrame({"step": [1], "split": "train", "loss": 5.0, "grad_norm": 1.0})
            metrics = metrics.assign(learning_rate=0.1, tokens=1)
            read_nothing = pd.DataFrame(columns=SCHEMAS["probes"].names)
            write_run(root, make_run(study.every_run[key].spec, metrics, read_nothing, step=6, loss=loss))
    frames = load(list_expected_runs(None, study, target["runs"], root), root, probes=True)
    alternatives = study_parts.function(name, "tables", "alternatives")
    table = alternatives(frames, study, PrintedNumbers.of(name, reads=[]))
    assert isinstance(table, Table)
    assert {f"{name}/{run}" for run in table.frame["run"]} >= set(study.requested_runs)
    return table.frame.set_index("run")


def test_an_alternative_stands_below_its_default(tmp_path: Path) -> None:
    frame = make_table("premature", tmp_path)
    row = frame.loc["base/gpt_slow.patience_1/s42"]
    assert row["loss_minus_default"] == pytest.approx(0.05) and row["control"] == "gpt"
    assert row["loss_minus_control"] == pytest.approx(-0.05)
    assert row["interpretations"] == "patience_inside_the_window" and "patience" in row["description"]
    default = frame.loc["base/gpt_slow/s42"]
    assert default["loss_minus_control"] == pytest.approx(-0.1) and pd.isna(default["loss_minus_default"])
    places = list(frame.index)
    assert places.index("base/gpt_slow/s42") < places.index("base/gpt_slow.patience_1/s42")


def test_a_pair_under_one_alternative_is_its_own_effect(tmp_path: Path) -> None:
    frame = make_table("premature", tmp_path)
    row = frame.loc["base/gpt_slow.unscaled_outputs/s42"]
    assert row["control"] == "gpt.unscaled_outputs" and row["loss_minus_control"] == pytest.approx(-0.2)
    assert row["loss_minus_default"] == pytest.approx(0.4)
    other_order = frame.loc["base/gpt.order_1/s43"]
    assert other_order["data_seed"] == 1 and other_order["loss_minus_default"] == pytest.approx(0.05)
    assert frame.loc["base/gpt_slow.order_1/s43", "outcome"] == "missing"


def test_an_arm_and_another_seed_have_defaults_too(tmp_path: Path) -> None:
    frame = make_table("key_norms", tmp_path)
    assert frame.loc["base/adamw/s42", "loss_minus_default"] == pytest.approx(0.5)
    assert frame.loc["base/adamw_no_decay/s42", "control"] == "adamw"
    assert frame.loc["base/adamw_no_decay/s42", "loss_minus_control"] == pytest.approx(-0.1)
    seed = frame.loc["base/as_published/s43"]
    assert seed["loss_minus_default"] == pytest.approx(0.2) and seed["interpretations"] == "seed"


def test_default_of_swept_method_is_point_with_its_values(tmp_path: Path) -> None:
    frame = make_table("quack", tmp_path)
    assert frame.loc["mha/quack.adamw/s42", "loss_minus_default"] == pytest.approx(0.6)
    assert frame.loc["mha/quack.adamw/s42", "loss_minus_control"] == pytest.approx(-0.1)
    assert frame.loc["mha/quack.no_ratio_limit/s42", "loss_minus_default"] == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("study", "run", "numbers"),
    [
        ("premature", "base/gpt/s42", {"upper_entropy_3pct": 0.6215, "upper_logit_3pct": 1.308}),
        ("key_norms", "base/as_published/s42", {"early_key_norm": 5.3, "final_key_norm": 9.8}),
        ("quack", "mha/default.eta_0.0003/s42", {"largest_mean_logit_change": 0.1, "largest_logit": 40}),
        ("query_free", "base/baseline/s42", {"loss_vs_baseline_pct": 0}),
        ("transfer", "base/baseline/s42", {"climb_avg": 0.482, "z": -0.47}),
    ],
)
def test_what_a_headline_rests_on_stands_beside_the_loss(study: str, run: str, numbers: dict[str, float]) -> None:
    table, _ = made_targets.make_table(study, "alternatives")
    for name, number in numbers.items():
        assert table.cell(run, name).value == pytest.approx(number, rel=0.01)
        names = {column.name for column in table.columns}
        assert {f"{name}_minus_default", f"{name}_minus_control"} <= names or name == "loss_vs_baseline_pct"
