"""Estimates the data stage: seconds on the longest path, CPU seconds, memory, and disk; and what its jobs ask for.

It runs on processors, and once for all runs. What a job takes goes by the laws of benchmarks/job_resources.yaml, and by
the speed of the disk that config/machines.yaml states.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import NamedTuple

from msgspec import structs

from plumbline.data import hub_read_budget, split
from plumbline.data.hub_read_budget import MARGIN_PERCENT
from plumbline.plan import machines
from plumbline.plan.job_needs import LEAST_MB, Need, bytes_per_token, need
from plumbline.project import Project
from plumbline.specs.corpus import Corpus
from plumbline.specs.study_config import Run

#: Tokens of the corpora that packages hold, for packs of `all` sequences (counted; manifests' `available`).
CORPUS_TOKENS = {"packaged": 3.0e6, "packaged_large": 10.8e6}
#: Tokens of a hub's data sets of which a corpus packs all: with GPT-2's tokenizer, as nanoGPT counted them.
HUB_TOKENS = {"Skylion007/openwebtext": 9.04e9}
#: Seconds of start-up of a job: 15 of the four that wait for one another.
START_SECONDS = 3.75
#: Shards that profiles/slurm packs into one job, where they are tokenised one after another.
TOGETHER = 16
#: Where Arrow stops to read a Parquet file ahead (MB): of one with 2,400 MB of text a process took the 1,580 MB that
#: the law of `documents` gives for so many.
READ_AHEAD = 1450
#: Bytes on the disk of a byte of text, with its line's id and source; the shuffle has its hash besides.
STORED = 1.05
#: MB of a process that sorts a file of the shuffle, of lines of any length, or splits it (`split.DocumentShuffle`).
WORKER_MB = 410
#: Files of the shuffle, of which each that has more than `split.SORT_BYTES` is split.
SHUFFLE_FILES = 256


class DataRule(NamedTuple):
    """A rule for a corpus: `jobs` of the training side that each take `cost`, `chained` of them one after another."""

    rule: str
    jobs: int
    chained: int
    cost: DataJobCost

    @property
    def seconds(self) -> float | None:
        """Of those that wait for one another; None if the corpus's size is not known."""
        return self.cost.chain_seconds(self.chained)

    @property
    def cpu_seconds(self) -> float:
        """Of all jobs."""
        return self.jobs * self.cost.cpu_seconds

    @property
    def network(self) -> float:
        """Of `seconds` at most, those that a network takes."""
        return self.chained * self.cost.network

    @property
    def disk_seconds(self) -> float:
        """Of `seconds` at most, those that a disk takes, verifying what is read included."""
        return self.cost.verifying + self.chained * self.cost.reading_writing

    @property
    def disk(self) -> float:
        """Bytes that all jobs write."""
        return self.jobs * self.cost.disk


@dataclass(frozen=True, kw_only=True, slots=True)
class DataJobCost:
    """What one job of the data stage takes.

    Attributes:
        seconds: of the whole job; None if its size is not known.
        verifying: of these, those of reading its input once to verify it, before it begins. A machine remembers what it
            has verified.
        reading_writing, network: seconds that a disk and a network take while it works, one after the other, next to
            what it computes.
        megabytes: at its peak.
        disk: bytes that it writes.
        extrapolated: whether a measured law is used beyond the sizes at which it was measured.
    """

    seconds: float | None
    verifying: float
    reading_writing: float
    network: float
    cpu_seconds: float
    megabytes: float
    disk: float
    extrapolated: bool

    def chain_seconds(self, jobs: int) -> float | None:
        """Estimate the seconds of so many such jobs one after another on a machine, with one start."""
        if self.seconds is None:
            return None
        return START_SECONDS + self.verifying + jobs * (self.seconds - START_SECONDS - self.verifying)

    def choose_mb(self, attempt: int, processes: int = 1) -> int:
        """Choose the memory to ask for at an attempt: an attempt before it may have been killed for want of some.

        `processes`: several that sort side by side take theirs besides.
        """
        worker_mb = WORKER_MB * processes if processes > 1 else 0
        return Need(self.megabytes + worker_mb, 0.0, 0.0, self.extrapolated).choose_mb(attempt, LEAST_MB)

    def choose_disk_mb(self) -> int:
        """Choose the disk to ask for, of executors that hand it out."""
        return round(1.1 * self.disk / 1e6) + 100


def distinct_words(megabytes: float) -> float:
    """Estimate how many words of a text differ, as GPT-2's pre-tokenisation cuts them, by Heaps' law.

    So high that no text that was counted is above it: 14 MB of a kernel's documentation have 119,000, 45 MB of the
    packaged prose 110,000, 80 MB of Python's sources 174,000. The exponent is counted as 0.45 to 0.75.
    """
    return 16_500 * megabytes**0.75


