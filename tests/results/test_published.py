"""The printed numbers: complete, readable as printed, and equal to the reference they came from."""

import csv

import pytest
import yaml

from plumbline.cli import PlumblineError
from plumbline.results.published import STUDIES, Published


@pytest.fixture(scope="module")
def published(repository):
    return Published(repository / "config" / "published")


def rows(path):
    if path.suffix == ".csv":
        with path.open(newline="", encoding="utf-8") as handle:
            return sum(1 for _ in csv.reader(handle)) - 1
    return len(yaml.safe_load(path.read_text(encoding="utf-8")))


def test_inventory_counts_every_file(published):
    with (published.root / "inventory.csv").open(newline="", encoding="utf-8") as handle:
        stated = {row["file"]: int(row["rows"]) for row in csv.DictReader(handle)}
    found = {path.relative_to(published.root).as_posix(): rows(path) for path in published.root.glob("*/*")}
    assert found == stated


def test_complete_against_the_reference(published, shared):
    reference = shared / "reference"
    if not reference.is_dir():
        pytest.skip("no reference numbers")
    files = [path for path in sorted(reference.glob("*/*")) if path.is_file()]
    assert len(files) >= 34
    different = [
        path.relative_to(reference).as_posix()
        for path in files
        if (published.root / path.relative_to(reference)).read_bytes() != path.read_bytes()
    ]
    assert different == []


@pytest.mark.parametrize("study", STUDIES)
def test_claims_setup_and_prose(published, study):
    claims = published.claims(study)
    assert len({claim.id for claim in claims}) == len(claims) > 20
    kinds = {"number", "sign", "order", "stat", "ratio", "qualitative"}
    assert all(claim.kind in kinds and claim.text and claim.source for claim in claims)
    # Own short words: a claim's text is a label, not a passage.
    assert max(len(claim.text) for claim in claims) < 160
    assert published.setup(study)
    for name, number in published.prose(study).items():
        float(number.text)
        assert number.source, name


def test_text_is_kept_as_printed_and_missing_stays_missing(published):
    table = published.table("transfer", "table2")
    assert table.loc["sandwich_norm", "climb_avg"] == "0.4880" and table["p_bonf"].isna().sum() == 4
    numbers = published.numbers("transfer", "table2")
    assert numbers["z"].dtype == "float64" and numbers["p_bonf"].isna().sum() == 4
    assert published.tables("premature") == sorted(f"table{i}" for i in range(1, 13))


def test_bad_input_is_named(published, tmp_path):
    with pytest.raises(PlumblineError, match="unknown study 'nobody'"):
        published.table("nobody", "table1")
    with pytest.raises(PlumblineError, match=r"table99.csv is missing"):
        published.table("transfer", "table99")
    with pytest.raises(PlumblineError, match="no published numbers at"):
        Published(tmp_path / "none")
    (tmp_path / "quack").mkdir()
    (tmp_path / "quack" / "claims.yaml").write_text("- {id: x, txet: y}\n")
    with pytest.raises(PlumblineError, match="entry 'x'"):
        Published(tmp_path).claims("quack")
    (tmp_path / "quack" / "setup.yaml").write_text("a: [\n")
    with pytest.raises(PlumblineError, match="not YAML"):
        Published(tmp_path).setup("quack")
