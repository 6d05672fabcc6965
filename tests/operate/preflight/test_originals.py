"""What would be copied, reported or packed is the file that was made."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plumbline.core import fingerprint_file
from plumbline.core.files import sha256_file
from plumbline.operate.preflight import originals
from plumbline.results.tables.provenance import provenance_path


def job(rule: str, inputs: list[str], output: list[str] | None = None) -> Any:
    return SimpleNamespace(rule=SimpleNamespace(name=rule), input=inputs, output=output or [])


@pytest.mark.parametrize("rule", ["copy_figure", "report", "bundle"])
def test_another_file_is_refused_where_it_would_be_shown(root: Path, rule: str) -> None:
    folder = root / "results"
    folder.mkdir(exist_ok=True)
    for ending in (".png", ".csv"):
        (folder / f"fig{ending}").write_text("made")
    fingerprint_file.write(folder / "fig.png", "code", companions=[folder / "fig.csv"])
    files = [str(folder / name) for name in ("fig.png", "fig.csv", "plan.csv")]
    assert originals.list_refusals([job(rule, files)], str(folder)) == []
    (folder / "fig.csv").write_text("else")
    (refusal,) = originals.list_refusals([job(rule, files)], str(folder))
    assert f"{folder}/fig.csv" in refusal and "fig.fingerprint.json" in refusal and refusal.count("sha256") == 1
    assert originals.list_refusals([job("figure", [], files), job(rule, files)], str(folder)) == [], "it is made anew"
    assert originals.list_refusals([job("table", files)], str(folder)) == [], "who compares by itself"
    assert originals.list_refusals([job(rule, files)], str(root / "other")) == []


def test_a_file_of_a_table_stands_in_its_provenance(root: Path) -> None:
    table = root / "results/table2.csv"
    table.parent.mkdir(exist_ok=True)
    file = table.with_suffix(".all.tex")
    file.write_text("made")
    fingerprint_file.write_facts(provenance_path(table), {fingerprint_file.FILES: {file.name: sha256_file(file)}})
    shown = [job("copy_table", [str(file)])]
    assert originals.list_refusals(shown, str(root / "results")) == []
    file.write_text("else")
    (refusal,) = originals.list_refusals(shown, str(root / "results"))
    assert str(file) in refusal and "table2.provenance.json" in refusal