def tokens(project: Project, name: str) -> float | None:
    """Estimate how many tokens of a corpus its packs need; None if the configuration does not state it."""
    corpus = project.corpora[name]
    sizes = [*corpus.packs.values(), corpus.validation]
    known_sizes = [size for size in sizes if size is not None]
    if len(known_sizes) < len(sizes):
        return HUB_TOKENS.get(corpus.hub.path) if corpus.source == "hub" else CORPUS_TOKENS.get(corpus.source)
    held_out = known_sizes.pop()
    return float((max(known_sizes) + held_out) * max(project.contexts[name], default=0))


def text_bytes(project: Project, name: str) -> float | None:
    """Estimate the bytes of text that are read of a corpus, for a hub's with the margin that is read of it."""
    budget, total = project.inputs.budget_tokens(name), tokens(project, name)
    read_tokens = total if budget is None else budget * (100 + MARGIN_PERCENT) / 100
    return None if read_tokens is None else read_tokens * bytes_per_token(project.corpora[name].tokenizer.vocabulary)


def documents(project: Project, name: str) -> DataJobCost:
    """Estimate the job that gathers a corpus's documents.

    They are sorted outside memory, so that they lie on the disk twice; files of the shuffle that are too large to be
    sorted are split once more. Of a hub's data set Parquet's reader is up to a gigabyte ahead, a tokenizer is trained
    on its beginning, and a network is waited for; the user's files are hashed and read.
    """
    text, source = text_bytes(project, name), project.corpora[name].source
    megabytes, hub = (text or 0.0) / 1e6, source == "hub"
    stored = STORED * megabytes
    units = {
        "text_mb": megabytes,
        "network_mb": megabytes if hub else 0.0,
        "file_mb": READ_AHEAD if hub else 0.0,
        "sample_words_m": distinct_words(hub_read_budget.SAMPLE_BYTES / 1e6) / 1e6 if hub else 0.0,
        "sorted_mb": min(split.SORT_BYTES / 1e6, megabytes),
        "stored_mb": stored,
        "split_mb": stored if stored > SHUFFLE_FILES * split.SORT_BYTES / 1e6 else 0.0,
        "local_mb": megabytes if source == "local" else 0.0,
    }
    return _estimate_cost(project, "documents", units, text is not None, disk=2 * 1e6 * stored)


def tokenizer(project: Project, name: str) -> DataJobCost:
    """Estimate the job that makes a corpus's tokenizer: its memory grows with the distinct words in what it reads.

    One that is trained on the documents verifies all of them.
    """
    kind, megabytes = project.corpora[name].tokenizer.kind, project.corpora[name].tokenizer.training_megabytes
    units = {"words_m": distinct_words(megabytes) / 1e6, "training_mb": megabytes}
    units["stored_mb"] = _estimate_stored_mb(project, name) if kind == "byte_level_bpe" else 0.0
    return _estimate_cost(project, "tokenizer", units, True, disk=1e7)


def tokenize(project: Project, name: str) -> DataJobCost:
    """Estimate the job that tokenises one shard: it verifies all documents, and remembers a million words at most."""
    shards, text, total = project.preset["tokenize_shards"], text_bytes(project, name), tokens(project, name)
    token_bytes = _token_bytes(project.corpora[name]) * (total or 0.0) / shards
    units = {"remembered": 1.0, "shard_mb": (text or 0.0) / 1e6 / shards, "tokens_mb": token_bytes / 1e6}
    units["stored_mb"] = _estimate_stored_mb(project, name)
    return _estimate_cost(project, "tokenize", units, text is not None, disk=token_bytes)


def pack(project: Project, name: str, context: int) -> DataJobCost:
    """Estimate the job that packs a corpus at one length: it holds some millions of tokens, however large a file is."""
    total, corpus = tokens(project, name), project.corpora[name]
    shard_tokens = corpus.sequences_per_shard * context
    size = _token_bytes(corpus) * (total or 0.0)
    units = {
        "file_tokens_m": (shard_tokens if total is None else min(shard_tokens, total)) / 1e6,
        "tokens_m": (total or 0.0) / 1e6,
        "pack_mb": size / 1e6,
    }
    return _estimate_cost(project, "pack", units, total is not None, disk=size)


def _estimate_stored_mb(project: Project, name: str) -> float:
    """MB of a corpus's documents."""
    return STORED * (text_bytes(project, name) or 0.0) / 1e6


def _estimate_cost(project: Project, rule: str, units: dict[str, float], is_known: bool, disk: float) -> DataJobCost:
    """Estimate a job from the table of needs, the machine's disk, and the time to start."""
    needs = need(rule, units)
    speed = machines.load(project.config["machine"]).disk_mb_per_second
    verifying, moving = needs.verified_mb / speed, needs.moved_mb / speed
    works = max(needs.cpu_seconds, needs.waits + moving)
    return DataJobCost(
        seconds=START_SECONDS + verifying + works if is_known else None,
        verifying=verifying,
        reading_writing=moving,
        network=needs.waits,
        cpu_seconds=needs.cpu_seconds,
        megabytes=needs.megabytes,
        disk=disk,
        extrapolated=needs.extrapolated,
    )


