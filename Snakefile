"""Plumbline: every table and figure of five studies of Transformer pretraining is a target.

snakemake results/table2.csv                    the transfer study's main table, at demo size
snakemake results/table2.csv --profile slurm    the same at paper size, on a cluster
snakemake all                                   everything of the studies named in config/config.yaml
"""

from snakemake.utils import min_version

min_version("9.27")


configfile: "config/config.yaml"


include: "workflow/rules/common.smk"


wildcard_constraints:
    study="|".join(STUDIES),
    scale="|".join(SCALES),
    method="|".join(METHODS),
    seed=r"\d+",
    split="train|validation",
    context=r"\d+",
    table="|".join(TARGETS["table"]),
    figure="|".join(TARGETS["figure"]) or "none",


include: "workflow/rules/data.smk"
include: "workflow/rules/pretrain.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/tables.smk"
include: "workflow/rules/plan.smk"
include: "workflow/rules/audit.smk"


rule all:
    """Every target of every study that config/config.yaml names."""
    default_target: True
    input:
        all_targets(),


rule smoke:
    """Every run of every study, without tables."""
    input:
        [outputs(run) for run in RUNS.values()],


onstart:
    driver.hold(workflow.persistence.path)


onsuccess:
    driver.release(workflow.persistence.path)


onerror:
    driver.release(workflow.persistence.path)
