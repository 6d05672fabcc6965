"""Helpers of all rules: what the configuration says, as paths and parameters."""

import json
import re
from functools import cache

from plumbline.core.errors import PlumblineError
from plumbline.data.pinned_packages import PINS
from plumbline.operate import ctrl_c, staleness, verdict_sentence
from plumbline.operate.console import forecast
from plumbline.operate.locks import workflow_lock
from plumbline.operate.preflight import before_first_job
from plumbline.operate.prefork import client as prefork_client
from plumbline.plan import data_stage, job_needs
from plumbline.plan.run_estimate import JobRequests
from plumbline.plan.run_estimate import estimator
from plumbline.project import load, snakemake_internals, use_this_interpreter
from plumbline.project.paths import REPORT_INDEX, RESULTS

use_this_interpreter()

PROJECT = load(dict(config))
PROJECT.tokens.require()
snakemake_internals.answer_unknown_targets(PROJECT.unknown_paths.nothing_makes)
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


SPECS = [run.spec for run in PROJECT.runs.values()]


def pinned_requirement(wildcards):
    """How the package of a fetch job is spelt and checked."""
    chosen = PINS[wildcards.package]
    kind = "--package" if chosen.index == "python" else "--debian-package"
    return f"{kind} {chosen.requirement} --sha256 {chosen.sha256}"


def run_of(wildcards):
    """The run that a job's wildcards name."""
    return PROJECT.run(
        wildcards.study, wildcards.scale, wildcards.method, wildcards.seed
    )


def scored_run_of(wildcards):
    """The run whose scores a job's wildcards name."""
    return PROJECT.scored_run(
        wildcards.study, wildcards.scale, wildcards.method, wildcards.seed
    )


def scored_file(name):
    """A file of the run that is scored."""
    return lambda wildcards: PROJECT.paths.run(scored_run_of(wildcards), name)


def run_spec(wildcards):
    """The run's canonical JSON: one string, so that key order can never rerun anything."""
    return run_of(wildcards).spec.to_json()


def training_shards(wildcards):
    """The folder of shards and manifests that the run reads."""
    spec = run_of(wildcards).spec
    return shards(spec.data.corpus, spec.model.context, "train")


def validation_shards(wildcards):
    """The held-out ones beside it."""
    spec = run_of(wildcards).spec
    return shards(spec.data.corpus, spec.model.context, "validation")


# What products are made of is asked for each of their jobs, and computed once.
of_corpus, of_items, of_scores = (
    cache(PROJECT.fingerprints.corpus),
    cache(PROJECT.fingerprints.items),
    cache(PROJECT.fingerprints.scores),
)


def corpus_fingerprint(kind):
    """A parameter that changes with a stage's code, and with what it and the stages before it are asked for."""

    def found(wildcards):
        return of_corpus(kind, wildcards.corpus, getattr(wildcards, "split", "train"))

    return found


def items_fingerprint(wildcards):
    """The same of the items of a suite."""
    return of_items(wildcards.corpus, wildcards.suite)


def scores_fingerprint(wildcards):
    """The same of a run's scores."""
    return of_scores(scored_run_of(wildcards).suite)


def probes_fingerprint(wildcards):
    """A parameter that changes with the code of a run's probes."""
    return PROJECT.fingerprints.probes(run_of(wildcards))


def waited_for(path, corpus, fingerprint, **how):
    """A file of a corpus that what reads it waits for: remade with other code, it may come out the same."""
    files = PROJECT.inputs.corpus_files(corpus)
    facts = f"{PROJECT.paths.corpus(corpus)}/documents/documents.json"
    return (
        ancient(path)
        if staleness.held(path, fingerprint, files, facts, **how)
        else path
    )


@cache
def shards(corpus, context, split):
    """The folder of one side of a corpus."""
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
    path = f"{PROJECT.paths.corpus(corpus)}/tokenizer/tokenizer.json"
    return waited_for(path, corpus, of_corpus("tokenizer", corpus))


def training_manifest(wildcards):
    """The manifest of the run's pack."""
    return PROJECT.paths.pack_manifest(run_of(wildcards))


def validation_manifest(wildcards):
    """The manifest of the held-out pack beside it."""
    return PROJECT.paths.validation_manifest(run_of(wildcards))


def items_of(wildcards):
    """The items of the run's suite."""
    run = scored_run_of(wildcards)
    return items_file(run.spec.data.corpus, run.suite)


def tokenizer_of(wildcards):
    """The tokenizer of the run's corpus."""
    return tokenizer_file(scored_run_of(wildcards).spec.data.corpus)


def pack_flags(wildcards):
    """Packs of one side of a corpus and their sizes; none of a context that no run reads."""
    PROJECT.require_context(wildcards.corpus, int(wildcards.context))
    return PROJECT.commands.pack(wildcards.corpus, wildcards.split)


def evaluation_flags(wildcards):
    """Suite, limit and metric of a run's evaluation."""
    return PROJECT.commands.evaluation(scored_run_of(wildcards))