def job(project: Project, rule: str, name: str, context: int = 0) -> DataJobCost:
    """Estimate the job of one of these rules for a corpus; `context` is that of a pack."""
    if rule == "pack":
        return pack(project, name, context)
    return {"documents": documents, "tokenizer": tokenizer, "tokenize": tokenize}[rule](project, name)


def rules(project: Project, name: str) -> list[DataRule]:
    """List the rules that make a corpus's packs, in their order; the training side stands for both."""
    return [
        DataRule("documents", 1, 1, documents(project, name)),
        DataRule("tokenizer", 1, 1, tokenizer(project, name)),
        DataRule("tokenize", project.preset["tokenize_shards"], count_chained_shards(project), tokenize(project, name)),
        *(DataRule("pack", 1, 1, pack(project, name, context)) for context in project.contexts[name]),
    ]


def packs(project: Project, name: str) -> dict[str, int | None]:
    """List a corpus's packs by their sequences, the smallest first; packs of equal size count once."""
    sizes: dict[int | None, str] = {}
    for pack, sequences in project.corpora[name].packs.items():
        sizes.setdefault(sequences, pack)
    return {sizes[size]: size for size in sorted(sizes, key=lambda size: (size is None, size or 0))}


def up_to_pack(project: Project, name: str, pack: str) -> Project:
    """Copy a project as if the corpus had this pack and no larger one."""
    corpus = project.corpora[name]
    limited_corpus = structs.replace(corpus, packs={pack: corpus.packs[pack]})
    return dataclasses.replace(project, corpora=project.corpora | {name: limited_corpus})


def bottleneck(rules: Sequence[DataRule]) -> DataRule | None:
    """Name the rule with most time on the path; None if a time is not known."""
    walls = [rule.seconds for rule in rules]
    return None if None in walls or not rules else max(rules, key=lambda rule: rule.seconds or 0.0)


def count_chained_shards(project: Project) -> int:
    """Count how many shards wait for one another: those that profiles/slurm packs into a job, or a core's share."""
    shards, machine = project.preset["tokenize_shards"], machines.load(project.config["machine"])
    return ceil(shards / machine.devices_at_once) if machine.device == "cpu" else min(TOGETHER, shards)


def jobs(project: Project, name: str) -> list[DataJobCost]:
    """Estimate all jobs of a corpus."""
    return [each.cost for each in rules(project, name) for _ in range(each.jobs)]


def seconds(project: Project, runs: Iterable[Run]) -> float | None:
    """Estimate the wall seconds from nothing to the packs of `runs`; 0 once they are there.

    Corpora are made side by side, so that the longest counts. None if the size of one is not known.
    """
    stages = [path_seconds(rules(project, name)) for name in to_make(project, runs)]
    return None if None in stages else max([0.0, *(stage for stage in stages if stage is not None)])


def to_make(project: Project, runs: Iterable[Run]) -> list[str]:
    """List the corpora of `runs` of which a pack is not there yet."""
    return [
        name
        for name, corpus_runs in _group_by_corpus(runs).items()
        if not all(Path(project.paths.pack_manifest(run)).exists() for run in corpus_runs)
    ]


def disk_bytes(project: Project, runs: Iterable[Run]) -> float:
    """Estimate the bytes on disk of all corpora of `runs`; a corpus of unknown size is left out."""
    return sum(corpus_bytes(project, name) for name in _group_by_corpus(runs))


def corpus_bytes(project: Project, name: str) -> float:
    """Estimate the bytes that the jobs of a corpus write: documents, tokenised shards, and a pack for each context.

    0 if its size is not known. Documents count twice, as they are while they are shuffled.
    """
    return 0.0 if tokens(project, name) is None else sum(job.disk for job in jobs(project, name))


def _token_bytes(corpus: Corpus) -> int:
    """Bytes of a token."""
    return 2 if corpus.tokenizer.vocabulary <= 2**16 else 4


def path_seconds(rules: Sequence[DataRule]) -> float | None:
    """Sum the seconds of the jobs of a corpus that wait for one another; None if one is not known."""
    walls = [rule.seconds for rule in rules]
    known_walls = [seconds for seconds in walls if seconds is not None]
    return sum(known_walls) if len(known_walls) == len(walls) else None


def _group_by_corpus(runs: Iterable[Run]) -> dict[str, list[Run]]:
    runs_of: dict[str, list[Run]] = {}
    for run in runs:
        runs_of.setdefault(run.spec.data.corpus, []).append(run)
    return runs_of
