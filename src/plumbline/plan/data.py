"""The data stage, roughly: seconds on the longest path, and disk. It runs on processors, and once for all runs."""

from __future__ import annotations

from pathlib import Path

from plumbline.plan.evaluation import bytes_per_token
from plumbline.project import Plan

#: Tokens of the corpora that packages hold, for packs of `all` sequences (counted; manifests' `available`).
CORPUS_TOKENS = {"packaged": 3.0e6, "packaged_large": 10.8e6}
#: Rates of one process, from the benchmark files of the demo's and mini's data stage on a busy two-core machine.
DOCUMENT_BYTES, TOKENIZER_BYTES, TOKENIZED, PACKED = 8e6, 4e6, 3e5, 4e7
#: Seconds of start-up of the five jobs on the path.
START_SECONDS = 15.0


def tokens(plan: Plan) -> float | None:
    """Tokens in the corpus that the packs need; None if the configuration does not tell."""
    packs = plan.preset["packs"]
    if "all" in packs.values():
        return CORPUS_TOKENS.get(plan.data_source)
    return (max(packs["base"], packs["large"]) + packs["validation"]) * max(plan.contexts, default=0)


def seconds(plan: Plan) -> float | None:
    """From nothing to packs, the tokenising scattered as the preset says; 0 once all packs are there."""
    if all(Path(plan.pack_manifest(run)).exists() for run in plan.runs.values()):
        return 0.0
    total = tokens(plan)
    if total is None:
        return None
    text = total * bytes_per_token(plan.preset["tokenizer"]["vocabulary"])
    training = plan.preset["tokenizer"]["training_megabytes"] * 1e6 / TOKENIZER_BYTES
    scattered = total / TOKENIZED / plan.preset["tokenize_shards"]
    return START_SECONDS + text / DOCUMENT_BYTES + training + scattered + len(plan.contexts) * total / PACKED


def disk_bytes(plan: Plan) -> float | None:
    """Documents, tokenised shards, and a pack for each context."""
    total = tokens(plan)
    if total is None:
        return None
    vocabulary = plan.preset["tokenizer"]["vocabulary"]
    return total * (bytes_per_token(vocabulary) + (2 if vocabulary <= 2**16 else 4) * (1 + len(plan.contexts)))
