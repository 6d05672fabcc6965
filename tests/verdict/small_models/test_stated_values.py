"""A statement's number of a real run is what the record's files say, read by another way."""

from __future__ import annotations

import io
import json
import math
from functools import cache
from pathlib import Path

import pandas as pd
import pytest

from plumbline.bundle import archive
from plumbline.results.runs.finished_runs import RUN_COLUMNS, RunFrames
from plumbline.results.runs.stated_values import RunValues
from plumbline.specs import study_config
from plumbline.specs.small_file import Measure
from plumbline.specs.small_runs import StatedRun
from plumbline.specs.study_config import Study

RECORD = Path(__file__).resolve().parents[3] / "records/demo-9466a36/bundle.tar.xz"
GPT_SLOW, AS_PUBLISHED, QUACK = (
    "premature/base/gpt_slow/s42",
    "key_norms/base/as_published/s42",
    "quack/mha/default.eta_0.003/s42",
)
NEITHER, NORM = "loss_neither", "key_norm"
ENDS = {"column": NORM, "at": 1.0, "layers": "final", "less_layers": "early"}


@cache
def read_file(name: str) -> bytes:
    return archive.read_file(RECORD, f"work/demo/{name}")


def read_probes(key: str) -> pd.DataFrame:
    return pd.read_parquet(io.BytesIO(read_file(f"probes/{key}/probes.parquet")))


@cache
def find_study(name: str) -> Study:
    return study_config.load(name, "demo")


def read(key: str, measure: Measure) -> float:
    run = find_study(key.split("/")[0]).every_run[key]
    outcome = json.loads(read_file(f"runs/{key}/outcome.json"))
    row = dict.fromkeys(RUN_COLUMNS) | {"key": key, "outcome": outcome["outcome"]}
    runs = pd.DataFrame([row | {"validation_loss": outcome["validation_loss"]}]).set_index("key")
    scores = pd.DataFrame(columns=["key", "task", "metric", "value"])
    probes = read_probes(key).assign(key=key)
    frames = RunFrames(work=Path("work"), runs=runs, scores=scores, probes=probes, outcomes={key: outcome})
    stated = StatedRun(
        statement="made_up", size="base", arm="arm", rate=1.0, tuning=False, pilot=True, measured=None, spec=run.spec
    )
    return RunValues(frames).read(measure, [stated]).number


def mean(key: str, probe: str, fraction: float, layers: set[int] | None) -> float:
    values = [
        row.value
        for row in read_probes(key).itertuples()
        if row.probe == probe and row.fraction == fraction and (layers is None or row.layer in layers)
    ]
    return math.fsum(values) / len(values)


@pytest.mark.parametrize(
    ("key", "measure", "expected"),
    [
        (GPT_SLOW, {"column": "entropy", "at": 0.03, "layers": "upper"}, [("entropy", {2, 3})]),
        (GPT_SLOW, {"column": "lower_copy", "at": 0.2, "layers": "lower"}, [("lower_copy", {0, 1})]),
        (GPT_SLOW, {"column": NEITHER, "less": "loss", "at": 1.0, "layers": "all"}, [(NEITHER, None), ("loss", None)]),
        (AS_PUBLISHED, {"column": NORM, "at": 1.0, "layers": "middle"}, [(NORM, {2, 3})]),
        (AS_PUBLISHED, ENDS, [(NORM, {4, 5}), (NORM, {0, 1})]),
        (QUACK, {"column": "logit_change", "at": 1.0, "layers": "all"}, [("logit_change", None)]),
    ],
)
def test_a_probes_mean_is_that_of_its_rows(
    key: str, measure: dict[str, object], expected: list[tuple[str, set[int] | None]]
) -> None:
    at = measure["at"]
    assert isinstance(at, float)
    numbers = [mean(key, probe, at, layers) for probe, layers in expected]
    number = read(key, Measure(frame="probes", **measure))  # type: ignore[arg-type]
    assert number == pytest.approx(numbers[0] - sum(numbers[1:])) and number != 0


def test_a_loss_and_what_an_intervention_reports_are_the_outcomes() -> None:
    outcome = json.loads(read_file(f"runs/{GPT_SLOW}/outcome.json"))
    assert read(GPT_SLOW, Measure(frame="runs", column="validation_loss")) == outcome["validation_loss"]
    (slowing,) = outcome["interventions"]
    assert read(GPT_SLOW, Measure(frame="interventions", column="fraction")) == slowing["fraction"] > 0
    assert math.isnan(read(GPT_SLOW, Measure(frame="interventions", column="why"))), "a word of why it was released"
