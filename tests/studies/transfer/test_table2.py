"""Table 2 from synthetic runs: the published values give the published verdicts; nothing missing is hidden."""

from __future__ import annotations

import json
import math

import pandas as pd
import pytest

from plumbline.core.errors import PlumblineError
from plumbline.results import __main__ as results
from plumbline.results.tables import write_table
from plumbline.results.tables.paper_columns import add_paper_columns
from plumbline.results.tables.provenance import collect_provenance
from plumbline.results.tables.trace_cell import trace_cell
from plumbline.studies.transfer.tables.table2 import table2
from tests import run_in_process
from tests.studies.transfer.synthetic_runs import PUBLISHED, World, base_value, read_printed_rows, tasks_of

GROUPS = ("base", "noise_floor")
NUMBERS = ["climb_avg", "z", "p_holm", "validation_loss"]


@pytest.fixture(scope="module")
def table(published):
    result = table2(published.load(*GROUPS), published.study, PUBLISHED)
    add_paper_columns(result, published.study.definition["targets"]["table2"]["printed"], PUBLISHED)
    return result


@pytest.mark.parametrize("row", read_printed_rows("table2"), ids=lambda row: row["method_id"])
def test_published_values_give_the_published_verdicts(table, row):
    cells = next(cells for cells in table.rows if cells["method"].value == row["method_id"])
    got = {name: cell.value for name, cell in cells.items()}
    assert f"{got['climb_avg']:.4f}" == row["climb_avg"] == cells["climb_avg_published"].text
    # Deltas are printed to three digits of numbers that are themselves rounded.
    assert abs(got["climb_avg_delta"] - float(row["delta"])) <= 0.0006
    if abs(float(row["z"])) < 20:
        assert f"{got['z']:+.2f}".lstrip("+") == row["z"]
    assert got["z"] == pytest.approx(float(row["z"]), abs=0.0051)
    if row["method_id"] == "baseline":
        assert got["p_bonferroni"] is got["p_holm"] is None and got["n_seeds"] == 3
        assert cells["p_bonferroni"].word == cells["p_holm"].word == "reference"
        assert cells["p_bonferroni_published"].word == "not printed"
    elif row["p_bonf_bound"]:
        assert got["p_bonferroni"] < 1e-7 and got["p_bonferroni_published"] is None
        assert cells["p_bonferroni_published"].word == "<1e-7"
    elif row["method_id"] != "hyper":  # its printed p does not follow from its printed z
        assert got["p_bonferroni"] == pytest.approx(float(row["p_bonf"]), rel=0.045)


def test_rows_are_the_methods_in_the_printed_order(table):
    assert list(table.frame["method"]) == [row["method_id"] for row in read_printed_rows("table2")]
    assert not any("slightly too small" in note for note in table.notes)  # benchmarks share no sentences
    assert list(table.frame["preset"].unique()) == ["paper"] and list(table.frame["scale"].unique()) == ["1.2B"]


def test_a_single_seed_is_the_value_and_the_others_are_told(table):
    row = table.frame.set_index("method").loc["softpick"]
    assert row["runs_averaged"] == "seed 42" and row["n_seeds"] == 3 and len(row["run_ids"].split()) == 3
    assert row["climb_avg_all_seeds"] == pytest.approx(0.4919, abs=5e-5)
    assert row["climb_avg_sd_all_seeds"] == pytest.approx(0.00133, abs=2e-5)
    assert table.cell("geglu_ffn", "climb_avg_sd_all_seeds").word == "one seed"


