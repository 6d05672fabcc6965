"""What is stated about small models is what the kept record states."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest
from scipy.stats import t

from plumbline.bundle import archive
from plumbline.cli import ls
from plumbline.core.errors import PlumblineError
from plumbline.report import small_models
from plumbline.specs import small_file, study_config
from plumbline.stats.protocol_error import simulate_pooled_test

TABLE = "results/evening/transfer/order_across_scales"
METRICS = ("climb_avg", "validation_loss", "answer_logprob")


@pytest.fixture(scope="module")
def pictures(repository: Path) -> ModuleType:
    module_spec = importlib.util.spec_from_file_location("pictures", repository / "docs/_site/pictures.py")
    assert module_spec is not None and module_spec.loader is not None
    module = importlib.util.module_from_spec(module_spec)
    module_spec.loader.exec_module(module)
    return module


def test_the_page_quotes_the_table(repository: Path, pictures: ModuleType) -> None:
    page = (repository / "studies/transfer/small_models.md").read_text(encoding="utf-8")
    table = archive.read_file(pictures.RECORD / "bundle.tar.xz", f"{TABLE}.md").decode()
    quoted = re.findall(r"^> (.+)$", page, re.MULTILINE)
    assert len(quoted) == 6 and all(line in table.splitlines() for line in quoted)
    assert f"([{pictures.RECORD.name}](" in page and f"verify --rebuild records/{pictures.RECORD.name}" in page
    spread, freedom = re.search(r"1\.2M: pooled spread (\S+) nats \((\d+) degrees", table).groups()
    assert f"Spread of seeds: {spread} nats" in page and freedom == "43"


def test_the_page_shows_its_picture_in_light_and_dark(repository: Path) -> None:
    page = (repository / "docs/small-models.md").read_text(encoding="utf-8")
    dark, light = re.search(r'\(prefers-color-scheme: dark\)" srcset="(\S+)"><img .*src="(\S+)" alt="\S', page).groups()
    svg_texts = [(repository / "docs" / path).read_text(encoding="utf-8") for path in (dark, light)]
    assert all("<svg" in svg_text[:1000] for svg_text in svg_texts) and svg_texts[0] != svg_texts[1]


def test_the_pages_other_numbers_are_the_records(repository: Path, pictures: ModuleType) -> None:
    page = " ".join((repository / "studies/transfer/small_models.md").read_text(encoding="utf-8").split())

    def read_frame(name: str) -> pd.DataFrame:
        text = archive.read_file(pictures.RECORD / "bundle.tar.xz", f"results/evening/transfer/{name}.csv").decode()
        return pd.read_csv(io.StringIO(text))

    order, signals = read_frame("order_across_scales").set_index("method"), read_frame("signals").iloc[0]
    # Half an interval is the pooled spread's t times the error of three seeds against six.
    half, freedom = order["half_interval_95_base"].dropna().iloc[0], 43
    smallest_difference = half * t.isf(0.05 / 19 / 2, freedom) / t.isf(0.025, freedom)
    assert f"show a difference from {smallest_difference:.2f} nats on" in page
    for metric, digits, sentence in (
        ("validation_loss", 2, "shows one from {} on"),
        ("climb_avg", 3, "from {} on had each"),
    ):
        assert sentence.format(f"{signals[f'{metric}_smallest_significant_delta']:.{digits}f}") in page
    shares = [f"{signals[f'{name}_sigma_methods_over_sigma_seeds']:.1f}" for name in METRICS]
    assert f"spread {shares[0]} times as far" in page
    assert f"loss {shares[1]} times, by log-probability {shares[2]} " in page
    own = order.loc[["baseline", *order.index.drop("baseline")]]
    seeds = own["seeds_base"].astype(int).tolist()
    spreads = ([1.0] * len(own), own["spread_of_own_seeds_base"].tolist())
    alike, as_here = (100 * simulate_pooled_test(each, seeds, m=19) for each in spreads)
    assert f"different in {alike:.1f} % if they do, and in {as_here:.0f} % were their own spreads" in page
    resolved = read_frame("table2")["loss_resolved"].isin(["lower", "higher"])
    assert int(resolved.sum()) == 2 and "and resolves two." in page
    assert {"gated_attn_qknorm", "value_residual"} <= set(order.index[order["resolved_base"] == "not resolved"])


def test_the_table_of_the_study_is_the_records(repository: Path, pictures: ModuleType) -> None:
    table_bytes = (repository / "studies/transfer/small_models.csv").read_bytes()
    assert table_bytes == archive.read_file(pictures.RECORD / "bundle.tar.xz", f"{TABLE}.csv")


@pytest.mark.parametrize("study", ["key_norms", "premature", "quack", "query_free", "transfer"])
def test_a_kept_verdict_is_a_records(repository: Path, study: str) -> None:
    """The table that the pages read, and the picture that they show, are a record's, byte for byte; without a table
    nothing was run."""
    folder, small = repository / "studies" / study, small_file.load_small(study)
    if not (folder / small_models.TABLE).exists():
        assert set(small_models.list_verdicts(small, repository).values()) == {small_models.NOT_RUN}
    for name in (small_models.TABLE, small_models.PICTURE):
        if not (folder / name).exists():
            continue
        kept = []
        for record in repository.glob("records/evening-*/bundle.tar.xz"):
            with contextlib.suppress(PlumblineError):  # it has no such file
                kept.append(archive.read_file(record, f"results/evening/{study}/{name}"))
        assert (folder / name).read_bytes() in kept, f"{folder / name} is of no record's runs"


def test_ls_methods_says_by_how_much() -> None:
    differences = {
        row["method"]: row["loss against the baseline, small models"]
        for row in ls.list_rows("methods", "transfer", "demo")
    }
    assert set(differences) == set(study_config.load("transfer", "demo").methods)
    assert differences["softpick"] == "0.26 ± 0.07 lower at 1.2M" and differences["hyper"] == "not resolved"
    assert differences["baseline"] == "reference" and differences["hybrid_norm"].endswith("higher at 1.2M")
    assert not ls.list_rows("methods", "key_norms", "demo")[0]["loss against the baseline, small models"]


def test_the_pictures_are_the_records_and_their_dark_ones(pictures: ModuleType) -> None:
    for name in (*pictures.KEPT, *pictures.DRAWN):
        light = pictures.light(name)
        assert (pictures.ASSETS / f"{name}.svg").read_bytes() == light, "python docs/_site/pictures.py draws it again"
        dark = (pictures.ASSETS / f"{name}_dark.svg").read_bytes()
        assert dark == pictures.dark(light)
        assert not re.search(rb"#(ffffff|000000|dddddd)\b", dark), "nothing is left in the colours of a light page"
