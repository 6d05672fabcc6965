"""A tokenizer that was replaced, its time kept, is refused before a job removes the scores that are there."""

from __future__ import annotations

import json
from pathlib import Path

from plumbline.core.files import sha256_file
from plumbline.operate.preflight import tokenizers
from plumbline.operate.preflight.dry_run import JobToRun
from tests.operate.preflight.made_up_plans import TRAIN, dry_run

SEEDS = ("42", "43")
SCORE = [JobToRun(rule="evaluate", wildcards=TRAIN.wildcards | {"seed": seed}) for seed in SEEDS]
TOKENIZER = JobToRun(rule="tokenizer", wildcards={"corpus": "climbmix"})


def test_finished_runs_are_compared_before_the_first_job(root: Path) -> None:
    plan = dry_run(root, *SCORE)
    paths = plan.project.paths
    tokenizer = Path(paths.tokenizer("climbmix"))
    tokenizer.parent.mkdir(parents=True)
    tokenizer.write_text("the one")
    for key in (f"transfer/base/baseline/s{seed}" for seed in SEEDS):
        folder = Path(paths.run(plan.project.runs[key]))
        folder.mkdir(parents=True)
        (folder / "outcome.json").write_text(json.dumps({"outcome": "completed"}))
        (folder / "manifest.json").write_text(json.dumps({"tokenizer_sha256": sha256_file(tokenizer)}))
    assert tokenizers.list_refusals(plan) == []
    tokenizer.write_text("another")
    (text,) = tokenizers.list_refusals(plan)
    assert text.startswith(f"{tokenizer} is not ") and f"{paths.work}/runs/transfer/base/baseline/s42 was " in text
    assert sha256_file(tokenizer) in text and text.endswith("(and so for 1 more runs)")
    assert tokenizers.list_refusals(dry_run(root, *SCORE, TOKENIZER)) == [], "it is made again, as it was"
    assert "s43 was trained with" in tokenizers.list_refusals(dry_run(root, *SCORE, TRAIN))[0], (
        "the other is trained anew"
    )
    tokenizer.unlink()
    assert tokenizers.list_refusals(plan) == []
