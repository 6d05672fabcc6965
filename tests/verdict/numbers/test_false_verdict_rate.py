"""The error rate that docs/statistics.md has of its own verdicts, drawn again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from plumbline.verdict.judge import judge_all
from tests.conftest import REPOSITORY


def test_a_file_of_nothing_is_seldom_crowned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are written, read and judged as the benchmark does it, which draws 2,000."""
    monkeypatch.syspath_prepend(REPOSITORY / "benchmarks")
    import numbers_verdict_rates as benchmark

    page = (REPOSITORY / "docs/statistics.md").read_text(encoding="utf-8")
    assert "2.5 % | 2.0 ± 0.3" in page
    assert "0.020 ± 0.003 |" in (REPOSITORY / "benchmarks/numbers_verdict_rates.md").read_text(encoding="utf-8")
    rng = np.random.default_rng(8)
    files = [benchmark.table_of(rng, tmp_path, (5, 3, 5), 0.0).values for _ in range(300)]
    comparisons = [judge_all(values, "base", benchmark.TERMS).values() for values in files]
    crowned = sum(any(map(benchmark.improves, each)) for each in comparisons)
    assert crowned <= stats.binom.ppf(0.999, len(files), 0.025)
