"""What is said of small models is what the kept record says."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from plumbline.bundle import archive
from plumbline.cli import ls
from plumbline.specs import study_config

TABLE = "results/evening/transfer/order_across_scales"


@pytest.fixture(scope="module")
def pictures(repository: Path) -> ModuleType:
    found = importlib.util.spec_from_file_location("pictures", repository / "docs/_site/pictures.py")
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_the_page_quotes_the_table(repository: Path, pictures: ModuleType) -> None:
    page = (repository / "docs/small-models.md").read_text(encoding="utf-8")
    table = archive.read_one(pictures.RECORD / "bundle.tar.xz", f"{TABLE}.md").decode()
    quoted = re.findall(r"^> (.+)$", page, re.MULTILINE)
    assert len(quoted) == 5 and all(line in table.splitlines() for line in quoted)
    assert f"([{pictures.RECORD.name}](" in page and f"records check {pictures.RECORD.name}" in page
    spread, freedom = re.search(r"1\.2M: pooled spread (\S+) nats \((\d+) degrees", table).groups()
    assert f"Spread of seeds: {spread} nats" in page and freedom == "43"


def test_the_table_of_the_study_is_the_records(repository: Path, pictures: ModuleType) -> None:
    kept = (repository / "studies/transfer/small_models.csv").read_bytes()
    assert kept == archive.read_one(pictures.RECORD / "bundle.tar.xz", f"{TABLE}.csv")


def test_ls_methods_says_by_how_much() -> None:
    found = {row["method"]: row["validation loss of small models"] for row in ls.rows("methods", "transfer", "demo")}
    assert set(found) == set(study_config.load("transfer", "demo").methods)
    assert found["softpick"] == "0.26 ± 0.07 lower at 1.2M" and found["hyper"] == "not resolved"
    assert found["baseline"] == "reference" and found["hybrid_norm"].endswith("higher at 1.2M")
    assert not ls.rows("methods", "key_norms", "demo")[0]["validation loss of small models"]


def test_the_pictures_are_the_records_and_their_dark_ones(pictures: ModuleType) -> None:
    light = pictures.light()
    assert (pictures.ASSETS / "method_differences.svg").read_bytes() == light
    dark = (pictures.ASSETS / "method_differences_dark.svg").read_bytes()
    assert dark == pictures.dark(light)
    assert not re.search(rb"#(ffffff|000000|dddddd)\b", dark), "nothing is left in the colours of a light page"
