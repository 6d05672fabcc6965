"""Makes the table of alternatives, which all studies share: other meanings of what the paper leaves open, run.

Beside the loss stand CLIMB-avg and its z, by which the paper decides, and the share of parameters that Table 4 prints.
"""

from __future__ import annotations

import math

from plumbline.model.decoder import on_meta
from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.alternatives import RunMetric, make_alternatives
from plumbline.results.tables.table import Table, require_reference
from plumbline.specs import corpus
from plumbline.specs.spec_layers import make_spec
from plumbline.specs.study_config import Study
from plumbline.stats.noise_floor import noise_floor

from ..headline_runs import BASE, headline_runs

#: The size at which the paper prints shares of parameters.
SIZE = "paper"


def list_metrics(frames: RunFrames, study: Study, target: str) -> list[RunMetric]:
    """List CLIMB-avg, its z from the reference's seeds, and what of parameters is added at the paper's size."""
    reference = require_reference(study, target)
    floor = noise_floor(headline_runs(frames.select(BASE), reference, reference)["average"])
    entry, parameters = corpus.load(study.corpus, SIZE), dict[str, int]()

    def count(method: str) -> int:
        if method not in parameters:
            model = make_spec(study.definition, entry, SIZE, BASE, method, 0, study.file).model
            parameters[method] = sum(value.numel() for value in on_meta(model).parameters())
        return parameters[method]

    def average(key: str) -> float:
        return float(frames.runs.loc[key, "average"])

    def share(key: str) -> float:
        spec = study.every_run[key].spec
        return 100 * (count(spec.method) / count(reference) - 1) if spec.scale == BASE else math.nan

    def z(key: str) -> float:
        return float(floor.z(average(key))) if study.every_run[key].spec.scale == BASE else math.nan

    return [
        RunMetric(name="climb_avg", header="CLIMB-avg", format=".4f", read=average),
        RunMetric(name="z", header="z", format="+.2f", read=z),
        RunMetric(
            name="delta_params_pct_paper_size", header="ΔP at paper size (%)", format="+.2f", read=share, compared=False
        ),
    ]


def alternatives(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """One row for each run that is made on request, below the run that it changes."""
    return make_alternatives(frames, study, list_metrics(frames, study, "alternatives"))
