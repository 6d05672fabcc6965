"""Another size of the evaluation is refused, another setting told; items are compared as their files state them."""

from __future__ import annotations

from plumbline.verdict.comparability import same_questions
from plumbline.verdict.comparability.check_answer import Answer, CheckAnswer
from plumbline.verdict.evidence import Evidence, ItemEvidence, RunEvidence
from tests.verdict.comparability.arms import compare

LR = {"lr": ("0.1",)}
TOKENS = {"val_tokens": ("10,485,760",)}


def of_runs(theirs: RunEvidence, ours: RunEvidence) -> CheckAnswer:
    return same_questions.check(compare([theirs], [ours]))


def test_a_shorter_evaluation_is_refused() -> None:
    base = RunEvidence(value=1.0, settings=LR, evaluation=TOKENS)
    shorter = of_runs(base, RunEvidence(value=1.0, settings=LR, evaluation={"val_tokens": ("1,048,576",)}))
    assert shorter.answer == Answer.REFUSES and "`new` was evaluated on fewer" in shorter.text
    faster = of_runs(base, RunEvidence(value=1.0, settings={"lr": ("0.3",)}, evaluation=TOKENS))
    assert faster.answer == Answer.TOLD
    assert "`new` changed, `lr` is `0.3`, there `0.1`" in faster.text
    assert of_runs(base, base).answer == Answer.HOLDS
    assert of_runs(base, RunEvidence(value=1.0)).answer == Answer.NOT_KNOWN


def test_other_prompts_are_refused() -> None:
    def of_items(prompt: str) -> CheckAnswer:
        models = {
            arm: Evidence(metric="acc", items={"t": {"1": ItemEvidence(1.0, "d", each, "y")}})
            for arm, each in (("base", "prompt:a"), ("new", prompt))
        }
        return same_questions.check(compare([], [], models=models))

    other = of_items("prompt:b")
    assert other.answer == Answer.REFUSES and "asked the same in `t`" in other.text
    same = of_items("prompt:a")
    assert same.answer == Answer.TOLD and same.text.endswith(": version of the task")
