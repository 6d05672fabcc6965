"""Prints the sentence of a verdict's page that was requested, when it is made or was there already."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plumbline.core.errors import visible
from plumbline.core.files import read_json
from plumbline.project import snakemake_internals
from plumbline.verdict.page import list_implausible


def watch(workflow: Any) -> None:
    """Have the sentence printed where the page is there and nothing is to be made; called once, with the rules."""

    def print_if_made() -> None:
        if snakemake_internals.makes_files(workflow) and not snakemake_internals.list_needed_jobs(workflow):
            print_sentence(workflow)

    if snakemake_internals.is_main_process(workflow):
        snakemake_internals.on_dag_built(workflow, print_if_made)


def print_sentence(workflow: Any) -> None:
    """Print the sentence of the verdict's page among the jobs' files, if there is one, and where the page is."""
    jobs = [job for job in snakemake_internals.list_all_jobs(workflow) if job.rule.name in ("verdict", "copy_verdict")]
    if jobs:  # the copy, where it was requested, has the shorter path, and contains the same
        page = min((Path(job.output.page) for job in jobs), key=lambda path: len(path.parts))
        numbers = read_json(page.with_suffix(".json"))
        paragraphs = [numbers["sentence"], *list_implausible(numbers["checks"]), str(page)]
        print(visible("\n\n".join(paragraphs)), flush=True)
