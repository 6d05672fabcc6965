"""What the page states of small models is what the studies' files say, and their noise is that of the kept records."""

from __future__ import annotations

import io
import json
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from plumbline.bundle import archive
from plumbline.core.errors import PlumblineError
from plumbline.report import small_models
from plumbline.specs import small_file, small_runs
from plumbline.specs.small_file import Noise

ROOT = Path(__file__).resolve().parents[2]
RECORDS = {"demo": "demo-9466a36", "evening": "evening-38f80c4"}


@cache
def read_record(preset: str, name: str) -> bytes:
    return archive.read_file(ROOT / f"records/{RECORDS[preset]}/bundle.tar.xz", f"work/{preset}/{name}")


def read_gains(quantity: str) -> list[np.ndarray]:
    """A quantity of the slowed run less that of its control, by seed, at both scales of the demo."""

    def read(scale: str, method: str, seed: int) -> float:
        run = f"premature/{scale}/{method}/s{seed}"
        if quantity == "validation_loss":
            return float(json.loads(read_record("demo", f"runs/{run}/outcome.json"))[quantity])
        rows = pd.read_parquet(io.BytesIO(read_record("demo", f"probes/{run}/probes.parquet")))
        # Of four layers the upper two, at 3 % of training.
        rows = rows[(rows["probe"] == quantity) & (rows["layer"] >= 2) & (rows["fraction"] == 0.03)]
        return float(rows["value"].mean())

    seeds = (42, 43, 44)
    return [
        np.array([read(scale, "gpt_slow", seed) - read(scale, "gpt", seed) for seed in seeds])
        for scale in ("base", "large")
    ]


def pool(samples: list[np.ndarray]) -> tuple[float, int]:
    df = sum(len(sample) - 1 for sample in samples)
    return float(np.sqrt(sum(((sample - sample.mean()) ** 2).sum() for sample in samples) / df)), df


@pytest.mark.parametrize(
    ("name", "quantity"),
    [
        ("slowed_loss", "validation_loss"),
        ("slowed_entropy", "entropy"),
        ("slowed_displacement", "bilinear_displacement"),
    ],
)
def test_the_noise_of_pairs_is_the_records(name: str, quantity: str) -> None:
    noise = small_file.load_small("premature").noise[name]
    sigma, df = pool(read_gains(quantity))
    assert (noise.sigma, noise.df, noise.of) == (pytest.approx(sigma, rel=2e-3), df, "contrast")


@pytest.mark.parametrize(("name", "scale"), [("loss_base", "base"), ("loss_large", "large")])
def test_the_noise_of_runs_is_the_records(name: str, scale: str) -> None:
    noise = small_file.load_small("transfer").noise[name]
    table = read_order()
    own, seeds = table[f"spread_of_own_seeds_{scale}"], table[f"seeds_{scale}"]
    df = (seeds - 1).where(own.notna(), 0)
    sigma = np.sqrt((own.pow(2) * df).sum() / df.sum())
    assert (noise.sigma, noise.df, noise.of) == (pytest.approx(sigma, rel=2e-3), df.sum(), "run")


def read_order() -> pd.DataFrame:
    name = "results/evening/transfer/order_across_scales.csv"
    content = archive.read_file(ROOT / f"records/{RECORDS['evening']}/bundle.tar.xz", name)
    return pd.read_csv(io.BytesIO(content)).set_index("method")


def test_tuned_methods_are_the_resolved_and_five_others() -> None:
    small = small_file.load_small("transfer")
    methods = set(small.statements[0].contrasts)
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
    assert row.endswith("| 6 statements | not run |")


def test_a_kept_picture_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_models.study_folders, "folder", lambda study, root: tmp_path)
    assert "results/evening/quack/small_gains.png" in small_models.describe_picture("quack", ROOT)
    (tmp_path / small_models.PICTURE).write_text("<svg/>")
    assert small_models.describe_picture("quack", ROOT).endswith("](small_gains.svg)")


def test_a_page_without_its_marks_is_refused() -> None:
    with pytest.raises(PlumblineError, match=r"docs/small-models.md: .*small_models --write"):
        small_models.replace_section("# A page\n", "text", small_models.PAGE)


def test_a_study_without_a_page_gets_one(tmp_path: Path) -> None:
    path = tmp_path / "cooler" / small_models.STUDY_PAGE
    page = small_models.replace_section(small_models.read_page(path), "said", path)
    assert page.startswith("# What small models say of cooler\n") and "\n\nsaid\n\n" in page


def test_power_is_of_the_stated_noise() -> None:
    """Ten times the noise is seen less, by the mean and at both ends; of a pilot nothing is said."""
    small = small_file.load_small("premature")
    loss, gated = small.statements[:2]
    power, low, high = small_models.compute_power(loss, small, "deep")
    assert low < power <= high
    noisy = {"slowed_loss": Noise(sigma=0.0342, df=4, of="contrast", runs="made up")}
    other = type(small)(
        study=small.study,
        sizes_of=small.sizes_of,
        sizes=small.sizes,
        noise=noisy | {name: noise for name, noise in small.noise.items() if name not in noisy},
        statements=small.statements,
        not_asked=small.not_asked,
    )
    assert small_models.compute_power(loss, other, "deep")[0] < 0.2 < 0.9 < power
    assert small_models.compute_power(gated, small, "deep") is None


def test_a_run_that_two_statements_need_is_priced_once(tmp_path: Path) -> None:
    small = small_file.load_small("key_norms")
    count, hours = small_models.estimate_hours(small, tmp_path / "counts.json")
    stated = small_runs.list_stated_runs(small_runs.load_definition(small), small)
    assert count == len({run.spec.run_id for run in stated}) < len(stated) and 0.5 < hours < 5
