"""What all rules share: the project, and what is asked of it by a job's wildcards."""

import json
import re
from functools import cache

from plumbline.core.errors import PlumblineError
from plumbline.data.pinned_packages import PINS
from plumbline.operate import ctrl_c, slurm_executor, staleness, verdict_sentence
from plumbline.operate.console import dry_run_page, forecast
from plumbline.operate.locks import workflow_lock
from plumbline.operate.preflight import before_first_job
from plumbline.operate.prefork import client as prefork_client
from plumbline.plan import data_stage, job_needs
from plumbline.plan.run_estimate import JobRequests, estimator
from plumbline.project import (
    load,
    snakemake_internals,
    snakemake_messages,
    snakemake_shortcuts,
    use_this_interpreter,
)
from plumbline.project.paths import REPORT_INDEX, RESULTS

use_this_interpreter()
snakemake_shortcuts.spare_repetitions()

PROJECT = load(dict(config))
PROJECT.tokens.require()
snakemake_messages.answer_unknown_targets(PROJECT.unknown_paths.nothing_makes)
# What jobs will take, from finished runs where there are any: read once, here.
ESTIMATOR = estimator(PROJECT)
# Memory and time limits, by benchmarks/job_resources.yaml.
REQUESTS = JobRequests(ESTIMATOR)
WORK, MADE, LOGS = PROJECT.paths.work, PROJECT.paths.results, PROJECT.paths.logs
BENCHMARKS = f"{WORK}/benchmarks"
COMPILED = f"{WORK}/compiled"
CORPUS = PROJECT.paths.corpus("{corpus}")
RUN = f"{WORK}/runs/{{study}}/{{scale}}/{{method}}/s{{seed}}"
# A run's name in file names of logs and benchmarks.
NAME = "{study}.{scale}.{method}.s{seed}"


def one_of(names):
    """A pattern of names; one that never matches where there is none."""
    return "|".join(sorted(re.escape(name) for name in set(names))) or "(?!)"


SPECS = [run.spec for run in PROJECT.every_run.values()]
# What products are made of is asked for each of their jobs, and computed once.
of_corpus, of_items, of_scores = (
    cache(PROJECT.fingerprints.corpus),
    cache(PROJECT.fingerprints.items),
    cache(PROJECT.fingerprints.scores),
)


def run_of(wildcards):
    """The run that a job's wildcards name."""
    return PROJECT.run(
        wildcards.study, wildcards.scale, wildcards.method, wildcards.seed
    )


def scored_run_of(wildcards):
    """The run whose scores a job's wildcards name."""
    return PROJECT.find_scored_run(
        wildcards.study, wildcards.scale, wildcards.method, wildcards.seed
    )


def measurement_of(wildcards):
    """The measurement that a job's wildcards name."""
    return PROJECT.measurements.one(wildcards.study, wildcards.measurement)


def of_run(ask):
    """What is asked of the run that a job's wildcards name."""
    return lambda wildcards: ask(run_of(wildcards))


def of_scored_run(ask):
    """What is asked of the run whose scores a job's wildcards name."""
    return lambda wildcards: ask(scored_run_of(wildcards))


def waited_for(path, corpus, fingerprint, **how):
    """A file of a corpus that what reads it waits for: remade with other code, it may come out the same."""
    files = PROJECT.inputs.corpus_files(corpus)
    facts = f"{PROJECT.paths.corpus(corpus)}/documents/documents.json"
    if staleness.is_current(path, fingerprint, files, facts, **how):
        return ancient(path)
    return path


@cache
def shards(corpus, context, split):
    """The folder of shards and manifests of one side of a corpus."""
    folder = PROJECT.paths.packs(corpus, context, split)
    return waited_for(folder, corpus, of_corpus("pack", corpus, split))


@cache
def items_file(corpus, suite):
    """The index of a suite's items."""
    path = PROJECT.paths.items(corpus, suite)
    return waited_for(path, corpus, of_items(corpus, suite), own_code=True)


