"""An exported baseline scores the same through the harness's own `hf` model as through our adapter."""

from __future__ import annotations

from pathlib import Path

import pytest
from tokenizers import Tokenizer

from plumbline.evaluate import harness_tasks
from plumbline.evaluate.harness_model import CheckpointLM
from plumbline.model.export import hf_export
from plumbline.model.finished_run import FinishedRun
from plumbline.specs.suites import suite
from tests.evaluate.test_harness_model import requests


def logprobs(model, path: Path, task: str, limit: int) -> list[float]:
    """Log-probability of every choice of every item, in order."""
    results = harness_tasks.run(model, harness_tasks.leaves(suite("climb12").task(task), path, limit))
    return [value for sample in results["samples"][task] for value, _ in sample["filtered_resps"]]


@pytest.fixture
def both(finished: Path, tokenizer_file: Path, tmp_path: Path):
    """Our adapter, and the harness's model of the same weights in Hugging Face form."""
    from plumbline.evaluate.harness_hf_model import HuggingFaceLM

    run = FinishedRun.read(finished)
    hf_export.export(run.model(), tokenizer_path=tokenizer_file, directory=tmp_path / "llama")
    ours = CheckpointLM(run.model(), Tokenizer.from_file(str(tokenizer_file)), context=run.spec.model.context)
    theirs = HuggingFaceLM(pretrained=str(tmp_path / "llama"), device="cpu", dtype="float32", batch_size=8)
    assert theirs.max_length == ours.context
    return ours, theirs


@pytest.mark.parametrize("task", ["piqa", "winogrande", "lambada_openai", "arc_easy"])
def test_made_up_items(both, items_folder: Path, task: str):
    ours, theirs = (logprobs(model, items_folder / f"{task}.jsonl", task, 6) for model in both)
    assert len(ours) >= 6
    assert ours == pytest.approx(theirs, rel=1e-5, abs=1e-3)


def test_an_answer_longer_than_the_context(both):
    """The harness's own model ends there with an assertion without a message."""
    long = " ".join(f"harbour {number}" for number in range(60))
    pairs = requests(("Ships", f" {long}"), ("Ships", " harbour"), ("", long))
    ours, theirs = (model.loglikelihood(pairs, disable_tqdm=True) for model in both)
    assert len(both[0].tok_encode(long)) > 2 * both[0].context
    assert [greedy for _, greedy in ours] == [greedy for _, greedy in theirs]
    assert [score for score, _ in ours] == pytest.approx([score for score, _ in theirs], rel=1e-5, abs=1e-3)


def test_real_items(both, shared: Path):
    """Real questions are long for a context of 64 tokens, so most of them are cut on the left by both."""
    source = shared / "evaldata" / "piqa.jsonl"
    if not source.is_file():
        pytest.skip("no real items beside the repository")
    ours, theirs = (logprobs(model, source, "piqa", 24) for model in both)
    assert len(ours) == 48
    assert ours == pytest.approx(theirs, rel=1e-5, abs=1e-3)
