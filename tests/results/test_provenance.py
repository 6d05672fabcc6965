"""What a provenance file states about a run: what the target read, under the name that products have for it."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.provenance import collect_run_facts

KEY = "widths/tiny/wide/s1"


@pytest.mark.parametrize("read", [["scores"], ["scores", "examples"], ["probes"], []])
def test_it_names_what_was_read_and_not_what_happens_to_be_there(tmp_path: Path, read: list[str]) -> None:
    """Which other jobs of a plan were done by then is chance."""
    for folder, name in (("scores", "scores"), ("scores", "examples"), ("probes", "probes")):
        path = tmp_path / folder / KEY / f"{name}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"frame")
    runs = pd.DataFrame({"run_id": ["ab"], "outcome": ["completed"]}, index=[KEY])
    frames = RunFrames(
        work=tmp_path,
        runs=runs,
        scores=pd.DataFrame(),
        probes=pd.DataFrame(),
        manifests={KEY: {"spec": {"data": {"source": "hub"}}}},
        called="/scratch/demo",
        read=frozenset(read),
    )
    facts = collect_run_facts(frames, KEY)
    assert {name for name in ("scores", "examples", "probes") if name in facts} == set(read)
    assert facts["manifest"] == f"/scratch/demo/runs/{KEY}/manifest.json"