def pretrain_minutes(wildcards):
    """Time limit of one training job; a longer run is chained over several."""
    return ESTIMATOR.pretrain_minutes(run_of(wildcards))


def pretrain_disk_mb(wildcards):
    """What a run keeps: checkpoints, weights, and those of its probe points."""
    return round(ESTIMATOR.disk_bytes(run_of(wildcards)) / 1e6) + 100


def evaluate_minutes(wildcards):
    """Time limit of an evaluation job."""
    return ESTIMATOR.evaluate_minutes(scored_run_of(wildcards))


def probe_minutes(wildcards):
    """Time limit of a probe job."""
    return ESTIMATOR.probe_minutes(run_of(wildcards))


def run_mb(rule, of=run_of):
    """Memory of a job of one run, by the law of what it takes."""

    def asked(wildcards, attempt):
        return REQUESTS.run_mb(rule, of(wildcards), attempt)

    return asked


def product_mb(rule):
    """Memory of a job that makes items or a product; more at each further attempt."""

    def asked(wildcards, attempt):
        return REQUESTS.product(rule).asked_mb(attempt)

    return asked


def product_minutes(rule):
    """Time limit of such a job."""

    def asked(wildcards):
        return REQUESTS.product(rule).asked_minutes()

    return asked


def verdict_needs():
    """What a verdict on one's own method needs: the trained weights of its runs are read."""
    runs = list(PROJECT.mine.study.runs.values()) if PROJECT.mine else []
    return REQUESTS.verdict(runs)


def verdict_mb(wildcards, attempt):
    """Memory of a verdict; more at each further attempt."""
    return verdict_needs().asked_mb(attempt, job_needs.LEAST_MB)


def verdict_minutes(wildcards):
    """Time limit of a verdict."""
    return verdict_needs().asked_minutes()


def measure_mb(wildcards, attempt):
    """Memory of a measurement."""
    on_gpu = measurement_of(wildcards).device == "gpu"
    return REQUESTS.measurement(on_gpu).asked_mb(attempt, job_needs.LEAST_MB)


def data_mb(rule):
    """Memory of a job of the data stage, by the law of what it takes; more at each further attempt."""

    def asked(wildcards, attempt):
        return data_stage.job(PROJECT, rule, wildcards).asked_mb(attempt)

    return asked


def data_disk_mb(rule):
    """What such a job writes."""

    def asked(wildcards):
        return data_stage.job(PROJECT, rule, wildcards).asked_disk_mb()

    return asked


def data_minutes(rule):
    """Time limit of such a job."""

    def asked(wildcards):
        return ESTIMATOR.data_minutes(rule, wildcards)

    return asked


def measure_minutes(wildcards):
    """Time limit of a measurement."""
    return ESTIMATOR.measure_minutes(measurement_of(wildcards))


def measurement_of(wildcards):
    """The measurement that a job's wildcards name."""
    return PROJECT.measurements.one(wildcards.study, wildcards.measurement)


def measurement_fingerprint(wildcards):
    """A parameter that changes with a measurement's code, its options, and the specs that it reads."""
    return PROJECT.fingerprints.measurement(measurement_of(wildcards))


def plan_state(wildcards):
    """Changes with the configuration and with what is done: the plan is then rebuilt, and not otherwise."""
    return ESTIMATOR.digest()


def fingerprint(kind):
    """A parameter that changes when code or YAML behind a product of this kind changes."""

    def found(wildcards):
        target = getattr(wildcards, kind, None)
        return PROJECT.fingerprints.product(
            getattr(wildcards, "study", ""), kind, target
        )

    return found


def target_files(kind):
    """What a table or figure reads."""

    def files(wildcards):
        target = getattr(wildcards, kind)
        PROJECT.targets.entry(wildcards.study, target, kind)
        return PROJECT.targets.files(wildcards.study, target)

    return files


def target_runs(kind):
    """Changes with the runs that a table or figure expects."""

    def runs(wildcards):
        return PROJECT.targets.expected(wildcards.study, getattr(wildcards, kind))

    return runs


def claims_files(wildcards):
    """What the claims of a study rest on."""
    return PROJECT.targets.claims_files(wildcards.study)


def study_runs(wildcards):
    """Changes with the runs of a study."""
    return PROJECT.targets.study_expected(wildcards.study)


def copied(*endings):
    """The files of this preset that a copy is made of."""

    def files(wildcards):
        return [
            PROJECT.targets.copied_from(wildcards.name) + ending for ending in endings
        ]

    return files


def report_fingerprint(wildcards):
    """A parameter that changes with the code of the report's pages, and what they say beside products."""
    return PROJECT.fingerprints.report()


def smoke_outcomes():
    """The outcomes of every run: refused at other presets, where they are days of work."""
    if PROJECT.name != "smoke":
        raise PlumblineError(
            f"the target `smoke` carries out every run and is for the preset smoke, not {PROJECT.name}; "
            "add --config preset=smoke, or ask for `all`"
        )
    return [PROJECT.paths.run(run, "outcome.json") for run in PROJECT.runs.values()]
