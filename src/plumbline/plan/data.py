"""Estimates the data stage roughly: seconds on the longest path, and disk.

It runs on processors, and once for all runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from plumbline.data.budget import MARGIN_PERCENT
from plumbline.plan.evaluation import bytes_per_token
from plumbline.project import Project
from plumbline.specs.study_config import Run

#: Tokens of the corpora that packages hold, for packs of `all` sequences (counted; manifests' `available`).
CORPUS_TOKENS = {"packaged": 3.0e6, "packaged_large": 10.8e6}
#: Rates of one process, from the benchmark files of the demo's and mini's data stage on a busy two-core machine.
DOCUMENT_BYTES, TOKENIZER_BYTES, TOKENIZED, PACKED = 8e6, 4e6, 3e5, 4e7
#: Seconds of start-up of the five jobs on the path.
START_SECONDS = 15.0


def tokens(project: Project, name: str) -> float | None:
    """Estimate how many tokens of a corpus its packs need; None if the configuration does not tell."""
    corpus = project.corpora[name]
    sizes = [*corpus.packs.values(), corpus.validation]
    known = [size for size in sizes if size is not None]
    if len(known) < len(sizes):
        return CORPUS_TOKENS.get(corpus.source)
    held_out = known.pop()
    return float((max(known) + held_out) * max(project.contexts[name], default=0))


def seconds(project: Project, runs: Iterable[Run]) -> float | None:
    """Estimate the wall seconds from nothing to the packs of `runs`; 0 once they are there.

    Tokenising is scattered over as many jobs as the preset says. Corpora are made side by side, so that the longest
    counts. None if the size of one is not known.
    """
    stages = [0.0]
    for name, theirs in _by_corpus(runs).items():
        if all(Path(project.paths.pack_manifest(run)).exists() for run in theirs):
            continue
        stage = _stage(project, name)
        if stage is None:
            return None
        stages.append(stage)
    return max(stages)


def disk_bytes(project: Project, runs: Iterable[Run]) -> float:
    """Estimate the bytes on disk of all corpora of `runs`; a corpus of unknown size is left out."""
    return sum(corpus_bytes(project, name) for name in _by_corpus(runs))


def corpus_bytes(project: Project, name: str) -> float:
    """Estimate the bytes on disk of a corpus: documents, tokenised shards, and a pack for each context.

    0 if its size is not known. Documents of a hub count twice, as they are while they are shuffled, with the margin
    that is read of them.
    """
    vocabulary = project.corpora[name].tokenizer.vocabulary
    entry = 2 if vocabulary <= 2**16 else 4
    copies = 1 + len(project.contexts[name])
    there = tokens(project, name) or 0.0
    read = project.inputs.budget_tokens(name)
    text = there if read is None else 2 * read * (100 + MARGIN_PERCENT) / 100
    return there * entry * copies + text * bytes_per_token(vocabulary)


def _stage(project: Project, name: str) -> float | None:
    total, tokenizer = tokens(project, name), project.corpora[name].tokenizer
    if total is None:
        return None
    text = total * bytes_per_token(tokenizer.vocabulary)
    training = tokenizer.training_megabytes * 1e6 / TOKENIZER_BYTES
    scattered = total / TOKENIZED / project.preset["tokenize_shards"]
    return START_SECONDS + text / DOCUMENT_BYTES + training + scattered + len(project.contexts[name]) * total / PACKED


def _by_corpus(runs: Iterable[Run]) -> dict[str, list[Run]]:
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(run.spec.data.corpus, []).append(run)
    return found
