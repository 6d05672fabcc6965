"""What is settled before a try is run, whoever trains its arms."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from plumbline.core.errors import PlumblineError
from plumbline.experiment.decision.outcome import BASELINE, Session
from plumbline.operate.experiments.carry_out_experiment import decide, settle_try
from plumbline.operate.experiments.experiment_folders import ExperimentFolders
from tests.experiment.decision.test_loop import QUESTION, NumbersTrainer, noisy


@pytest.fixture
def place(tmp_path: Path) -> ExperimentFolders:
    return ExperimentFolders(
        pages=tmp_path / "pages", work=tmp_path, ledger=tmp_path / "ledger.jsonl", where="", first=""
    )


@pytest.mark.parametrize(("session", "planned"), [("each", None), ("fdr", None), ("fwer", 2)])
def test_after_a_keep_no_session_has_a_bank_of_old_seeds(
    place: ExperimentFolders, session: Session, planned: int | None
) -> None:
    """They were seen, and a bank that is bad by chance keeps more than one."""
    kept = replace(QUESTION, name="x", candidate="x")
    assert (
        decide(place, settle_try(place, kept, NumbersTrainer(noisy(8), "x"), place.bank(), "base", {})).verdict
        == "keep"
    )
    after = replace(QUESTION, session=session, planned=planned)
    settled = settle_try(place, after, NumbersTrainer(noisy(8)), place.bank(), "base", {})
    assert settled.plan.steps[0][0] == tuple((BASELINE, seed) for seed in range(47, 52))


def test_a_claim_is_made_of_what_was_kept_and_of_nothing_else(place: ExperimentFolders) -> None:
    """Fresh seeds for what was discarded are a second chance."""
    lost = settle_try(place, QUESTION, NumbersTrainer(noisy(-3)), place.bank(), "base", {})
    assert decide(place, lost).verdict == "discard" and place.named(QUESTION.name).verdict == "discard"
    with pytest.raises(PlumblineError, match="x ended as 'discard', and only what a try kept is run again"):
        place.named(QUESTION.name, kept=True)
