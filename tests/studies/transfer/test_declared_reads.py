"""What each target declares in study.yaml is what it reads of the printed numbers: no more, no less."""

from __future__ import annotations

import pytest

from plumbline.results.runs.finished_runs import load
from plumbline.specs import study_config, study_parts
from tests.studies.transfer.synthetic_runs import PUBLISHED
from tests.studies.watched_numbers import Watched

TARGETS = study_config.load("transfer", "smoke").definition["targets"]


@pytest.mark.parametrize("target", list(TARGETS))
def test_a_target_reads_what_it_declares(published, target: str) -> None:
    entry, watched = TARGETS[target], Watched(PUBLISHED)
    frames = published.load(*entry["runs"]) if entry["runs"] else load([], published.root)
    study_parts.function("transfer", f"{entry['kind']}s", target)(frames, published.study, watched)
    assert watched.seen == set(entry["published"])
