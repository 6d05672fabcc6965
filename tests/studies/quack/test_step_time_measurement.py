"""The measurement of table 2: which runs are timed, and what its frame states about them."""

from __future__ import annotations

from typing import Any

import pytest

from plumbline.core.errors import PlumblineError
from plumbline.specs.study_config import Run, Study
from plumbline.studies.quack.measurements import step_time as module
from plumbline.studies.quack.measurements.step_time import step_time
from tests.model_specs import RUN, run_spec

NORMED = run_spec(study="quack", method="qk_norm.eta_0.003", model=RUN["model"] | {"query_key": {"name": "qk_norm"}})
PLAIN = run_spec(study="quack", method="default.eta_0.003", interventions=[{"name": "learning_rate_factor"}])
AGAIN = run_spec(study="quack", method="default.eta_0.003", init_seed=43)
RUNS = {spec.key: Run(spec=spec, groups=("mha",)) for spec in (NORMED, PLAIN, AGAIN)}
STUDY = Study(name="quack", preset="smoke", definition={}, runs=RUNS)
OPTIONS: dict[str, Any] = {
    "scale": "base",
    "methods": ["qk_norm.eta_0.003", "default.eta_0.003"],
    "sequences": 4,
    "micro_batch": 2,
    "repeats": 3,
    "warmup": 1,
    "device": "cpu",
}


def test_each_method_is_timed_in_every_repeat() -> None:
    frame = step_time(STUDY, OPTIONS, print)
    assert len(frame) == 6 and not frame.duplicated(["method", "repeat"]).any() and (frame.seconds > 0).all()
    assert set(frame.scale) == {"base"} and set(frame.sequences) == {4} and set(frame.micro_batch) == {2}
    norms = frame.groupby("method").norms_per_block.first()
    assert norms["qk_norm.eta_0.003"] - norms["default.eta_0.003"] == 2
    assert {"context", "precision", "place"} <= set(frame.columns)


def test_what_only_watches_is_not_timed_and_what_trains_is(monkeypatch: pytest.MonkeyPatch) -> None:
    timed_specs: list[Any] = []
    original = module.measure

    def measure(specs: Any, settings: Any, say: Any) -> Any:
        timed_specs.extend(specs)
        return original(specs, settings, say)

    monkeypatch.setattr(module, "measure", measure)
    step_time(STUDY, OPTIONS, print)
    assert [spec.init_seed for spec in timed_specs] == [42, 42]
    assert [entry["name"] for entry in timed_specs[1].interventions] == ["learning_rate_factor"]
    monkeypatch.setattr(module, "OBSERVERS", frozenset({"learning_rate_factor"}))
    step_time(STUDY, OPTIONS, print)
    assert timed_specs[3].interventions == ()


@pytest.mark.parametrize(
    "change, message",
    [
        ({"methods": ["qk_norm"]}, "no run 'qk_norm' at scale 'base'.*qk_norm.eta_0.003"),
        ({"scale": "mla"}, r"at scale 'mla' \(there are \[\]; "),
        ({"sequence": 4}, "'sequence'; did you mean 'sequences'"),
        ({"repeats": 0}, r"smoke\.repeats"),
    ],
)
def test_options_that_cannot_be_meant_are_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(PlumblineError, match=message):
        step_time(STUDY, OPTIONS | change, print)
