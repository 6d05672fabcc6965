"""Runs that are held in the place of others read as runs that were written."""

from __future__ import annotations

import pandas as pd

from tests.studies.premature import synthetic_runs as premature

CONTROL, OTHER, GONE = (f"premature/base/{name}/s42" for name in ("gpt", "gpt_slow", "gpt_swiglu"))


def test_held_runs_read_as_written_ones(tmp_path) -> None:
    def change(facts: premature.World) -> None:
        facts[CONTROL].outcome = "diverged"
        facts[OTHER].loss += 0.25
        facts[OTHER].tasks = {task: value + 0.01 for task, value in facts[OTHER].tasks.items()}
        del facts[GONE]

    facts = premature.make_published_facts()
    change(facts)
    written, held = premature.load_frames(premature.write_runs(facts, tmp_path)), premature.load_where(change)
    pd.testing.assert_frame_equal(held.runs, written.runs, check_dtype=False)
    for name in ("scores", "probes"):
        same = [getattr(frames, name).sort_values(["key"], kind="stable") for frames in (held, written)]
        pd.testing.assert_frame_equal(*(frame.reset_index(drop=True) for frame in same), check_dtype=False)
    assert (held.outcomes, held.manifests) == (written.outcomes, written.manifests)
    for key in (CONTROL, OTHER, GONE, "premature/large/gpt/s42"):
        pd.testing.assert_frame_equal(held.metrics(key), written.metrics(key), check_dtype=False)
