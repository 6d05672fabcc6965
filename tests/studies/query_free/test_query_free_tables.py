"""The tables: the runs' numbers next to the printed ones, theorems with and without premises, and words for gaps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from plumbline.results.tables.table import Table
from plumbline.specs import study_parts
from plumbline.studies.query_free import theorem_checks
from tests.studies import made_targets
from tests.studies.query_free.synthetic_runs import (
    LOSSES,
    PUBLISHED,
    STUDY,
    Transfer,
    as_the_document_says,
    load_frames,
    study_at,
    write_runs,
    write_transfer,
)


def make_table(root: Path, name: str) -> Table:
    study = study_at("paper")
    frames = load_frames(root, *study.definition["targets"][name]["runs"])
    return study_parts.function(STUDY, "tables", name)(frames, study, PUBLISHED)


# Table 1


@pytest.fixture(scope="module")
def table1() -> Table:
    return made_targets.make_table(STUDY, "table1")[0]


def test_table1_has_the_printed_rows(table1: Table) -> None:
    printed = PUBLISHED.table("table1", key="section")
    rows = {row["check"].value: {name: cell.value for name, cell in row.items()} for row in table1.rows}
    sections = list(dict.fromkeys(row["section"] for row in rows.values() if row["section"]))
    assert sections == list(printed.index)
    at = {section: [row for row in rows.values() if row["section"] == section] for section in sections}
    assert all(len(at[section]) >= 1 for section in sections)
    assert [row["verdict"] for row in at["4.3"] if not row["premise_removed"]] == ["equal", "equal"]
    assert (at["8.4"][0]["label"], at["5.1"][0]["label"]) == ("experimental, see figure 2", "experimental, see table 2")
    assert rows["thm_4_2_tied"]["covers_normalization_published"] == "×"
    assert rows["thm_4_2_tied"]["covers_skip_connections_published"] == "around attention only"
    assert rows["prop_4_1"]["covers_weight_decay_published"] == "✓ post-training, × during training"
    assert {row["covers_normalization_published"] for row in rows.values() if row["check"].startswith("thm_8_4")} == {
        "no row",
        "",
    }


def test_every_statement_holds_with_its_premises(table1: Table) -> None:
    frame = table1.frame.set_index("check")
    equal_rows, apart_rows = frame[frame["verdict"] == "equal"], frame[frame["verdict"] == "apart"]
    assert len(equal_rows) + len(apart_rows) + 2 == len(frame) and len(equal_rows) == len(theorem_checks.theorems())
    assert equal_rows["relative_residual"].max() < 1e-9 and apart_rows["relative_residual"].min() > 1e-4
    assert apart_rows["premise_removed"].ne("").all() and equal_rows["premise_removed"].eq("").all()
    theory = [theorem for theorem in theorem_checks.theorems() if not theorem.startswith("section_6")]
    assert all(f"{name}_without_1" in apart_rows.index for name in theory)


def test_a_statement_that_does_not_hold_is_shouted(right: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    theorem = theorem_checks.theorems()["thm_4_1"]
    idle = replace(theorem.broken[0], residual=1e-12)
    changed = theorem_checks.theorems() | {
        "thm_4_1": replace(theorem, residual=1e-3, broken=(idle, *theorem.broken[1:]))
    }
    monkeypatch.setattr(theorem_checks, "theorems", lambda: changed)
    table = make_table(right, "table1")
    assert table.cell("thm_4_1", "verdict").value == "NOT EQUAL"
    assert table.cell("thm_4_1_without_1", "verdict").value == "NOT APART"


# Table 2


@pytest.fixture(scope="module")
def table2() -> Table:
    return made_targets.make_table(STUDY, "table2")[0]


def test_table2_has_losses_sizes_and_times(table2: Table) -> None:
    frame = table2.frame.set_index("method")
    assert list(frame.index) == [*PUBLISHED.table("table2").index, "residual_query", "residual_query_gelu"]
    assert frame["validation_loss"].tolist() == pytest.approx([LOSSES[name] for name in frame.index])
    assert frame["loss_vs_baseline_pct"].round(2).drop("baseline").tolist() == [0.37, 0.41, 0.0, -0.51, -0.03, -0.31]
    assert frame.loc["baseline_small_d", "parameters"] == 117_915_816
    assert frame["params_m"].round(2).tolist() == [117.3, 117.92, 117.3, 124.37, 124.37, 124.37, 124.37]
    assert frame["non_embedding_params_m"].round(2).tolist() == [77.88, 79.73, 77.88, 84.95, 84.95, 84.95, 84.95]
    assert frame["seconds_per_step"].tolist() == pytest.approx([0.5, 0.5, 0.46, 0.5, 0.46, 0.5, 0.5])
    assert frame.loc["wq_identity", "step_time_ratio_to_baseline"] == pytest.approx(0.92)
    assert frame.loc["wq_identity", "wall_seconds"] == pytest.approx(0.46 * 60_000)
    assert frame.loc["wq_identity", "non_embedding_params_ratio_to_baseline"] == pytest.approx(0.9167, abs=1e-4)
    assert frame["learned_query"].tolist() == ["yes", "yes", "no", "yes", "no", "yes", "yes"]
    assert frame["extra_score_divisor"].tolist() == [1, 1, 2, 1, 2, 2, 2]
    assert frame["head_width"].tolist()[:3] == [64, 62, 64]
    assert frame["peak_lr"].tolist()[:5] == [6e-4, 6e-4, 1.6e-3, 6e-4, 2.2e-3]


def test_what_is_printed_stands_beside_in_its_own_digits(table2: Table) -> None:
    texts = {row["method"].value: row for row in table2.rows}
    assert texts["baseline_small_mlp"]["params_m_published"].text == "117.30"
    assert texts["wq_identity_large_mlp"]["loss_vs_baseline_pct_published"].text == "-0.52"
    assert texts["baseline"]["loss_vs_baseline_pct_published"].word == "not printed"
    assert texts["baseline"]["loss_vs_baseline_pct"].word == "reference"
    assert texts["residual_query"]["validation_loss_published"].word == "not printed"
    for name in ("ffn_multiple", "extra_score_divisor", "head_width", "weight_decay", "peak_lr", "min_lr"):
        for config in PUBLISHED.table("table2").index:
            ours, printed = texts[config][name].value, texts[config][f"{name}_published"].value
            assert ours == pytest.approx(printed), (config, name)


def test_a_cell_knows_its_runs(table2: Table) -> None:
    assert table2.cell("wq_identity", "validation_loss").runs == ("query_free/base/wq_identity/s42",)
    assert table2.cell("wq_identity", "loss_vs_baseline_pct").runs == (
        "query_free/base/wq_identity/s42", "query_free/base/baseline/s42",
    )  # fmt: skip
    assert "made up" in "\n".join(table2.notes)


def test_a_missing_or_diverged_run_is_a_word(tmp_path: Path) -> None:
    world = as_the_document_says()
    world["wq_identity"] = replace(world["wq_identity"], outcome="diverged")
    del world["residual_query"]
    table = make_table(write_runs(world, tmp_path / "a"), "table2")
    assert (
        table.cell("wq_identity", "validation_loss").word
        == table.cell("wq_identity", "loss_vs_baseline_pct").word
        == "diverged"
    )
    assert table.cell("wq_identity", "seconds_per_step").value == pytest.approx(0.46)
    assert (
        table.cell("residual_query", "validation_loss").word
        == table.cell("residual_query", "wall_seconds").word
        == "missing"
    )
    assert table.cell("residual_query", "params_m").value == pytest.approx(124.37376)
    del world["baseline"]
    table = make_table(write_runs(world, tmp_path / "b"), "table2")
    assert (
        table.cell("baseline_small_d", "loss_vs_baseline_pct").word
        == table.cell("baseline_small_d", "step_time_ratio_to_baseline").word
        == "missing"
    )
    assert table.cell("baseline_small_d", "validation_loss").value == 2.956


# Variants


def test_variants_has_every_run_against_the_baseline() -> None:
    frame = made_targets.make_table(STUDY, "variants")[0].frame
    frame.index = [run.split("/")[1] for run in frame["run"]]
    assert set(frame.index) == {run.spec.method for run in study_at("paper").runs.values()} and len(frame) == 18
    assert frame["validation_loss"].to_dict() == pytest.approx(LOSSES)
    floor = frame.loc["wq_identity_floor_tenth"]
    assert (floor["control"], floor["loss_minus_default"]) == ("wq_identity", pytest.approx(0.012))
    assert floor["loss_vs_baseline_pct"] == pytest.approx(100 * (2.956 / 2.944 - 1))
    assert frame.loc["wq_identity_large_mlp_rate_3e3", "loss_minus_default"] == pytest.approx(0.007)
    assert set(frame["description"]) > {"default"} and frame["description"].str.len().min() > 5


# Initial scores


def test_initial_scores_are_the_printed_ones_and_those_of_layers() -> None:
    table, _ = made_targets.make_table(STUDY, "initial_scores")
    frame = table.frame.set_index("query_setting")
    printed = {
        row: table.cell(row, "value_by_formula_published").text for row in ("standard", "reduced", "ratio", "inverse")
    }
    assert printed == {"standard": "0.0032", "reduced": "0.0058", "ratio": "1.8", "inverse": "0.55"}
    assert frame["value_random_weights"].to_numpy() == pytest.approx(frame["value_by_formula"].to_numpy(), rel=0.015)
    layers = frame["value_first_layer"].dropna()
    assert layers.to_numpy() == pytest.approx(frame.loc[layers.index, "value_by_formula"].to_numpy(), rel=0.025)
    assert layers["wq_identity_unscaled"] / layers["wq_identity"] == pytest.approx(2, rel=1e-5)
    assert layers["wq_identity_matched"] == pytest.approx(layers["baseline"], rel=0.01)
    assert frame.loc["baseline", "value_by_formula"] == pytest.approx(768 * 0.02**2)


def test_nothing_is_needed_of_runs_that_are_not_there(tmp_path: Path) -> None:
    """Theorems and starts are the same with no run at all; a table of runs then has words alone."""
    root = write_transfer(Transfer(), tmp_path)
    assert make_table(root, "table1").frame["relative_residual"].notna().sum() > 30
    assert make_table(root, "table2").frame["validation_loss"].isna().all()


# The table of identities


def test_each_identity_stands_next_to_its_nearest_run(tmp_path: Path) -> None:
    world = as_the_document_says()
    losses = {"wk_identity": 3.0, "wv_identity": 2.8, "wv_identity_baseline_schedule": 2.9, "baseline.untied": 2.7}
    world |= {name: replace(world["baseline"], loss=loss) for name, loss in losses.items()}
    world["wq_identity.untied"] = replace(world["baseline"], loss=2.7, outcome="diverged")
    table = make_table(write_runs(world, tmp_path), "identities")
    rows = {row["method"].value: {name: cell.value for name, cell in row.items()} for row in table.rows}
    assert len(rows) == 12 and rows["wk_identity"]["loss_vs_baseline_pct"] == pytest.approx(100 * (3.0 / 2.944 - 1))
    assert rows["wk_identity"]["loss_vs_counterpart_pct"] == pytest.approx(100 * (3.0 / LOSSES["wq_identity"] - 1))
    at_its_rate = LOSSES["baseline_reduced_schedule"]
    assert rows["wv_identity"]["loss_vs_counterpart_pct"] == pytest.approx(100 * (2.8 / at_its_rate - 1))
    learned = {name: row["learned_matrices"] for name, row in rows.items()}
    assert learned["wk_identity"] == "W_Q W_V W_O" and learned["wv_identity"] == "W_Q W_K W_O"
    assert learned["baseline.untied"] == "W_Q W_K W_V W_O" and rows["baseline.untied"]["head"] == "untied"
    assert rows["baseline.untied"]["non_embedding_params_m"] == rows["baseline"]["non_embedding_params_m"]
    assert {name for name, row in rows.items() if row["layers"] == "shared"} == {
        "baseline.shared_layers",
        "wq_identity.shared_layers",
    }
    assert rows["wk_identity.baseline_scale"]["outcome"] == "missing"
    assert rows["wq_identity.untied"]["outcome"] == "diverged" and rows["wq_identity.untied"]["head"] == "untied"
    specs = study_at("paper").every_run
    by_label = {row["label"]: method for method, row in rows.items()}
    assert {row["counterpart"] for row in rows.values()} < {*by_label, "none"}
    for method, row in rows.items():
        counterpart = by_label.get(row["counterpart"])
        if counterpart not in (None, "baseline.untied", "baseline.shared_layers"):
            ours, theirs = (specs[f"{STUDY}/base/{name}/s42"].spec for name in (method, counterpart))
            parts = ("model", "optimizer", "schedule")
            changed = [part for part in parts if getattr(ours, part) != getattr(theirs, part)]
            assert changed in (["model"], ["optimizer", "schedule"]), method
