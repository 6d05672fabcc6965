"""Checks the data sets of the Hugging Face hub that jobs read: not offline, the hub answers, the commit is there."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from plumbline.core.errors import PlumblineError
from plumbline.data.document import name_key
from plumbline.data.sources import hub
from plumbline.operate.preflight import folders
from plumbline.operate.preflight.check_result import OK, STOP, UNKNOWN, CheckResult, at_once
from plumbline.operate.preflight.dry_run import DryRun
from plumbline.specs import suites

#: Variables that keep the hub's libraries from asking.
OFFLINE = ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "TRANSFORMERS_OFFLINE")
#: What a message of the HTTP client states of this request alone.
_AT = re.compile(r" at 0x[0-9a-f]+| with url: \S+|\(Request ID: [^)]*\)")
#: Seconds to wait for the hub.
PATIENCE = 5.0


@dataclass(frozen=True, kw_only=True, slots=True)
class HubDataset:
    """A data set that is read from the hub, at a commit, or at the newest one where `revision` is empty.

    `subject`: the thing that reads it; `where`: the key that names it; `otherwise`: what to do without the hub.
    """

    subject: str
    where: str
    path: str
    revision: str
    otherwise: str


def check(dry_run: DryRun) -> list[CheckResult]:
    """Check each data set that a job to do reads from the hub; one finding for all that fail for one reason."""
    if results := check_offline(dry_run):
        return results
    try:
        data_sets = _list_data_sets(dry_run)
    except PlumblineError as problem:  # of a damaged lock
        return [CheckResult(state=STOP, subject="hub.lock", message=str(problem))]
    faulty = [
        data_set for data_set in data_sets if data_set.revision and not re.fullmatch(r"[0-9a-f]{40}", data_set.revision)
    ]
    results = [
        CheckResult(
            state=STOP,
            subject=data_set.subject,
            message=f"{data_set.where}: {data_set.revision!r} is not a full commit hash (40 hex digits)",
        )
        for data_set in faulty
    ]
    valid_sets = [data_set for data_set in data_sets if data_set not in faulty]
    answers = at_once(_ask_hub, valid_sets)
    silent: dict[tuple[str, str, str, str], list[str]] = defaultdict(list)
    for data_set, (commit_there, reason) in zip(valid_sets, answers, strict=True):
        if reason:
            at = f" at {data_set.revision[:10]}" if data_set.revision else ""
            silent[data_set.subject, data_set.where, data_set.otherwise, reason].append(f"{data_set.path}{at}")
        else:
            newest = "" if data_set.revision else ", the newest, which the first fetch writes to hub.lock"
            message = f"{data_set.path} at {commit_there[:10]}{newest}{_nodes(dry_run)}"
            results.append(
                CheckResult(
                    state=UNKNOWN if dry_run.runs_on_other_machines else OK, subject=data_set.subject, message=message
                )
            )
    for (subject, where, otherwise, reason), paths in silent.items():
        message = (
            f"{where}: the hub does not give {', '.join(paths)} ({reason}). Check the network, name and revision, "
        )
        results.append(CheckResult(state=STOP, subject=subject, message=f"{message}or {otherwise}"))
    return results


def check_offline(dry_run: DryRun) -> list[CheckResult]:
    """Refuse data sets that are to be read while a variable of this shell forbids the hub.

    Jobs of a cluster inherit it.
    """
    variable = next((name for name in OFFLINE if os.environ.get(name, "").upper() in ("1", "ON", "YES", "TRUE")), None)
    if variable is None:
        return []
    return [
        CheckResult(
            state=STOP,
            subject=subject,
            message=f"{where}: read from the hub, and {variable}={os.environ[variable]} forbids that; unset "
            f"{variable}, or {otherwise}",
        )
        for subject, where, otherwise in dict.fromkeys(
            (data_set.subject, data_set.where, data_set.otherwise) for data_set in _list_data_sets(dry_run, locks=False)
        )
    ]


def commit(path: str, revision: str) -> str:
    """Ask the hub for the commit of a data set's `revision`, which it checks; an empty one means the newest."""
    from huggingface_hub import HfApi  # here, because importing it takes time that other checks need not spend

    return HfApi().dataset_info(path, revision=revision or None, timeout=PATIENCE).sha or ""


def _ask_hub(data_set: HubDataset) -> tuple[str, str]:
    """The commit that the hub has, or why it gives none."""
    try:
        return commit(data_set.path, data_set.revision), ""
    except Exception as error:  # each way of being out of reach has a class of its own
        return "", f"{type(error).__name__}: {(_AT.sub('', str(error)).strip() or 'no message').splitlines()[0]}"


def _nodes(dry_run: DryRun) -> str:
    """What cannot be known from a login node."""
    if not dry_run.runs_on_other_machines:
        return ""
    return "; it answers here, compute nodes were not checked (docs/on-your-cluster.md, step 6)"


def _list_data_sets(dry_run: DryRun, *, locks: bool = True) -> list[HubDataset]:
    """What jobs to do read, at the commits that `locks` name where the configuration names none.

    Raises:
        PlumblineError: a lock that cannot be read.
    """
    data_sets, plan = [], dry_run.project
    for (name,) in dry_run.values("documents", "corpus"):
        corpus = plan.corpora[name]
        if corpus.source != "hub" or folders.is_folder(corpus.hub.path):
            continue
        out, revision = Path(plan.paths.corpus(name)) / "documents", corpus.hub.revision
        if locks and not revision:
            revision = hub.read_locked_commit(out, corpus.hub.path, corpus.hub.configuration) or ""
        otherwise = "set data.source to local (docs/your-own-data.md), or let hub.path be a copy of the data set"
        data_sets.append(
            HubDataset(
                subject=f"texts of {name}",
                where=name_key(name, "hub.revision" if revision else "hub.path"),
                path=corpus.hub.path,
                revision=revision,
                otherwise=otherwise,
            )
        )
    if plan.evaluation_source == "hub":
        data_sets += _list_item_sets(dry_run)
    return data_sets


def _list_item_sets(dry_run: DryRun) -> list[HubDataset]:
    """Data sets of evaluation, each once."""
    names = [suite for (suite,) in dry_run.values("items", "suite")]
    tasks = [task for name in names for task in suites.suite(name, dry_run.project.root)]
    data_sets = dict.fromkeys((task.hub.path, task.hub.revision) for task in tasks if task.hub)
    return [
        HubDataset(
            subject=f"items of {', '.join(names)}",
            where=f"config/presets/{dry_run.project.name}.yaml: evaluation.source",
            path=path,
            revision=revision,
            otherwise="--config 'evaluation={source: local, folder: <one .jsonl a task>}'",
        )
        for path, revision in data_sets
    ]
