"""How far a random matrix of each width stretches a vector at most: no run says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from plumbline.specs.study_config import Study


def stretch(study: Study, options: dict[str, Any], say: Callable[[str], None]) -> pd.DataFrame:
    """One row for each width of the feed-forward network: the largest singular value, over `draws` draws."""
    draw, rows = np.random.default_rng(options["seed"]), []
    for width in sorted({run.spec.model.ffn_width for run in study.runs.values()}):
        say(f"width {width}")
        values = [np.linalg.norm(draw.standard_normal((width, 32)), 2) for _ in range(options["draws"])]
        rows.append({"width": width, "largest": float(np.mean(values))})
    return pd.DataFrame(rows)