def test_every_number_has_its_runs_and_every_run_its_facts(published, table):
    frames = published.load(*GROUPS)
    facts = collect_provenance(table, frames, write_table.to_csv(table))
    for row in table.rows:
        for column in table.columns:
            if column.kind == "reproduced":
                assert facts["cells"][row["method"].value][column.name], (row["method"].value, column.name)
    assert facts["cells"]["softpick"]["climb_avg"] == ["transfer/base/softpick/s42"]
    assert set(facts["cells"]["softpick"]["z"]) == {"transfer/base/softpick/s42"} | {
        f"transfer/base/baseline/s{seed}" for seed in (42, 43, 44)
    }
    for key, run in facts["runs"].items():
        assert run["run_id"] == published.study.runs[key].spec.run_id == run["spec_sha256"][:16]
        assert run["data_fingerprint"] and run["git_commit"] and run["packages"]["torch"] and run["scores_sha256"]
    json.dumps(facts, allow_nan=False)


def test_diverged_and_missing_are_words_in_rows_that_stay(tmp_path):
    world = World(tmp_path, "demo")
    for seed, value in ((42, 0.30), (43, 0.31)):
        world.completed("base", "baseline", seed, tasks_of(value), 5.0, source="proxy")
    world.completed("base", "softpick", 42, tasks_of(0.32), 4.9, source="proxy")
    world.completed("base", "geglu_ffn", 42, None, 4.9)
    world.diverged("base", "ssmax", 42, 7, [(5, 1.0), (6, 9.0), (7, math.nan)])
    table = table2(world.load(*GROUPS), world.study, PUBLISHED)
    rows = table.frame.set_index("method")
    assert len(rows) == 20 and rows.index[0] == "softpick"
    for method, word in (("ssmax", "diverged"), ("hyper", "missing")):
        assert rows.loc[method, "outcome"] == word and rows.loc[method, NUMBERS].isna().all()
        assert {table.cell(method, name).word for name in NUMBERS} == {word}
    assert table.cell("geglu_ffn", "climb_avg").word == "missing" and rows.loc["geglu_ffn", "validation_loss"] == 4.9
    assert rows.loc["baseline", "outcome"] == "completed 2, missing 4" and rows.loc["baseline", "n_seeds"] == 2
    # The family stays at 19: methods without a value were tried.
    assert rows.loc["softpick", "p_bonferroni"] == pytest.approx(min(1.0, 19 * rows.loc["softpick", "p"]))
    assert "4 of its 6 seeds" in table.notes[0]
    markdown = write_table.to_markdown(table)
    assert "Preset: demo" in markdown and "Stand-in: 12 of 12 tasks" in markdown
    assert rows.loc["softpick", "task_source"] == "proxy for 12 of 12 tasks"
    assert any("slightly too small" in note for note in table.notes)


def test_without_a_floor_there_is_no_z(tmp_path):
    world = World(tmp_path, "smoke")
    world.completed("base", "baseline", 42, tasks_of(0.30), 5.0)
    world.completed("base", "softpick", 42, tasks_of(0.32), 4.9)
    table = table2(world.load(*GROUPS), world.study, PUBLISHED)
    assert {table.cell("softpick", name).word for name in ("z", "p", "p_run_vs_seeds")} == {"no noise floor"}
    assert table.cell("softpick", "climb_avg_delta").value == pytest.approx(0.02)


def test_another_run_in_directory_is_error_that_names_both(tmp_path):
    world = World(tmp_path, "demo")
    world.completed("base", "baseline", 42, tasks_of(0.30), 5.0)
    path = tmp_path / "runs/transfer/base/baseline/s42/outcome.json"
    path.write_text(path.read_text().replace(world.study.runs["transfer/base/baseline/s42"].spec.run_id, "f" * 16))
    with pytest.raises(PlumblineError, match=r"is of run f{16}, but transfer/base/baseline/s42 is run [0-9a-f]{16}"):
        world.load(*GROUPS)


def test_a_climb_avg_that_is_no_mean_is_refused(tmp_path):
    world = World(tmp_path, "demo")
    world.completed("base", "baseline", 42, tasks_of(0.30), 5.0)
    spec = world.study.runs["transfer/base/baseline/s42"].spec
    world.scores(spec, pd.Series({"piqa": 0.5, "boolq": 0.7, "climb_avg": 0.5}), "benchmark")
    with pytest.raises(PlumblineError, match=r"climb_avg is 0\.5.*its 2.*is 0\.6"):
        world.load(*GROUPS)


