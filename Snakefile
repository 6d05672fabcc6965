"""Plumbline: the tables and figures of five studies of Transformer pretraining are targets.

snakemake results/table2.csv                    the transfer study's main table, at demo size
snakemake results/table2.csv --profile slurm    the same at paper size, on a cluster
snakemake all                                   everything of the studies named in config/config.yaml
"""

from snakemake.utils import min_version

min_version("9.27")


include: "workflow/rules/config_arguments.smk"


configfile: "config/config.yaml"


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"


# One Snakemake at a time runs here.
workflow_lock.guard()


wildcard_constraints:
    study=one_of([*PROJECT.studies, *(spec.study for spec in SPECS)]),
    scale=one_of(spec.scale for spec in SPECS),
    method=one_of(spec.method for spec in SPECS),
    seed=r"\d+",
    corpus=one_of(PROJECT.corpora),
    suite=one_of(run.suite for run in PROJECT.scored_runs.values() if run.suite),
    split="train|validation",
    context=r"\d+",
    table=one_of(PROJECT.targets.names("table")),
    figure=one_of(PROJECT.targets.names("figure")),


include: "workflow/rules/data.smk"
include: "workflow/rules/pretrain.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/measure.smk"
include: "workflow/rules/results.smk"
include: "workflow/rules/verdict.smk"
include: "workflow/rules/copies.smk"
include: "workflow/rules/plan.smk"
include: "workflow/rules/bundle.smk"
include: "workflow/rules/report.smk"


rule all:
    """Every target of every study that config/config.yaml names."""
    default_target: True
    input:
        lambda wildcards: PROJECT.targets.list_all_products(),


rule smoke:
    """Every run of every study, without tables: for the preset smoke alone."""
    input:
        lambda wildcards: smoke_outcomes(),


onstart:
    ctrl_c.watch(workflow)
    slurm_executor.mend(workflow)
    forecast.announce(workflow, ESTIMATOR)
    snakemake_internals.without_default_rate_limit(workflow)
    snakemake_internals.include_other_processes(prefork_client.forks)
    prefork_client.announce_jobs(
        job.resources.get("launch")
        for job in snakemake_internals.list_needed_jobs(workflow)
    )
    before_first_job.enter_planned_runs(workflow, PROJECT)


onsuccess:
    staleness.warn_of_changes(workflow)
    verdict_sentence.print_sentence(workflow)


dry_run_page.watch(workflow)
staleness.watch(workflow)
before_first_job.watch(workflow, PROJECT)
verdict_sentence.watch(workflow)
