"""Changes of a run's spec by an overlay."""

from __future__ import annotations

import copy

from plumbline.specs.spec_changes import overlay


def test_dictionaries_merge_and_a_renamed_component_replaces() -> None:
    base = {
        "model": {"width": 8, "mixer": {"name": "softmax_cap", "cap": 50.0}, "ffn": {"name": "swiglu"}},
        "probes": [1],
        "schedule": {"name": "cosine", "warmup_steps": 2, "floor": 0.1},
    }
    before = copy.deepcopy(base)
    same = overlay(base, {"model": {"mixer": {"cap": 30.0}}})
    result = overlay(base, {"model": {"mixer": {"name": "softmax_cap"}}})
    other = overlay(base, {"model": {"mixer": {"name": "softpick"}}, "probes": [2]})
    assert same["model"] == before["model"] | {"mixer": {"name": "softmax_cap", "cap": 30.0}}
    assert result == before
    assert other["model"]["mixer"] == {"name": "softpick"} and other["probes"] == [2]
    constant = overlay(base, {"schedule": {"name": "constant"}})["schedule"]
    assert constant == {"name": "constant", "warmup_steps": 2}, "what all schedules share stays"
    assert base == before, "the layers below are left alone"
