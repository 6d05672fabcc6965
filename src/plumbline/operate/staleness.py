"""Finds files that are there but were made with other code, settings or data than those of now.

Snakemake compares parameters with what it wrote down in `.snakemake`, which may be lost, or may never have come along
with `work/`. Products say themselves what they were made of (`plumbline.core.fingerprint_file`), and that is compared
here, for the jobs that are requested: those that disagree are rebuilt, with a sentence on stderr. Nothing is written or
removed.

A corpus made with edited code may well be the same, and runs on it are weeks of work. So what reads a corpus
waits for its bytes (`is_current`): pretraining, probing and evaluation compare the fingerprints of what they read, when
Snakemake next lists its jobs, rather than being listed because a corpus is.
"""

from __future__ import annotations

import filecmp
import json
import os
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from plumbline.core import fingerprint_file
from plumbline.core.errors import PlumblineError
from plumbline.core.files import sha256_file, sha256_text
from plumbline.data.manifest import fingerprint
from plumbline.project import snakemake_internals

#: How many of them are named.
NAMED = 3


def watch(workflow: Any) -> None:
    """Make a workflow run again the jobs whose files are stale, and say which; called once, when its rules are read."""

    from snakemake_interface_common.exceptions import ApiError  # said without a traceback

    def list_jobs_that_disagree(jobs: list[Any]) -> list[Any]:
        # Who says --rerun-triggers mtime does not want parameters compared, here neither.
        if not snakemake_internals.compares_parameters(workflow):
            return []
        try:
            stale_jobs = list(filter(is_stale, jobs))
        except PlumblineError as error:
            raise ApiError(str(error)) from None
        if stale_jobs:
            print(
                "made with other code, settings or data than now, or without a file that says with which, so rebuilt: "
                f"{format_jobs(stale_jobs)}",
                file=sys.stderr,
            )
        return stale_jobs

    if snakemake_internals.is_main_process(workflow):
        snakemake_internals.force_jobs(workflow, list_jobs_that_disagree)


def warn_of_changes(workflow: Any) -> None:
    """Say, after a success, which products the same command would now rebuild, since what they are made from has
    changed.

    Nothing is said where it would not: parameters are not compared, or files were only touched.
    """
    if not snakemake_internals.compares_parameters(workflow) or snakemake_internals.only_touches(workflow):
        return
    _fingerprint.cache_clear()
    _sha256.cache_clear()
    stale_jobs = list(filter(is_stale, snakemake_internals.list_all_jobs(workflow)))
    if stale_jobs:
        print(
            f"the inputs of these have changed: {format_jobs(stale_jobs)}. The same command again rebuilds them",
            file=sys.stderr,
        )


def format_jobs(jobs: Iterable[Any]) -> str:
    """Write jobs as text, as in ``3 of pretrain, 1 of table (<first outputs>, ...)``."""
    jobs = list(jobs)
    counts = Counter(job.rule.name for job in jobs)
    first = sorted(str(job.output[0]) for job in jobs)
    more = ", ..." if len(first) > NAMED else ""
    return f"{', '.join(f'{n} of {rule}' for rule, n in sorted(counts.items()))} ({', '.join(first[:NAMED])}{more})"


def is_stale(job: Any) -> bool:
    """Whether what a job makes is there, and was made with something else than it would be made with now, or nothing
    says with what: without the file that says so (which may have been removed along with another) its bytes may be
    anybody's, whatever Snakemake remembers.
    """
    if not job.output or not Path(job.output[0]).exists():
        return False
    return _COMPARED.get(job.rule.name, _has_other_code)(job)


def is_current(
    product: str, fingerprint: str, files: Iterable[str] = (), facts: str | Path = "", *, own_code: bool = False
) -> bool:
    """Whether jobs that read a product may wait for its bytes, since it is there and was made as it would be requested
    now.

    `fingerprint`: what it would be made of now, ``<code>-<asked>``. `files`: those of the user's own that it comes
    from; one that is newer must have a checksum that documents.json (`facts`) recorded: it was touched, or copied.
    `own_code`: its own code must be the same too.
    """
    place = _find_record(product)
    if not Path(product).exists() or not place.exists():
        return False
    newer = [file for file in files if os.path.getmtime(file) > place.stat().st_mtime]
    if newer and not {_sha256(file) for file in newer} <= _read_checksums(facts):
        return False
    recorded = str((fingerprint_file.read(place) or {}).get(fingerprint_file.KEY, ""))
    if not recorded:  # older than this: it may well be the same, which who reads it compares
        return not own_code
    return recorded == fingerprint if own_code else recorded.partition("-")[2] == fingerprint.partition("-")[2]


