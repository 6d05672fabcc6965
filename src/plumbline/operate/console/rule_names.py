"""Names the rules of the workflow plainly: the stage that each belongs to, and which stages work on single runs."""

from __future__ import annotations

#: Stage of a rule, in the order in which they are told of. A rule that is not here is a stage of its own.
STAGES = {
    "fetch": "fetch",
    "documents": "corpus",
    "tokenizer": "corpus",
    "tokenize": "corpus",
    "pack": "corpus",
    "items": "items",
    "pretrain": "train",
    "probe": "probe",
    "evaluate": "evaluate",
    "measure": "measure",
    "table": "tables",
    "figure": "figures",
    "claims": "claims",
    "verdict": "verdict",
    "bundle": "bundle",
}
#: Stages with one job a run, which has the wildcards study, scale, method and seed.
RUN_STAGES = ("train", "probe", "evaluate")
#: Rules that do no work of their own: they stand for a list of targets, or copy one.
HIDDEN = {"all", "smoke", "copy_table", "copy_figure", "copy_page", "copy_verdict", "copy_report"}


def stage(rule: str) -> str:
    """Name the stage that a rule belongs to, for people."""
    return STAGES.get(rule, rule.replace("_", " "))


def order(name: str) -> int:
    """Number a stage by its place in the workflow; stages that have no place come last."""
    stages = list(dict.fromkeys(STAGES.values()))
    return stages.index(name) if name in stages else len(stages)
