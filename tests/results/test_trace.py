"""From a cell to its runs, and clear words where there is no such cell."""

from __future__ import annotations

import json
import shutil

import pytest

from plumbline.cli import PlumblineError
from plumbline.results import render
from plumbline.results.trace import trace
from plumbline.studies.transfer.tables import TABLES
from tests.studies.transfer.world import PUBLISHED


@pytest.fixture(scope="module")
def results(published, tmp_path_factory):
    folder = tmp_path_factory.mktemp("results") / "transfer"
    frames = published.load("base", "noise_floor")
    render.write(TABLES["table2"](frames, published.study, PUBLISHED), frames, folder / "table2.csv")
    return folder


def test_a_cell_leads_to_its_run_manifest_and_scores(published, results):
    text = trace(results / "table2.csv", "softpick", "climb_avg")
    spec = published.study.runs["transfer/base/softpick/s42"].spec
    assert text.startswith("transfer table2, row softpick, column climb_avg: 0.4922")
    for part in (spec.run_id, "runs/transfer/base/softpick/s42/manifest.json", "git commit", "data fingerprint"):
        assert part in text
    assert "wall seconds     12.5" in text and "torch 2.13.0" in text and "lambada_openai" in text
    assert text.count("\nrun ") == 1


def test_a_z_leads_to_the_floor_too(results):
    text = trace(results / "table2.csv", "softpick", "z")
    assert text.count("\nrun ") == 4 and "transfer/base/baseline/s44" in text


def test_published_cells_and_words(results):
    assert "as printed; see config/studies/transfer/published/table2.csv" in trace(
        results / "table2.csv", "softpick", "z_published"
    )
    assert "comes from no run" in trace(results / "table2.csv", "baseline", "label")


def test_the_alias_finds_its_provenance(results):
    alias = results.parent / "table2.csv"
    shutil.copy(results / "table2.csv", alias)
    assert "row qknorm" in trace(alias, "qknorm", "delta")


def test_a_table_that_changed_is_refused(results, tmp_path):
    for suffix in (".csv", ".provenance.json"):
        shutil.copy(results / f"table2{suffix}", tmp_path)
    with open(tmp_path / "table2.csv", "a", encoding="utf-8") as handle:
        handle.write("\n")
    with pytest.raises(PlumblineError, match="belongs to another state"):
        trace(tmp_path / "table2.csv", "softpick", "z")


def test_a_changed_manifest_is_told(results, tmp_path):
    shutil.copy(results / "table2.csv", tmp_path)
    content = json.loads((results / "table2.provenance.json").read_text())
    key = "transfer/base/softpick/s42"
    content["runs"][key]["spec_sha256"] = "0" * 64
    (tmp_path / "table2.provenance.json").write_text(json.dumps(content))
    assert "CHANGED since the table was made" in trace(tmp_path / "table2.csv", "softpick", "climb_avg")


@pytest.mark.parametrize(
    ("row", "column", "message"),
    [
        ("softpik", "z", "no row 'softpik'; did you mean 'softpick'"),
        ("softpick", "climb_av", "no column 'climb_av'; did you mean 'climb_avg'"),
        ("softpick", "qqq", "no column 'qqq' .there are"),
    ],
)
def test_unknown_names_get_suggestions(results, row, column, message):
    with pytest.raises(PlumblineError, match=message):
        trace(results / "table2.csv", row, column)


def test_a_table_that_is_not_there(tmp_path):
    with pytest.raises(PlumblineError, match="there is no table"):
        trace(tmp_path / "table9.csv", "a", "b")
