"""Measurements: made by a study's own function, written with what they were made with, and remade when that changes."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from plumbline.core.errors import PlumblineError
from plumbline.core.run_files import MISSING
from plumbline.results.measurements import measurement_file
from plumbline.results.measurements import run_measurement as verb
from plumbline.results.runs.finished_runs import RunFrames, load
from plumbline.results.tables import write_table
from plumbline.results.tables.table import Cell, Column, Table, number_cell
from plumbline.results.tables.trace_cell import trace_cell
from plumbline.specs import code_hash, study_config
from plumbline.specs.measurement_code import hash_measurement
from plumbline.specs.study_config import Study
from plumbline.specs.yaml_files import ROOT
from tests.forget_caches import forget

SIXTH = Path(__file__).parents[1] / "workflow" / "sixth_study"
KEY = "measured/widths/stretch"


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """A project with the made-up study, whose code is found there."""
    shutil.copytree(SIXTH, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "config/corpora", tmp_path / "config/corpora")
    yield tmp_path
    forget(code_hash)


def study_of(root: Path) -> Study:
    return study_config.load("widths", "smoke", root)


def edit_file(root: Path, file: str, before: str, after: str) -> None:
    path = root / file
    assert before in path.read_text()
    path.write_text(path.read_text().replace(before, after, 1))
    forget(code_hash)


YAML = "studies/widths/study.yaml"
CODE = "studies/widths/measurements/stretch.py"


def make_measurement(root: Path) -> tuple[Path, list[str]]:
    """The measurement as the verb makes it, and what it printed meanwhile."""
    lines: list[str] = []
    out = measurement_file.frame_path(root / "work", KEY)
    verb.measure(study_of(root), "stretch", out, lines.append)
    return out, lines


def frames_of(root: Path, *names: str) -> RunFrames:
    return load([], root / "work", measurements={name: f"measured/widths/{name}" for name in names or ("stretch",)})


def test_a_frame_is_written_with_what_it_was_made_with(root: Path) -> None:
    out, lines = make_measurement(root)
    assert lines == ["width 32", "width 128"], "lines of progress"
    frame = frames_of(root).read_measurement("stretch")
    assert frame is not None and list(frame["width"]) == [32, 128] and (frame["largest"] > 5).all()
    facts = json.loads(out.with_suffix(".json").read_text())
    assert facts["fingerprint"] == hash_measurement(study_of(root), "stretch")
    assert facts["options"] == {"seed": 1, "draws": 2}, "the duration is not an option"
    assert (facts["study"], facts["measurement"], facts["preset"]) == ("widths", "stretch", "smoke")
    assert {"host", "device_name", "code", "git_commit", "lock_sha256", "started", "finished"} <= facts.keys()
    assert {"torch", "plumbline-lm"} <= facts["packages"].keys() and facts["device"] == "cpu" and facts["seconds"] >= 0
    make_measurement(root)
    assert (frames_of(root).read_measurement("stretch") == frame).all(axis=None)


@pytest.mark.parametrize(
    ("file", "before", "after", "remade"),
    [
        (YAML, "draws: 2", "draws: 3", True),
        (YAML, "model: {ffn_width: 128}", "model: {ffn_width: 64}", True),
        (YAML, "values: [3e-5, 0.04]", "values: [3e-5, 0.05]", True),
        (YAML, "duration: 1 min", "duration: 5 min", False),
        (YAML, "    runs: [all]", "    device: gpu\n    runs: [all]", False),
        (YAML, "label: Wide", "label: Broad", False),
        (YAML, "published: [losses], measurements", "published: [], measurements", False),
        (CODE, "np.mean(values)", "max(values)", True),
        (CODE, '    """One row', '    # A comment.\n    """A row', False),
        ("studies/widths/tables/losses.py", '".2f"', '".3f"', False),
    ],
)
def test_it_is_remade_when_its_parts_change(root: Path, file: str, before: str, after: str, remade: bool) -> None:
    first = hash_measurement(study_of(root), "stretch")
    edit_file(root, file, before, after)
    assert (hash_measurement(study_of(root), "stretch") != first) == remade


def test_code_that_it_imports_is_part_of_its_own(root: Path) -> None:
    lines = "from plumbline.model import roles\nfrom plumbline.stats.noise_floor import __doc__ as text\n"
    edit_file(root, CODE, "import numpy as np\n", f"import numpy as np\n{lines}")
    names = {path.name for path in code_hash.measurement_files(root / CODE)}
    loaded = sys.modules.get("plumbline.studies.widths.measurements")
    assert hash_measurement(study_of(root), "stretch") and (loaded is None or str(root) not in str(loaded.__file__))
    assert {"stretch.py", "roles.py", "noise_floor.py"} <= names
    assert not {"study_config.py", "table.py", "files.py", "spec.py"} & names


