"""From a cell to its runs, and clear words where there is no such cell."""

from __future__ import annotations

import json
import shutil

import pytest

from plumbline.core import fingerprint_file
from plumbline.core.errors import PlumblineError
from plumbline.results.tables import write_table
from plumbline.results.tables.trace_cell import trace_cell
from plumbline.studies.transfer.tables.table2 import table2
from tests.studies.transfer.synthetic_runs import PUBLISHED


@pytest.fixture(scope="module")
def results(published, tmp_path_factory):
    folder = tmp_path_factory.mktemp("results") / "transfer"
    frames = published.load("base", "noise_floor")
    write_table.write(table2(frames, published.study, PUBLISHED), frames, folder / "table2.csv")
    return folder


def test_a_cell_leads_to_its_run_manifest_and_scores(published, results):
    text = trace_cell(results / "table2.csv", "softpick", "climb_avg")
    spec = published.study.runs["transfer/base/softpick/s42"].spec
    assert text.startswith("transfer table2, row softpick, column climb_avg: 0.4922")
    for part in (spec.run_id, "runs/transfer/base/softpick/s42/manifest.json", "git commit", "data fingerprint"):
        assert part in text
    assert "wall seconds     12.5" in text and "torch 2.13.0" in text and "lambada_openai" in text
    assert text.count("\nrun ") == 1


def test_a_z_leads_to_the_floor_too(results):
    text = trace_cell(results / "table2.csv", "softpick", "z")
    assert text.count("\nrun ") == 4 and "transfer/base/baseline/s44" in text


def test_published_cells_and_words(results):
    assert "as printed; see studies/transfer/published/table2.csv" in trace_cell(
        results / "table2.csv", "softpick", "z_published"
    )
    assert "comes from no run" in trace_cell(results / "table2.csv", "baseline", "label")


def test_a_printed_number_of_another_table_leads_to_its_file(results):
    text = trace_cell(results / "table2.csv", "softpick", "validation_loss_published")
    assert "2.4814" in text and "as printed; see studies/transfer/published/table7.csv" in text


@pytest.mark.parametrize(
    ("row", "column", "name"),
    [
        ("QK-Norm", "CLIMB-avg (reproduced)", "row qknorm, column climb_avg: 0.48"),
        ("qknorm", "CLIMB-avg (published)", "row qknorm, column climb_avg_published: 0.4882"),
        ("QK-Norm", "CLIMB-avg", "row qknorm, column climb_avg: 0.48"),
        ("qknorm", "p Holm", "row qknorm, column p_holm: 0.14"),
        ("qknorm", "Δ (reproduced)", "row qknorm, column climb_avg_delta: 0.005"),
    ],
)
def test_headings_and_labels_of_the_rendered_table_will_do(results, row, column, name):
    assert trace_cell(results / "table2.csv", row, column).startswith(f"transfer table2, {name}")


def test_a_word_stands_where_there_is_no_number(results):
    assert "row baseline, column p_bonferroni: reference\n" in trace_cell(
        results / "table2.csv", "baseline", "p_bonferroni"
    )
    assert "column p: 0.0 (<1e-300)\n" in trace_cell(results / "table2.csv", "sigmoid_attn", "p")
    assert "p_bonferroni_published: <1e-7\n" in trace_cell(results / "table2.csv", "ssmax", "p Bonferroni (published)")


def test_a_table_without_provenance_is_refused(results, tmp_path):
    shutil.copy(results / "table2.csv", tmp_path)
    with pytest.raises(PlumblineError, match="the origin of"):
        trace_cell(tmp_path / "table2.csv", "softpick", "z")


def test_a_table_that_changed_is_refused(results, tmp_path):
    for suffix in (".csv", ".provenance.json"):
        shutil.copy(results / f"table2{suffix}", tmp_path)
    with open(tmp_path / "table2.csv", "a", encoding="utf-8") as handle:
        handle.write("\n")
    with pytest.raises(PlumblineError, match="belongs to another state"):
        trace_cell(tmp_path / "table2.csv", "softpick", "z")


def test_a_changed_manifest_is_told(results, tmp_path):
    shutil.copy(results / "table2.csv", tmp_path)
    content = json.loads((results / "table2.provenance.json").read_text())
    key = "transfer/base/softpick/s42"
    content["runs"][key]["spec_sha256"] = "0" * 64
    fingerprint_file.write_facts(tmp_path / "table2.provenance.json", content)
    assert "CHANGED since" in trace_cell(tmp_path / "table2.csv", "softpick", "climb_avg")


@pytest.mark.parametrize(
    ("row", "column", "message"),
    [
        ("softpik", "z", "'softpik'; did you mean 'softpick'"),
        ("softpick", "climb_av", "column 'climb_av'; did you mean 'climb_avg'"),
        ("softpick", "p Hlom", "no column 'p Hlom'.*'p Holm'"),
        ("QKNorm", "z", "'QKNorm'; did you mean 'QK-Norm'"),
        ("softpick", "qqq", "no column 'qqq' .there are"),
    ],
)
def test_unknown_names_get_suggestions(results, row, column, message):
    with pytest.raises(PlumblineError, match=message):
        trace_cell(results / "table2.csv", row, column)


def test_a_table_that_is_not_there(tmp_path):
    with pytest.raises(PlumblineError, match="there is no table"):
        trace_cell(tmp_path / "table9.csv", "a", "b")


def test_a_provenance_that_was_edited_is_refused(results, tmp_path):
    for suffix in (".csv", ".provenance.json"):
        shutil.copy(results / f"table2{suffix}", tmp_path)
    path = tmp_path / "table2.provenance.json"
    facts = json.loads(path.read_text()) | {"cells": {}}
    path.write_text(json.dumps(facts))
    with pytest.raises(PlumblineError, match="as it was written"):
        trace_cell(tmp_path / "table2.csv", "softpick", "z")
    del facts["sha256_of_the_rest"]
    path.write_text(json.dumps(facts))
    with pytest.raises(PlumblineError, match="lacks 'sha256_of_the_rest': restore"):
        trace_cell(tmp_path / "table2.csv", "softpick", "z")
