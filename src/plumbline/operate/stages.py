"""The rules of the workflow in plain words: which of them make up a stage, and which stages work on single runs."""

from __future__ import annotations

#: Stage of a rule, in the order in which they are told of. A rule that is not here is a stage of its own.
STAGES = {
    "fetch": "fetch",
    "documents": "corpus",
    "tokenizer": "corpus",
    "tokenize": "corpus",
    "pack_train": "corpus",
    "pack_validation": "corpus",
    "items": "items",
    "pretrain": "train",
    "probe": "probe",
    "evaluate": "evaluate",
    "table": "tables",
    "figure": "figures",
    "claims": "claims",
}
#: Stages with one job a run, which has the wildcards study, scale, method and seed.
RUN_STAGES = ("train", "probe", "evaluate")
#: Rules that do no work of their own: they stand for a list of targets, or copy one.
HIDDEN = {"all", "smoke", "main_table", "main_figure"}


def stage(rule: str) -> str:
    """The stage that a rule belongs to."""
    return STAGES.get(rule, rule.replace("_", " "))


def order(rule: str) -> int:
    """Where the rule's stage stands among the others."""
    return list(STAGES).index(rule) if rule in STAGES else len(STAGES)
