"""Checks, before the first job, that finished runs would be scored through the tokenizer that they were trained with.

The evaluation refuses another one itself; by then Snakemake has removed the scores that were there.
"""

from __future__ import annotations

from pathlib import Path

from plumbline.core import fingerprint_file, run_files
from plumbline.core.errors import PlumblineError
from plumbline.operate.preflight.dry_run import DryRun


def list_refusals(dry_run: DryRun) -> list[str]:
    """Name the first finished run that is to be scored and has another tokenizer now, and how many more there are.

    Runs that the same command trains, and corpora whose tokenizer it makes, are left to their jobs.
    """
    project = dry_run.project
    trained = {run.key for run in dry_run.runs()}
    remade = {corpus for (corpus,) in dry_run.values("tokenizer", "corpus")}
    messages: list[str] = []
    for run_names in dry_run.values("evaluate", "study", "scale", "method", "seed"):
        run = project.find_scored_run(*run_names)
        corpus = run.spec.data.corpus
        folder, tokenizer = Path(project.paths.run(run)), Path(project.paths.tokenizer(corpus))
        outcome, manifest = (fingerprint_file.read(folder / f"{name}.json") or {} for name in ("outcome", "manifest"))
        finished = outcome.get("outcome") == "completed" and manifest
        if run.key in trained or corpus in remade or not finished or not tokenizer.is_file():
            continue
        try:
            run_files.require_tokenizer(folder, manifest, tokenizer)
        except PlumblineError as error:
            messages.append(str(error))
    more = f" (and so for {len(messages) - 1} more runs)" if len(messages) > 1 else ""
    return [f"{messages[0]}{more}"] if messages else []
