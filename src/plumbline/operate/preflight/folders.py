"""Checks the folders that a user names: texts of a corpus, a data set in hub layout, evaluation items."""

from __future__ import annotations

import os
from pathlib import Path

from plumbline.core.errors import PlumblineError
from plumbline.core.files import read_json
from plumbline.core.formats import format_bytes, format_count
from plumbline.data import copies
from plumbline.data.document import name_key
from plumbline.data.sources import local
from plumbline.operate.preflight.check_result import NOTE, OK, STOP, CheckResult
from plumbline.operate.preflight.dry_run import DryRun
from plumbline.specs import suites
from plumbline.specs.corpus import Corpus

#: How a path begins that cannot be the name of a data set of the hub.
PATHS = ("/", "./", "../", "~")


def check(dry_run: DryRun) -> list[CheckResult]:
    """Check each folder that a job to do reads: that it is there, readable, of the kind that is read, not empty."""
    results = []
    for (name,) in dry_run.values("documents", "corpus"):
        corpus = dry_run.project.corpora[name]
        try:
            if corpus.source == "local":
                results.append(_check_texts(corpus))
            elif corpus.source == "hub" and is_folder(corpus.hub.path):
                results.append(_check_layout(corpus))
        except (PlumblineError, OSError) as problem:
            results.append(CheckResult(state=STOP, subject=f"texts of {name}", message=str(problem)))
    if dry_run.project.evaluation_source == "local":
        results += [_check_items(dry_run, suite) for (suite,) in dry_run.values("items", "suite")]
    return results


def warn_of_replaced(dry_run: DryRun) -> list[str]:
    """Corpora that are about to be made again from texts of another source, as warnings: what is there goes."""
    warnings = []
    for (name,) in dry_run.values("documents", "corpus"):
        folder = dry_run.project.root / dry_run.project.paths.corpus(name)
        manifest = read_json(folder / "documents" / "documents.json")
        old_source = manifest.get("source") if isinstance(manifest, dict) else None
        new_source = dry_run.project.corpora[name].source
        if old_source not in (None, new_source):
            warnings.append(
                f"{dry_run.project.paths.corpus(name)} holds texts of source `{old_source}`; they are replaced by "
                f"those of `{new_source}`, and packs, runs and scores of {name} are made again; to keep both, name "
                "another folder: --config work=work-mine"
            )
    return warnings


def copies_on_both_sides(dry_run: DryRun) -> list[CheckResult]:
    """Corpora that are there and hold out documents which are trained on as well, as notes."""
    results = []
    for name in dry_run.project.corpora:
        facts = read_json(dry_run.project.root / dry_run.project.paths.corpus(name) / "documents" / "documents.json")
        message = copies.describe(name, facts) if isinstance(facts, dict) else ""
        if message and facts["copies"]["rule"] == "keep" and facts["copies"]["validation"]["also_on_the_other_side"]:
            results.append(CheckResult(state=NOTE, subject=f"texts of {name}", message=message))
    return results


def is_folder(path: str) -> bool:
    """Whether a `hub.path` is a folder in hub layout, or can only be meant as one."""
    return Path(path).is_dir() or path.startswith(PATHS)


def _check_texts(corpus: Corpus) -> CheckResult:
    """Of the source `local`.

    Raises:
        PlumblineError: no folder, or nothing in it that can be read; OSErrors likewise.
    """
    where, folder = name_key(corpus.name, "local.folder"), Path(corpus.require_folder())
    _require_readable(where, folder)
    files = local.files(folder, corpus.name)
    _require_content(where, folder, files)
    if empty := [path for path in files if path.suffix == ".txt" and not path.stat().st_size]:
        raise PlumblineError(f"{where}: {empty[0]} is empty; every text file is a document, delete it or fill it")
    return CheckResult(state=OK, subject=f"texts of {corpus.name}", message=_describe_files(where, folder, files))


def _check_layout(corpus: Corpus) -> CheckResult:
    where, folder = name_key(corpus.name, "hub.path"), Path(corpus.hub.path)
    _require_readable(where, folder)
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    if not files:
        raise PlumblineError(f"{where}: {folder} is empty; it should hold a copy of the data set's repository")
    _require_content(where, folder, files)
    return CheckResult(state=OK, subject=f"texts of {corpus.name}", message=_describe_files(where, folder, files))


def _check_items(dry_run: DryRun, suite: str) -> CheckResult:
    subject, where = f"items of {suite}", "config/config.yaml: evaluation.folder"
    settings, loaded_suite = dry_run.project.config["evaluation"], suites.suite(suite, dry_run.project.root)
    tasks = loaded_suite.task_names
    try:
        if not settings["folder"]:
            raise PlumblineError(
                f"{where}: empty; evaluation.source `local` reads one <task>.jsonl a task ({', '.join(tasks)}) there: "
                "--config 'evaluation={source: local, folder: <where they are>}'"
            )
        folder = Path(settings["folder"])
        _require_readable(where, folder)
        files = [path for task in tasks if (path := folder / f"{task}.jsonl").is_file()]
        absent = [task for task in tasks if folder / f"{task}.jsonl" not in files]
        if absent and settings["missing"] == "error":
            raise PlumblineError(
                f"{where}: {folder} has no file for {', '.join(absent)} (each is <task>.jsonl); add them, or let "
                "evaluation.missing be proxy, which fills them with items made from held-out documents"
            )
        for task in loaded_suite:
            if task.few_shot and task.name not in absent:
                files.append(folder / task.examples)
                if not files[-1].is_file():
                    raise PlumblineError(
                        f"{where}: there is no {files[-1]}, and {task.file} shows {task.few_shot.number} solved "
                        f"examples before each question (`few_shot`); write the split {task.few_shot.split!r} there"
                    )
        if files:
            _require_content(where, folder, files)
        for path in files:
            if not path.stat().st_size:
                raise PlumblineError(f"{where}: {path} is empty; it should have an item a line")
    except (PlumblineError, OSError) as problem:
        return CheckResult(state=STOP, subject=subject, message=str(problem))
    if absent:
        message = (
            f"{where}: {folder} has {len(tasks) - len(absent)} of {len(tasks)} tasks; proxies for {', '.join(absent)}"
        )
        return CheckResult(state=NOTE, subject=subject, message=message)
    return CheckResult(state=OK, subject=subject, message=_describe_files(where, folder, files))


def _require_readable(where: str, folder: Path) -> None:
    if not folder.is_dir():
        state = "is a file, not a folder" if folder.exists() else "is not there"
        raise PlumblineError(f"{where}: {folder} {state} (seen from {Path.cwd()}); name the folder, or create it")
    if not os.access(folder, os.R_OK | os.X_OK):
        raise PlumblineError(f"{where}: {folder} is not readable by you; let its owner change that (chmod u+rX)")


def _require_content(where: str, folder: Path, files: list[Path]) -> None:
    """Refuse files that may not be read, or that have nothing in them, all together."""
    if closed := next((path for path in files if not os.access(path, os.R_OK)), None):
        raise PlumblineError(f"{where}: {closed} is not readable by you; let its owner change that (chmod u+r)")
    if not any(path.stat().st_size for path in files):
        raise PlumblineError(f"{where}: nothing is in the {len(files)} files of {folder}; fill them")


def _describe_files(where: str, folder: Path, files: list[Path]) -> str:
    size = sum(path.stat().st_size for path in files)
    return f"{where}: {folder}, {format_count(len(files), 'file')}, {format_bytes(size)}"
