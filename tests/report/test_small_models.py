"""What the page states of small models is what the studies' files say, and their noise is that of the kept records."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from msgspec import structs

from plumbline.bundle import archive
from plumbline.core.errors import PlumblineError
from plumbline.report import small_models
from plumbline.specs import small_file, small_runs

ROOT = Path(__file__).resolve().parents[2]
RECORD = "evening-38f80c4"


@pytest.mark.parametrize(("name", "scale"), [("loss_base", "base"), ("loss_large", "large")])
def test_the_noise_of_runs_is_the_records(name: str, scale: str) -> None:
    noise = small_file.load_small("transfer").noise[name]
    table = read_order()
    own, seeds = table[f"spread_of_own_seeds_{scale}"], table[f"seeds_{scale}"]
    df = (seeds - 1).where(own.notna(), 0)
    sigma = np.sqrt((own.pow(2) * df).sum() / df.sum())
    assert (noise.sigma, noise.df) == (pytest.approx(sigma, rel=2e-3), df.sum())


def read_order() -> pd.DataFrame:
    name = "results/evening/transfer/order_across_scales.csv"
    content = archive.read_file(ROOT / f"records/{RECORD}/bundle.tar.xz", name)
    return pd.read_csv(io.BytesIO(content)).set_index("method")


def test_tuned_methods_are_the_resolved_and_five_others() -> None:
    small = small_file.load_small("transfer")
    methods = {*small.tuned_arms["base"]} - {"baseline"}
    resolved = read_order()["resolved_base"].isin(["lower", "higher"])
    assert len(methods) == 12 and set(resolved[resolved].index) <= methods and int(resolved.sum()) == 7


def test_the_pages_list_what_the_files_state(tmp_path: Path) -> None:
    sections = small_models.describe_studies(tmp_path / "counts.json")
    assert len(sections) == 6
    for path, section in sections.items():
        page = path.read_text(encoding="utf-8")
        assert small_models.replace_section(page, section, path) == page, (
            "python -m plumbline.report.small_models --write"
        )


def test_each_statement_is_on_both_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page of all has its sentence and verdict words by size; the study's own its statistic and what speaks
    against it, and what is not asked with the reason."""
    small = small_file.load_small("quack")
    every = {(each.id, small.sizes[size].label): "seen" for each in small.statements for size in each.sizes}
    list_verdicts = small_models.list_verdicts
    monkeypatch.setattr(
        small_models, "list_verdicts", lambda of, root: every if of.study == "quack" else list_verdicts(of, root)
    )
    sections = small_models.describe_studies(tmp_path / "counts.json")
    own = " ".join(sections[ROOT / "studies/quack/small_models.md"].split())
    rows = [line for line in sections[ROOT / small_models.PAGE].splitlines() if line.startswith("| [quack](")]
    assert len(rows) == len(small.statements)
    for statement, row in zip(small.statements, rows, strict=True):
        assert statement.idea.removesuffix(".") in row
        assert row.endswith("| seen at every size |")
        assert f"{statement.statistic[1:]}: " in own and f"Against it: {statement.counts_against}." in own
    assert all(" ".join(each.why.split()) in own for each in small.not_asked)
    assert "1.04B MHA and 1.00B MLA parameters" in own


def test_a_study_without_runs_is_one_line_of_the_page_of_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_models, "_read_rows", lambda study, root: [])
    page = small_models.describe_studies(tmp_path / "counts.json")[ROOT / small_models.PAGE]
    (row,) = [line for line in page.splitlines() if line.startswith("| [quack](")]
    assert row.endswith("| 7 statements | not run |")


def test_a_kept_picture_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_models.study_folders, "folder", lambda study, root: tmp_path)
    assert "results/evening/quack/small_gains.png" in small_models.describe_picture("quack", ROOT)
    (tmp_path / small_models.PICTURE).write_text("<svg/>")
    assert small_models.describe_picture("quack", ROOT).endswith("](small_gains.svg)")


def test_a_text_of_several_lines_is_one_line_of_the_table() -> None:
    """`idea: >` ends in a line break, which ended the row."""
    assert small_models.join_cells("It ends\nlower.\n", "a|b") == "| It ends lower. | a\\|b |"


def test_a_page_without_its_marks_is_refused() -> None:
    with pytest.raises(PlumblineError, match=r"docs/small-models.md: .*small_models --write"):
        small_models.replace_section("# A page\n", "text", small_models.PAGE)


def test_a_study_without_a_page_gets_one(tmp_path: Path) -> None:
    path = tmp_path / "cooler" / small_models.STUDY_PAGE
    page = small_models.replace_section(small_models.read_page(path), "said", path)
    assert page.startswith("# What small models say of cooler\n") and "\n\nsaid\n\n" in page


def test_power_is_of_the_stated_noise() -> None:
    """Ten times the noise is seen less, by the mean and at both ends; of a pilot nothing is said."""
    small = small_file.load_small("transfer")
    gains = next(statement for statement in small.statements if statement.test == "t" and statement.noise)
    power, low, high = small_models.compute_power(gains, small, "base")
    assert low < power <= high
    noise = {name: structs.replace(entry, sigma=10 * entry.sigma) for name, entry in small.noise.items()}
    assert small_models.compute_power(gains, structs.replace(small, noise=noise), "base")[0] < 0.2 < power
    assert small_models.compute_power(small_file.load_small("key_norms").statements[0], small, "base") is None


def test_a_run_that_two_statements_need_is_priced_once(tmp_path: Path) -> None:
    small = small_file.load_small("key_norms")
    count, hours = small_models.estimate_hours(small, tmp_path / "counts.json")
    stated = small_runs.list_stated_runs(small_runs.load_definition(small), small)
    assert count == len({run.spec.run_id for run in stated}) < len(stated) and 0.5 < hours < 5
