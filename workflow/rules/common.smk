"""Helpers of all rules: what the configuration says, as paths and parameters."""

import json
from pathlib import Path

from plumbline.plan.estimate import estimator
from plumbline.operate import driver
from plumbline.project import MAIN_STUDY, pin, plan, use_this_interpreter

use_this_interpreter()

PLAN = plan(dict(config))
# What jobs will take, from finished runs where there are any: read once, here.
ESTIMATOR = estimator(PLAN)
WORK = PLAN.work
STUDIES = sorted(PLAN.studies)
RUNS = PLAN.runs
SCALES = sorted({run.spec.scale for run in RUNS.values()})
METHODS = sorted({run.spec.method.replace(".", r"\.") for run in RUNS.values()})
TARGETS = {kind: PLAN.targets(kind) for kind in ("table", "figure")}
LOGS = f"logs/{config['preset']}"
BENCHMARKS = f"{WORK}/benchmarks"


def pinned_requirement(wildcards):
    """How the package of a fetch job is spelt and checked."""
    chosen = pin(wildcards.package)
    kind = "--package" if chosen.index == "python" else "--debian"
    return f"{kind} {chosen.requirement} --sha256 {chosen.sha256}"


def evaluation_flags(wildcards):
    """Suite, limit and metric of a study's evaluation."""
    return PLAN.evaluation_flags(wildcards.study)


def run_of(wildcards):
    """The run that a job's wildcards name."""
    return PLAN.run(wildcards.study, wildcards.scale, wildcards.method, wildcards.seed)


def run_spec(wildcards):
    """The run's canonical JSON: one string, so that key order can never rerun anything."""
    return run_of(wildcards).spec.to_json()


def pack_of(wildcards):
    """The pack that the run reads."""
    return PLAN.pack_manifest(run_of(wildcards))


def validation_of(wildcards):
    """The held-out pack beside it."""
    return PLAN.validation_manifest(run_of(wildcards))


def pretrain_minutes(wildcards):
    """Time limit of one training job; a longer run is chained over several."""
    return ESTIMATOR.pretrain_minutes(run_of(wildcards))


def evaluate_minutes(wildcards):
    """Time limit of an evaluation job."""
    return ESTIMATOR.evaluate_minutes(run_of(wildcards))


def plan_state(wildcards):
    """Changes with the configuration and with what is done: the plan is then made anew, and not otherwise."""
    return ESTIMATOR.digest()


def outputs(run):
    """What tells that a run was carried out."""
    return f"{WORK}/runs/{run.key}/outcome.json"


def target_inputs(study, target):
    """The runs of a table or figure, and their scores where it reads them."""
    runs = PLAN.target_runs(study, target)
    paths = [
        f"{WORK}/runs/{run.key}/{name}"
        for run in runs
        for name in ("outcome.json", "manifest.json", "metrics.parquet")
    ]
    if "scores" in PLAN.target_reads(study, target):
        paths += [f"{WORK}/scores/{run.key}/scores.parquet" for run in runs]
    return paths


def table_inputs(wildcards):
    """The runs of a table."""
    return target_inputs(wildcards.study, wildcards.table)


def figure_inputs(wildcards):
    """The runs of a figure."""
    return target_inputs(wildcards.study, wildcards.figure)


def table_runs(wildcards):
    """The runs that a table expects, as one string."""
    return PLAN.target_expected(wildcards.study, wildcards.table)


def figure_runs(wildcards):
    """The runs that a figure expects, as one string."""
    return PLAN.target_expected(wildcards.study, wildcards.figure)


def published_files():
    """Every file of printed numbers."""
    return sorted(
        str(path) for path in Path("config/studies").glob("*/published/*") if path.is_file()
    )


def claims_inputs(wildcards):
    """All runs of a study, with their scores where they are a part of its comparison."""
    study = PLAN.studies[wildcards.study]
    return sorted(
        {
            path
            for target in study.sheet["targets"]
            for path in target_inputs(study.name, target)
        }
    )


def study_runs(wildcards):
    """All runs of a study, as one string."""
    return PLAN.study_expected(wildcards.study)


def all_targets():
    """Every table and figure of the configured studies, their claims and deviations, and the audit."""
    suffix = {"table": "csv", "figure": "png"}
    targets = [
        f"results/{name}/{target}.{suffix[entry['kind']]}"
        for name, study in PLAN.studies.items()
        for target, entry in study.sheet["targets"].items()
    ]
    main = [
        path.replace(f"results/{MAIN_STUDY}/", "results/")
        for path in targets
        if path.startswith(f"results/{MAIN_STUDY}/")
    ]
    told = [
        f"results/{name}/{file}"
        for name in PLAN.studies
        for file in ("claims.csv", "deviations.md")
    ]
    return targets + main + told + ["results/audit.csv"]