@cache
def tokenizer_file(corpus):
    """The tokenizer of a corpus."""
    path = PROJECT.paths.tokenizer(corpus)
    return waited_for(path, corpus, of_corpus("tokenizer", corpus))


def shards_of_run(split):
    """The shards that a run reads, of its corpus's training side or of its held-out one."""
    return of_run(
        lambda run: shards(run.spec.data.corpus, run.spec.model.context, split)
    )


def corpus_fingerprint(kind):
    """A parameter that changes with a stage's code, and with what it and the stages before it are asked for."""
    return lambda wildcards: of_corpus(
        kind, wildcards.corpus, getattr(wildcards, "split", "train")
    )


def pack_flags(wildcards):
    """Packs of one side of a corpus and their sizes; none of a context that no run reads."""
    PROJECT.require_context(wildcards.corpus, int(wildcards.context))
    return PROJECT.commands.pack(wildcards.corpus, wildcards.split)


def fingerprint(kind):
    """A parameter that changes when code or YAML behind a product of this kind changes."""
    return lambda wildcards: PROJECT.fingerprints.product(
        getattr(wildcards, "study", ""), kind, getattr(wildcards, kind, None)
    )


def target_files(kind):
    """What a table or figure reads."""

    def files(wildcards):
        study, target = wildcards.study, getattr(wildcards, kind)
        PROJECT.targets.entry(study, target, kind)
        packs = [shards(*place) for place in PROJECT.targets.packs(study, target)]
        return PROJECT.targets.list_read_files(study, target) + packs

    return files


def copied(*endings):
    """The files of this preset that a copy is made of."""
    return lambda wildcards: [
        PROJECT.targets.find_copy_source(wildcards.name) + ending for ending in endings
    ]


# Memory, disk and time that jobs ask for; an attempt before it may have been killed for want of memory.


def run_mb(rule, named=run_of):
    """Memory of a job of one run, by the law of what it takes."""
    return lambda wildcards, attempt: REQUESTS.run_mb(rule, named(wildcards), attempt)


def product_mb(rule):
    """Memory of a job that makes items or a product."""
    return lambda wildcards, attempt: REQUESTS.product(rule).choose_mb(attempt)


def product_minutes(rule):
    """Time limit of such a job."""
    return lambda wildcards: REQUESTS.product(rule).choose_minutes()


@cache
def data_cost(rule, corpus, context):
    """What a job of the data stage takes: asked for each of a corpus's hundreds of shards."""
    return data_stage.job(PROJECT, rule, corpus, context)


def data_cost_of(wildcards, rule):
    """What the job of the data stage takes that its wildcards name."""
    return data_cost(rule, wildcards.corpus, int(getattr(wildcards, "context", 0)))


def data_mb(rule):
    """Memory of a job of the data stage, by the law of what it takes."""
    return lambda wildcards, attempt, threads: data_cost_of(wildcards, rule).choose_mb(
        attempt, threads
    )


def data_disk_mb(rule):
    """What such a job writes."""
    return lambda wildcards: data_cost_of(wildcards, rule).choose_disk_mb()


def data_minutes(rule):
    """Time limit of such a job."""
    return lambda wildcards: ESTIMATOR.data_minutes(data_cost_of(wildcards, rule), rule)


def verdict_need():
    """What a verdict on one's own method takes: the trained weights of its runs are read."""
    return REQUESTS.verdict(
        list(PROJECT.mine.study.runs.values()) if PROJECT.mine else []
    )


def smoke_outcomes():
    """The outcomes of every run: refused at other presets, where they are days of work."""
    if PROJECT.name != "smoke":
        raise PlumblineError(
            f"the target `smoke` carries out every run and is for the preset smoke, not {PROJECT.name}; "
            "add --config preset=smoke, or ask for `all`"
        )
    return [PROJECT.paths.run(run, "outcome.json") for run in PROJECT.runs.values()]
