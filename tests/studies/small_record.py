"""Reads a kept record of small models by a few lines of numpy, for tests of what pages tell beside the verdicts."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

ROOT = Path(__file__).resolve().parents[2]
FIRST_SEED = 101


@dataclass(frozen=True)
class SmallRecord:
    """`files`: `runs/SIZE/METHOD/sSEED/FILE`, or `probes/...` -> content."""

    files: dict[str, bytes]

    def read_file(self, size: str, method: str, seed: int, name: str) -> dict[str, Any]:
        """The content of a file of a run."""
        content: dict[str, Any] = json.loads(self.files[f"runs/{size}/{method}/s{seed}/{name}"])
        return content

    def read_outcomes(self, size: str, method: str, count: int) -> list[dict[str, Any]]:
        """How the runs of a method's first seeds ended."""
        seeds = range(FIRST_SEED, FIRST_SEED + count)
        return [self.read_file(size, method, seed, "outcome.json") for seed in seeds]

    def read_losses(self, size: str, method: str, count: int) -> np.ndarray:
        """Final validation losses of a method's first seeds."""
        return np.array([outcome["validation_loss"] for outcome in self.read_outcomes(size, method, count)])

    def read_probes(
        self,
        size: str,
        method: str,
        count: int,
        probe: str,
        fraction: float,
        layers: Collection[int] = (),
        column: str = "value",
    ) -> np.ndarray:
        """Means over layers (empty: all that there are) of a probe at a fraction of training, of the first seeds."""
        values = []
        for seed in range(FIRST_SEED, FIRST_SEED + count):
            frame = pd.read_parquet(io.BytesIO(self.files[f"probes/{size}/{method}/s{seed}/probes.parquet"]))
            rows = frame[(frame["probe"] == probe) & np.isclose(frame["fraction"], fraction, atol=1e-6)]
            values.append((rows[rows["layer"].isin(layers)] if layers else rows)[column].mean(skipna=False))
        return np.array(values)

    def read_curve(self, size: str, method: str, seed: int, split: str) -> pd.Series:
        """A run's losses of a split (`train` or `validation`), by step."""
        frame = pd.read_parquet(io.BytesIO(self.files[f"runs/{size}/{method}/s{seed}/metrics.parquet"]))
        return frame[frame["split"] == split].set_index("step")["loss"]

    def list_files(self, size: str, name: str) -> list[dict[str, Any]]:
        """The content of a file of all runs of a size."""
        paths = [path for path in self.files if path.startswith(f"runs/{size}/") and path.endswith(f"/{name}")]
        return [json.loads(self.files[path]) for path in paths]

    def measure_minutes(self, size: str) -> float:
        """How long the runs of a size took, two at a time."""
        return sum(each["wall_seconds"] for each in self.list_files(size, "manifest.json")) / 2 / 60


@cache
def read_record(study: str) -> SmallRecord:
    """The only record of a study's small models."""
    (bundle_path,) = ROOT.glob(f"records/evening-{study.replace('_', '-')}-*/bundle.tar.xz")
    files = {}
    with tarfile.open(bundle_path) as bundle:
        for member in bundle:
            folder, inside, path = member.name.partition(f"/{study}/")
            if inside and path.endswith(("outcome.json", "manifest.json", "metrics.parquet", "probes.parquet")):
                content = bundle.extractfile(member)
                assert content is not None
                files[f"{folder.rpartition('/')[2]}/{path}"] = content.read()
    return SmallRecord(files)


def read_page(study: str) -> str:
    """What a study's page tells beside the verdicts."""
    page = (ROOT / f"studies/{study}/small_models.md").read_text(encoding="utf-8")
    return page.partition("## Beside the verdicts")[2]


def bound_mean(gains: np.ndarray, level: float = 0.025) -> tuple[float, float]:
    """One-sided bounds of a mean, by Student's t."""
    margin = stats.t.isf(level, len(gains) - 1) * gains.std(ddof=1) / np.sqrt(len(gains))
    return gains.mean() - margin, gains.mean() + margin
