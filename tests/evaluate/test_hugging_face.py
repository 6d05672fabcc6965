"""An exported baseline scores the same through the harness's own `hf` model as through our adapter."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from plumbline.evaluate import harness, schema
from plumbline.evaluate.adapter import CheckpointLM
from plumbline.evaluate.checkpoint import FinishedRun
from plumbline.model import hf
from plumbline.specs.suites import suite


def logprobs(model, path: Path, task: str, limit: int) -> list[float]:
    """Log-probability of every choice of every item, in order."""
    results = harness.run(model, harness.leaves(suite("climb12").task(task), path, limit))
    return [value for sample in results["samples"][task] for value, _ in sample["filtered_resps"]]


@pytest.fixture
def both(finished: Path, tokenizer_file: Path, tmp_path: Path):
    """Our adapter, and the harness's model of the same weights in Hugging Face form."""
    from lm_eval.models.huggingface import HFLM

    run = FinishedRun.read(finished)
    hf.export(run.model(), tokenizer_path=tokenizer_file, directory=tmp_path / "llama")
    ours = CheckpointLM(run.model(), Tokenizer.from_file(str(tokenizer_file)), context=run.spec.model.context)
    theirs = HFLM(pretrained=str(tmp_path / "llama"), device="cpu", dtype="float32", batch_size=8)
    assert theirs.max_length == ours.context
    return ours, theirs


@pytest.mark.parametrize("task", ["piqa", "winogrande", "lambada_openai", "arc_easy"])
def test_made_up_items(both, items_folder: Path, task: str):
    ours, theirs = (logprobs(model, items_folder / f"{task}.jsonl", task, 6) for model in both)
    assert len(ours) >= 6
    assert ours == pytest.approx(theirs, rel=1e-5, abs=1e-3)


def test_real_items(both, shared: Path, tmp_path: Path):
    """Real questions are long for a context of 64 tokens, so most of them are cut on the left by both.

    The harness's model refuses a choice that alone is longer than the context; such items are left out.
    """
    source = shared / "evaldata" / "piqa.jsonl"
    if not source.is_file():
        pytest.skip("no real items beside the repository")
    model = both[0]
    items = [
        item
        for item in schema.read("piqa", source, limit=100)
        if max(len(model.tok_encode(f" {item[key]}")) for key in ("sol1", "sol2")) <= model.context
    ]
    path = tmp_path / "piqa.jsonl"
    path.write_text("".join(json.dumps(item) + "\n" for item in items))
    ours, theirs = (logprobs(model, path, "piqa", 24) for model in both)
    assert len(items) >= 20
    assert ours == pytest.approx(theirs, rel=1e-5, abs=1e-3)
