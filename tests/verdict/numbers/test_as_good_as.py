"""`plumbline verdict --as-good-as` of a table: as good, worse by more than the margin, not decided, equal values."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from plumbline.core.errors import PlumblineError
from plumbline.verdict.__main__ import main
from plumbline.verdict.comparison_terms import ComparisonTerms
from plumbline.verdict.judge import judge
from plumbline.verdict.outcome import Outcome

TABLE = ["--metric", "loss", "--lower-is-better", "--baseline", "base", "--json"]


def write_table(path: Path, **means: float) -> Path:
    """Ten seeds a method, of a noise of 0.01; those that are named `copy` have the baseline's values."""
    rows = ["method,seed,loss"]
    for method, mean in {"base": 3.0, **means}.items():
        for seed in range(10):
            name = "base" if method == "copy" else method
            rows.append(f"{method},{seed},{mean + random.Random(f'{name}{seed}').gauss(0, 0.01):.6f}")
    path.write_text("\n".join(rows))
    return path


@pytest.mark.parametrize("margin", ["0.02", "2sigma"])
def test_each_method_is_as_good_or_worse_or_not_decided(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], margin: str
) -> None:
    table = write_table(tmp_path / "t.csv", same=3.0, better=2.9, worse=3.06, between=3.02)
    code = main([str(table), *TABLE, "--as-good-as", margin, "--exit-code-of", "same"])
    report = json.loads(capsys.readouterr().out)
    assert (code, report["verdict"]) == (0, "as good")
    assert report["outcomes"] == {"same": "as good", "better": "as good", "worse": "discard", "between": "undecided"}
    assert "2 are as good" in report["sentence"] and "1 is ruled out" in report["sentence"]
    assert main([str(table), *TABLE, "--as-good-as", margin, "--exit-code-of", "worse"]) == 10


def test_equal_values_of_equal_seeds_need_no_test(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = write_table(tmp_path / "t.csv", copy=3.0)
    assert main([str(table), *TABLE, "--as-good-as", "0.01sigma", "--exit-code-of", "copy"]) == 0
    assert "10 values are equal" in json.loads(capsys.readouterr().out)["sentence"]
    terms = ComparisonTerms(higher=False, alpha=0.025, as_good_as="0.001", minimum_gain=-0.001)
    two_digits = {str(seed): round(random.Random(seed).gauss(3, 0.01), 2) for seed in range(10)}
    assert judge("x", two_digits, two_digits, terms).outcome is Outcome.UNDECIDED, "equal by accident"


def test_what_asks_for_a_gain_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = write_table(tmp_path / "t.csv", same=3.0)
    for more in (["--minimum-gain", "0.1"], ["--target-gain", "1"], ["--claimed-gain", "1"]):
        with pytest.raises(SystemExit):
            main([str(table), *TABLE, "--as-good-as", "1sigma", *more])
        assert "leave out --minimum-gain" in capsys.readouterr().err
    log = tmp_path / "results.tsv"
    log.write_text("commit\tval_bpb\tstatus\tdescription\na\t1.0\tkeep\tstart\nb\t0.9\tkeep\tx\nc\t0.8\tkeep\ty\n")
    with pytest.raises(PlumblineError, match="--as-good-as is about methods"):
        main([str(log), "--metric", "val_bpb", "--lower-is-better", "--as-good-as", "0.1"])