def _read_checksums(facts: str | Path) -> set[str | None]:
    """The checksums of a corpus's files, as documents.json has them."""
    collections = (fingerprint_file.read(facts) or {}).get("collections")
    listed = (
        [collection for collection in collections if isinstance(collection, dict)]
        if isinstance(collections, list)
        else []
    )
    files = [collection["files"] for collection in listed if isinstance(collection.get("files"), dict)]
    return {collection.get("sha256") for collection in listed} - {None} | {
        sha256 for each in files for sha256 in each.values()
    }


def _find_record(product: str) -> Path:
    """Where a product states what it was made of: of a pack any of its manifests."""
    path = Path(product)
    return min(path.glob("*.json"), default=path / "none") if path.is_dir() else fingerprint_file.sidecar_path(path)


def _has_other_code(job: Any) -> bool:
    """Of anything with a parameter `fingerprint`."""
    now = getattr(job.params, fingerprint_file.KEY, None)
    if not now:
        return False
    name = _INSIDE.get(job.rule.name)
    record = fingerprint_file.read(_find_record(job.output[0]) if name is None else getattr(job.output, name)) or {}
    return record.get(fingerprint_file.KEY) != now


def _has_other_manifests(job: Any) -> bool:
    """A folder of packs has a manifest of each of them."""
    flags = shlex.split(job.params.flags)
    names = [word.partition("=")[0] for option, word in pairwise(flags) if option == "--pack-size"]
    return not all(Path(job.output[0], f"{name}.json").exists() for name in names) or _has_other_code(job)


def _is_other_run(job: Any) -> bool:
    """A run states whose it is and on which packs; what cannot be read is left to who opens it."""
    if not Path(job.output.manifest).exists():
        return True
    outcome, manifest = (
        fingerprint_file.read(job.output.outcome) or {},
        fingerprint_file.read(job.output.manifest) or {},
    )
    if outcome.get("run_id", "") not in ("", run_id(job.params.spec)):
        return True
    packs = {"data_fingerprint": job.params.data, "validation_fingerprint": job.params.validation}
    return any(_are_two(manifest.get(key), _fingerprint(path)) for key, path in packs.items())


def _has_other_readings(job: Any) -> bool:
    record = fingerprint_file.read(fingerprint_file.sidecar_path(job.output[0])) or {}
    other_pack = _are_two(record.get("validation_fingerprint"), _fingerprint(job.params.validation))
    return other_pack or _has_other_code(job)


def _has_other_scores(job: Any) -> bool:
    """Scores whose record is not of its form are others; an index of items that is damaged is for who opens it."""
    record, index = (
        fingerprint_file.read(fingerprint_file.sidecar_path(job.output.scores)) or {},
        fingerprint_file.read(job.input.facts) or {},
    )
    listed = {task: entry for task, entry in index.items() if isinstance(entry, dict) and "sha256" in entry}
    now = {task: entry["sha256"] for task, entry in listed.items()}
    now |= {f"{task}.few_shot": entry.get("few_shot_sha256", "") for task, entry in listed.items()}
    try:
        items = json.loads(record.get("items_sha256", "{}"))
        other_items = any(now.get(task, sha256) != sha256 for task, sha256 in items.items())
    except (ValueError, TypeError, AttributeError, RecursionError):
        return True
    return other_items or _are_two(record.get("tokenizer_sha256"), _sha256(job.input.tokenizer)) or _has_other_code(job)


def _is_other_copy(job: Any) -> bool:
    """Of another preset, perhaps."""
    source, copy = job.input[0], job.output[0]
    return Path(source).exists() and not filecmp.cmp(source, copy, shallow=False)


def _are_two(recorded: str | None, now: str | None) -> bool:
    """Whether both are known, and are two."""
    return bool(recorded and now and recorded != now)


def run_id(spec: str) -> str:
    """Hash the canonical JSON of a run's spec to the run's id."""
    return sha256_text(spec)[:16]


@cache
def _fingerprint(manifest: str) -> str | None:
    content = fingerprint_file.read(manifest)
    try:
        return None if content is None else fingerprint(content)
    except (KeyError, TypeError):
        return None


@cache
def _sha256(path: str) -> str | None:
    return sha256_file(path) if Path(path).is_file() else None


#: Rules with an output of JSON that says it, by the output's name.
_INSIDE = {"documents": "facts", "measure": "json", "table": "provenance"}

_COMPARED: dict[str, Callable[[Any], bool]] = {
    "pack": _has_other_manifests,
    "pretrain": _is_other_run,
    "probe": _has_other_readings,
    "evaluate": _has_other_scores,
    **dict.fromkeys(("copy_table", "copy_figure", "copy_page", "copy_report"), _is_other_copy),
}
