"""Counts of models, which take seconds, made once a process."""

from __future__ import annotations

import json
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from plumbline.plan import model_counts
from plumbline.specs import study_config


def look_up_counts() -> model_counts.ModelCostLookup:
    """The costs of every model of the transfer study at paper size."""
    return model_counts.ModelCostLookup(_count())


def copy_counts(work: Path) -> None:
    """Put these counts where a plan of this `work` folder reads them."""
    (work / "counts.json").write_text(json.dumps(_count()))


@cache
def _count() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        return model_counts.update(
            Path(folder) / "counts.json", study_config.load("transfer", "paper").every_run.values()
        )
