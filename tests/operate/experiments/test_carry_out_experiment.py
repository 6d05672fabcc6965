"""What is settled before a try is run, whoever trains its arms."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plumbline.core.errors import PlumblineError
from plumbline.operate.experiments import __main__ as experiment_verbs
from plumbline.operate.experiments import past_experiments, study_verbs
from plumbline.operate.experiments.carry_out_experiment import decide, settle_try, with_own_page
from plumbline.operate.experiments.past_experiments import ExperimentFolders
from plumbline.verdict.decision.experiment import BASELINE, ArmRun, Decision, ExperimentQuestion, Session
from plumbline.verdict.decision.fix_design import write_rule
from plumbline.verdict.evidence import Evidence, RunEvidence
from tests.verdict.decision.test_loop import QUESTION, NumbersTrainer, noisy


@pytest.fixture
def place(tmp_path: Path) -> ExperimentFolders:
    return ExperimentFolders(
        pages=tmp_path / "pages", work=tmp_path, ledger=tmp_path / "ledger.jsonl", where="", first=""
    )


def source(place: ExperimentFolders, trainer: NumbersTrainer, **record: object) -> Any:
    namespace = SimpleNamespace(place=place, trainer=trainer, bank=place.bank(), baseline_name="base", record=record)
    namespace.look_again, namespace.arm_evidence = lambda decision: decision, Evidence(metric="loss")
    return namespace


def run_try(
    place: ExperimentFolders, question: ExperimentQuestion, trainer: NumbersTrainer, **record: object
) -> Decision:
    arms = source(place, trainer, **record)
    return decide(arms, settle_try(arms, question))


@pytest.mark.parametrize(("session", "planned"), [("each", None), ("fwer", 2)])
def test_after_a_keep_no_bank_of_old_seeds(place: ExperimentFolders, session: Session, planned: int | None) -> None:
    """They were seen, and a bank that is bad by chance keeps more than one."""
    question = replace(QUESTION, name="x", candidate="x")
    assert run_try(place, question, NumbersTrainer(noisy(8), "x")).verdict == "keep"
    after = replace(QUESTION, session=session, planned_tries=planned)
    settled = settle_try(source(place, NumbersTrainer(noisy(8))), after)
    assert settled.plan.steps[0][0] == tuple((BASELINE, seed) for seed in range(47, 52))


def test_a_longer_training_is_told(place: ExperimentFolders, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = {BASELINE: 10.0, "new": 24.0}
    monkeypatch.setattr(
        NumbersTrainer, "evidence", lambda _, run: replace(run.evidence, seconds=seconds.get(run.arm, 10.0))
    )
    question = replace(QUESTION, candidate="new")
    decision = run_try(place, question, NumbersTrainer(noisy(8), "new"))
    assert decision.verdict == "keep" and "took 2.4 times as long" in decision.comparability["equal budget"].text
    strict = replace(question, equal=("seconds",))
    assert strict.design_record == [*question.design_record, ["seconds"]], "records of other questions stay as they are"
    decision = run_try(place, strict, NumbersTrainer(noisy(8), "new"))
    assert decision.verdict == "cannot be judged" and "had to be equal" in decision.sentence
    assert place.read_decision(QUESTION.name).terms.equal == ("seconds",)
    equal = run_try(place, replace(strict, candidate="other"), NumbersTrainer(noisy(8), "other"))
    assert equal.verdict == "keep"


def test_a_broken_guard_withholds_a_keep(place: ExperimentFolders, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = {BASELINE: 1e9, "large": 1.4e9}
    seen_verdicts: list[str] = []

    def measure(_: NumbersTrainer, run: ArmRun) -> RunEvidence:
        grown = run.arm == "later" and run.seed >= 5000
        return replace(run.evidence, memory_bytes=2e9 if grown else memory.get(run.arm, 1e9))

    def run_fresh(decision: Decision) -> Decision:
        seen_verdicts.append(decision.verdict)
        if not decision.verdict.is_kept:
            return decision
        runs = [replace(run, seed=run.seed + 5000, value=(run.value or 0) + 0.3) for run in decision.runs]
        return replace(decision, fresh=tuple(runs))

    monkeypatch.setattr(NumbersTrainer, "evidence", measure)
    guarded = replace(QUESTION, guards={"memory_bytes": "<= 1.05x"})
    assert guarded.design_record == [*QUESTION.design_record, {"memory_bytes": "<= 1.05x"}]
    assert write_rule(guarded) == write_rule(QUESTION).replace(" at ", ", guards memory_bytes <= 1.05x at ")
    ends = {"same": ("keep", "keep"), "large": ("discard", "discard"), "later": ("keep", "discard")}
    for name, (first, last) in ends.items():
        arms = source(place, NumbersTrainer(noisy(8), name))
        arms.look_again = run_fresh
        question = replace(guarded, candidate=name, name=name)
        decision = decide(arms, settle_try(arms, question))
        assert (seen_verdicts.pop(), decision.verdict) == (first, last)
        assert place.read_decision(name).terms.guards == guarded.guards
        page = place.page(name).read_text()
        assert "\n| guards " in page and "withhold a keep: `memory_bytes <= 1.05x`" in page
        if last == "discard":
            assert decision.exit_code == 10 and decision.sentence.startswith(f"`{name}` improves `loss` by ")
            assert "and is not kept: its peak memory is" in decision.sentence
            assert "1.05 times is allowed" in decision.sentence
    slow = run_try(place, replace(guarded, candidate="worse"), NumbersTrainer(noisy(-3), "worse"))
    assert slow.verdict == "discard" and "not kept: its" not in slow.sentence, "guards decide of keeps alone"
    monkeypatch.setattr(NumbersTrainer, "evidence", lambda _, run: run.evidence)
    unknown = run_try(place, replace(guarded, candidate="silent"), NumbersTrainer(noisy(8), "silent"))
    assert unknown.exit_code == 13 and "peak memory is guarded" in unknown.sentence


def test_a_claim_is_made_of_what_was_kept_and_of_nothing_else(place: ExperimentFolders) -> None:
    """Fresh seeds for what was discarded are a second chance."""
    assert run_try(place, QUESTION, NumbersTrainer(noisy(-3))).verdict == "discard"
    assert place.read_decision(QUESTION.name).verdict == "discard"
    with pytest.raises(PlumblineError, match="ended as 'discard'"):
        place.read_decision(QUESTION.name, only_kept=True)


def test_an_edited_method_has_its_own_page(place: ExperimentFolders, capsys: pytest.CaptureFixture[str]) -> None:
    values = {"code 1": noisy(8), "code 2": noisy(-3)}
    for code, of in values.items():
        record = {"methods": ["base", code], "design": [5, 8]}
        question = with_own_page(replace(QUESTION, candidate="mine"), record)
        run_try(place, question, NumbersTrainer(of, code), **record)
    first, second = place.read_decision("1"), place.read_decision("2")
    assert [decision.asked["methods"][1] for decision in (first, second)] == list(values)
    assert place.read_decision("mine") == second
    past_experiments.print_log(argparse.Namespace(json=True, long=False), place)
    rows = json.loads(capsys.readouterr().out)["log"]
    assert [row["number"] for row in rows] == [1, 2] and all(row["gain"] for row in rows)
    for row, decision in zip(rows, (first, second), strict=True):
        assert decision.sentence in Path(row["page"]).read_text()


def test_an_edited_method_is_not_confirmed(
    place: ExperimentFolders, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    args = experiment_verbs.arguments().parse_args(["confirm", "softpick", "--preset", "smoke"])
    record = {"preset": "smoke", "study": "transfer", "mine": "", "methods": ["as it was", "as it was"], "design": []}
    record |= {"experiment": {"study": "transfer", "scale": "base", "method": "softpick", "against": "baseline"}}
    question = replace(QUESTION, name="softpick", candidate="softpick")
    trainer = NumbersTrainer(noisy(8), "softpick")
    assert run_try(place, question, trainer, **record).verdict == "keep"
    monkeypatch.setattr(study_verbs, "make_place", lambda project: place)
    with pytest.raises(PlumblineError, match=r"no longer.*plumbline"):
        study_verbs.confirm(args)
