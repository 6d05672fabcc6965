"""What a run took is read from names that leave no doubt, in their units, and from nothing else."""

from __future__ import annotations

from plumbline.verdict.sources.measure_columns import read_measures


def test_names_of_trackers_and_trainers_are_read_in_their_units() -> None:
    cells = {"summary._runtime": "61.5", "total_tokens_M": "499.6", "num_params": "124,000,000", "peak_vram_mb": "1024"}
    measures = {"seconds": 61.5, "tokens": 499.6e6, "parameters": 124e6, "memory_bytes": 2**30}
    assert read_measures(cells | {"num_steps": 953}) == measures | {"step": 953.0}


def test_what_is_no_amount_or_could_be_another_thing_is_not_read() -> None:
    cells = {"seconds": "", "num_params": "124M", "peak_vram_mb": "0.0", "time": "12", "epoch": "5", "params": "x"}
    assert read_measures(cells) == {}
    assert read_measures({"seconds": "12"}, without=frozenset(("seconds",))) == {}, "the metric is no budget"
    assert read_measures({"total_seconds": "15", "training_seconds": "12"}) == {"seconds": 12.0}


def test_the_runtime_of_an_exported_table_is_in_seconds_and_of_another_one_of_no_known_unit() -> None:
    exported = {"Name": "base", "State": "finished", "Created": "2026-10-01T10:00:00.000Z", "Runtime": "61"}
    assert read_measures(exported) == {"seconds": 61.0}
    assert read_measures({"method": "base", "Runtime": "61", "runtime": "61"}) == {}
    assert read_measures({"ElapsedRaw": "300"}) == {"seconds": 300.0}
