"""What is settled before a try is run, whoever trains its arms."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from plumbline.experiment.decision.outcome import BASELINE, Session
from plumbline.operate.experiments.deciding import decide, settle_try
from plumbline.operate.experiments.place import Place
from tests.experiment.decision.test_loop import QUESTION, Numbers, noisy


@pytest.mark.parametrize(("session", "planned"), [("each", None), ("fdr", None), ("fwer", 2)])
def test_after_a_keep_no_session_has_a_bank_of_old_seeds(tmp_path: Path, session: Session, planned: int | None) -> None:
    """They were seen, and a bank that is bad by chance keeps more than one."""
    place = Place(pages=tmp_path / "pages", work=tmp_path, ledger=tmp_path / "ledger.jsonl", where="", first="")
    kept = replace(QUESTION, name="x", candidate="x")
    assert decide(place, settle_try(place, kept, Numbers(noisy(8), "x"), place.bank(), "base", {})).verdict == "keep"
    after = replace(QUESTION, session=session, planned=planned)
    settled = settle_try(place, after, Numbers(noisy(8)), place.bank(), "base", {})
    assert settled.plan.steps[0][0] == tuple((BASELINE, seed) for seed in range(47, 52))