def test_it_sees_the_runs_that_it_names_and_no_others(root: Path) -> None:
    edit_file(root, YAML, "    runs: [all]\n    smoke", "    smoke")
    with pytest.raises(PlumblineError, match="a measurement needs rows"):
        make_measurement(root)
    assert not list((root / "work").rglob("*.*")), "nothing is left of it"


def test_none_is_returned_if_nothing_was_measured(root: Path) -> None:
    frames = frames_of(root)
    assert frames.read_measurement("stretch") is None and frames.identity(KEY) == MISSING
    with pytest.raises(PlumblineError, match=r"'strech'.*not among.*'stretch'"):
        frames.read_measurement("strech")


def test_a_frame_that_is_not_of_its_facts_is_refused(root: Path) -> None:
    out, _ = make_measurement(root)
    frames = frames_of(root)
    assert frames.identity(KEY) == hash_measurement(study_of(root), "stretch")
    measurement_file.require_present(out, frames.identity(KEY), KEY)
    with pytest.raises(PlumblineError, match=r"options.*measured/widths"):
        measurement_file.require_present(out, "0" * 16, KEY)
    facts = out.with_suffix(".json")
    whole = facts.read_text()
    facts.write_text(whole.replace('"draws": 2', '"draws": 3'))
    with pytest.raises(PlumblineError, match=r"stretch.json.*not as.*written"):
        frames.read_measurement("stretch")
    facts.write_text(whole)
    pd.DataFrame({"width": [1]}).to_parquet(out)
    with pytest.raises(PlumblineError, match=r"not the frame that .*stretch.json"):
        frames.read_measurement("stretch")
    facts.write_text("{}")
    with pytest.raises(PlumblineError, match=r"stretch.parquet was made"):
        frames.read_measurement("stretch")


@pytest.mark.parametrize(
    ("after", "message"),
    [
        ("return rows", "returned.*\\[{'width'"),
        ("return pd.DataFrame()", "measurement.*columns"),
        ("return pd.DataFrame({0: [1]})", "columns with names; it has \\[0\\]"),
        ("return pd.DataFrame({'a': [[1, 2]]})", "column 'a'"),
        ("return pd.DataFrame({'a': [1, 'x']})", "column.*measurement"),
    ],
)
def test_what_is_no_frame_of_numbers_is_refused(root: Path, after: str, message: str) -> None:
    edit_file(root, CODE, "return pd.DataFrame(rows)", after)
    with pytest.raises(PlumblineError, match=message):
        make_measurement(root)


def test_names_that_are_not_there(root: Path) -> None:
    with pytest.raises(PlumblineError, match=r"no 'strech'.*'stretch'"):
        verb.find_measurement(study_of(root), "strech")
    edit_file(root, CODE, "def stretch", "def stretched")
    with pytest.raises(PlumblineError, match="no function 'stretch'"):
        hash_measurement(study_of(root), "stretch")


def test_a_cell_leads_to_its_measurement(root: Path, tmp_path: Path) -> None:
    def table(value: float | None) -> Table:
        columns = [
            Column(name="row", header="Row", kind="label"),
            Column(name="largest", header="largest", kind="reproduced", format=".2f"),
        ]
        rows = [{"row": Cell("wide"), "largest": number_cell(value, MISSING, [KEY])}]
        return Table(
            name="t", title="T.", study="widths", preset="smoke", key="row", columns=columns, rows=rows, published=None
        )

    path = tmp_path / "t.csv"
    write_table.write(table(None), frames_of(root), path)
    assert "column largest: missing" in trace_cell(path, "wide", "largest")
    assert f"{KEY}\n  missing: this was not measured" in trace_cell(path, "wide", "largest")
    out, _ = make_measurement(root)
    write_table.write(table(7.0), frames_of(root), path)
    text = trace_cell(path, "wide", "largest")
    assert f"{KEY}  made of {hash_measurement(study_of(root), 'stretch')}" in text
    for part in ("options          draws 2, seed 1", "host", "device", "git commit", f"frame            {out}"):
        assert part in text, part
    out.write_bytes(b"")
    assert "CHANGED since" in trace_cell(path, "wide", "largest")


def test_the_page_of_interpretations_says_its_options(root: Path) -> None:
    from plumbline.results.interpretations import write_interpretations
    from plumbline.specs import corpus

    edit_file(root, YAML, "    smoke: {seed: 1", "    paper: {seed: 1, draws: 90}\n    smoke: {seed: 1")
    study = study_of(root)
    page = write_interpretations(study, corpus.load(study.corpus, "smoke", root=root))
    assert "- Measurement `stretch` has options.seed = 1, options.draws = 2.\n  At paper it has " in page
    assert "options.draws = 90" in page