def test_golden_renderings(published, table):
    markdown = [" ".join(line.split()) for line in write_table.to_markdown(table).splitlines()]
    softpick = next(line for line in markdown if line.startswith("| Softpick"))
    x = base_value(read_printed_rows("table2")[0])
    assert f"| {x:.4f}<br>(0.4922) | +0.0093<br>(+0.009) | +4.47<br>(+4.47) | 1.5e-04<br>(1.5e-4) |" in softpick
    head = next(number for number, line in enumerate(markdown) if line.startswith("| Method"))
    assert markdown[head].startswith("| Method | CLIMB-avg | Δ | z | p_Bonf | significance |")
    assert markdown[0].endswith("sorted by CLIMB-avg. Preset paper.") and markdown[2].startswith(
        "Significant (Bonferroni): 3 of 19 methods differ from Baseline on other seeds"
    )
    assert any(line.startswith("- Preset: paper. Sizes and budget") for line in markdown[head:])
    latex = write_table.to_tex(table)
    relu = next(line for line in latex.splitlines() if line.startswith("ReLU$^2$ & "))
    assert all(rf"{ours} \\ ({printed})" in relu for ours, printed in (("0.4878", "0.4878"), ("0.35", "0.35")))
    assert relu.index("(+2.36)") < relu.index("not significant (item sampling)") and r"\bottomrule" in latex
    assert "1.2B, sorted by CLIMB-avg. Preset paper." in latex and "Pooled" not in latex
    assert "Preset: paper" in write_table.to_tex_notes(table) and "Pooled" in write_table.to_tex_notes(table)
    sigmoid = next(line for line in markdown if line.startswith("| Sigmoid"))
    assert "| -77.68<br>(-77.68) | <1e-300<br>(<1e-7) |" in sigmoid  # its p underflows; no p is zero
    everything = write_table.to_tex_all(table)
    assert r"$<10^{-300}$ \\ ($<10^{-7}$)" in everything and r"worse & $<10^{-300}$ \\" in everything
    notes = [line for line in markdown if line.startswith("- ")]
    assert "[table2.provenance.json](table2.provenance.json) names them" in notes[-2]
    assert notes[-1] == "- [table2.csv](table2.csv) has 39 more columns."
    assert "<1e-300: p p_bonferroni p_holm p_bh p_items p_items_bonferroni; <1e-7: p_bonferroni_published" in (
        write_table.to_csv(table)
    )


def test_the_verb_writes_a_tables_files(published, tmp_path, repository):
    out = tmp_path / "results" / "transfer" / "table2.csv"
    options = ("--preset", "paper", "--work", published.root, "--out", out)
    process = run_in_process.run(results.main, "table", "transfer", "table2", *options, cwd=repository)
    assert process.returncode == 0, process.stderr
    assert sorted(path.name for path in out.parent.iterdir()) == [
        "table2.all.tex", "table2.csv", "table2.md", "table2.notes.tex", "table2.provenance.json", "table2.tex"
    ]  # fmt: skip
    assert len(pd.read_csv(out)) == 20
    assert "row softpick, column p_bonferroni: " in trace_cell(out, "softpick", "p_Bonf"), "by the paper's heading"
    result = run_in_process.run(results.main, "show", out, cwd=repository)
    assert result.returncode == 0 and result.stdout.startswith("Significant") and "Softpick" in result.stdout
    wrong = run_in_process.run(results.main, "table", "transfer", "tabel2", *options, cwd=repository)
    assert wrong.returncode == 1 and wrong.stderr.startswith(
        "error: studies/transfer/study.yaml: targets: no table 'tabel2'; did you mean 'table2'"
    )
