"""Ask SLURM, before the first job, whether it would take every kind of job that a profile sends it.

Nothing is submitted: each kind of job goes to `sbatch --test-only`. It finds wrong account and partition names, time
limits above a partition's, and nodes that are too small, all of which would otherwise show as failed jobs, or as jobs
that wait for ever. The settings of the cluster that SLURM's executor plugin depends on are looked at as well.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from plumbline.operate import invocation
from plumbline.operate.check import beforehand
from plumbline.operate.check.finding import NOTE, OK, STOP, UNKNOWN, Finding, at_once
from plumbline.operate.check.planned import Planned
from plumbline.plan import machines
from plumbline.project import Plan, plan
from plumbline.specs.config import ROOT, load_config, read_yaml
from plumbline.specs.sheet import Run

#: What a refused job asked for, as the profile calls it.
NAMED = ("slurm_account", "slurm_partition", "runtime", "mem_mb", "nodes", "gres", "gpu", "threads")
#: Seconds that SLURM must remember an ended job: the executor polls at most every 180 s.
MIN_JOB_AGE = 200


def load(profiles: Iterable[str | Path]) -> dict[str, Any]:
    """The profiles as Snakemake merges them: a later one replaces whole top-level keys, of `config` those it names.

    Raises:
        PlumblineError: no such profile.
    """
    merged: dict[str, Any] = {}
    for file in map(invocation.profile_file, profiles):
        words = [*merged.get("config", []), *invocation.profile_words(file)]
        merged |= read_yaml(file) | ({"config": words} if words else {})
    return merged


def evaluated(value: Any, **names: Any) -> Any:
    """A resource as Snakemake evaluates it: an expression, or the text itself if it is none."""
    if not isinstance(value, str):
        return value
    try:
        found = eval(value, dict(names))
    except (NameError, SyntaxError):
        return value
    return value if callable(found) else found  # a partition may be called `all`


def configured(profile: dict[str, Any], root: Path = ROOT) -> Plan:
    """The configuration that jobs of a profile have: config/config.yaml with what the profile sets."""
    config = load_config(root / "config" / "config.yaml")
    return plan(invocation.changed(config, profile.get("config", [])), root)


def requests(profile: dict[str, Any], of: Plan) -> dict[str, dict[str, Any]]:
    """The resources of each kind of job: every rule with requests of its own for a run of every size class that the
    configuration has (a measurement on every device), and any other rule.

    Rules that the profile gives no time limit get one from the plan's model, which is at most a slice of the profile's
    machine: the slice is what is asked for here.
    """
    defaults, special = profile.get("default-resources", {}), profile.get("set-resources", {})
    slice_minutes = int(machines.load(of.config["machine"], of.root).slice_hours * 60)
    sizes = {run.size: _of_run(run) for run in reversed(of.runs.values())}  # the first run of each
    devices = {one.device: SimpleNamespace(study=one.study, measurement=one.name) for one in of.measurements.values()}
    found = {}
    for rule in (*special, "any other rule"):
        kinds = {"": SimpleNamespace()} if rule not in special else devices if rule == "measure" else sizes
        for size, wildcards in kinds.items():
            names = {"wildcards": wildcards, "attempt": 1, "input": []}
            values = defaults | ({"runtime": slice_minutes} | special[rule] if rule in special else {})
            values = {key: evaluated(value, **names) for key, value in values.items()}
            threads = evaluated(profile.get("set-threads", {}).get(rule, 1), **names)
            found[f"{rule} {size}".strip()] = values | {"threads": threads}
    return found


def _of_run(run: Run) -> SimpleNamespace:
    """The wildcards of a run's jobs."""
    spec = run.spec
    return SimpleNamespace(study=spec.study, scale=spec.scale, method=spec.method, seed=str(spec.init_seed))


def command(resources: dict[str, Any]) -> list[str]:
    """The `sbatch --test-only` for one kind of job."""
    options = {
        "--account": "slurm_account",
        "--partition": "slurm_partition",
        "--time": "runtime",
        "--mem": "mem_mb",
        "--nodes": "nodes",
        "--gres": "gres",
        "--gpus": "gpu",
        "--constraint": "constraint",
        "--qos": "qos",
        "--cpus-per-task": "threads",
    }
    words = [f"{option}={resources[name]}" for option, name in options.items() if resources.get(name)]
    if resources.get("nodes"):
        words.append(f"--ntasks={resources['nodes']}")
    return ["sbatch", "--test-only", *words, "--wrap=true"]


def ask(kind: str, resources: dict[str, Any]) -> Finding:
    """SLURM's answer to one kind of job."""
    try:
        done = subprocess.run(command(resources), capture_output=True, text=True, timeout=120)
    except (OSError, subprocess.TimeoutExpired) as problem:
        return Finding(state=UNKNOWN, what=f"SLURM: {kind}", words=f"sbatch did not answer ({problem})")
    lines = [line.removeprefix("sbatch: ") for line in done.stderr.strip().splitlines()]
    words = lines[-1] if lines else "no answer"
    if done.returncode == 0:
        return Finding(state=OK, what=f"SLURM: {kind}", words=words)
    asked = ", ".join(f"{name} {resources[name]}" for name in NAMED if resources.get(name))
    return Finding(state=STOP, what=f"SLURM: {kind}", words=f"refuses {asked}: {words}")


def settings(configuration: str) -> list[str]:
    """What in `scontrol show config` will cause trouble, in words."""
    values = dict(re.findall(r"^(\w+)\s*=\s*(.*?)\s*$", configuration, re.MULTILINE))
    trouble = []
    age = re.match(r"\d+", values.get("MinJobAge", ""))
    if age and int(age[0]) < MIN_JOB_AGE:
        trouble.append(
            f"MinJobAge is {age[0]} s: a job may be forgotten by SLURM before Snakemake asks for it. Ask your "
            f"administrators for 300, the default"
        )
    if "job_comment" not in values.get("AccountingStoreFlags", ""):
        trouble.append(
            "AccountingStoreFlags has no job_comment: sacct will not show rule and wildcards; "
            "squeue -o '%i %T %k' does while a job is in the queue"
        )
    return trouble


def look(planned: Planned) -> list[Finding]:
    """A line for each kind of job that the profile's rules make; what cannot be asked here, where nothing can be."""
    if planned.executor != "slurm":
        return []
    if shutil.which("sbatch") is None:
        found = [Finding(state=STOP, what="SLURM", words="there is no sbatch here: go where you submit jobs")]
        if not planned.account:
            words = "default-resources.slurm_account: none in force; the executor plug-in will guess one"
            found.append(Finding(state=NOTE, what="SLURM account", words=words))
        elif beforehand.placeholder(planned.account):
            found.append(Finding(state=STOP, what="SLURM account", words=beforehand.account_words(planned.account)))
        return found
    kinds = requests(load(planned.profiles), planned.plan)
    found = [*at_once(lambda kind: ask(kind, kinds[kind]), kinds), *_settings()]
    if beforehand.placeholder(planned.account) and any(one.state == STOP for one in found):
        found.append(Finding(state=STOP, what="SLURM account", words=beforehand.account_words(planned.account)))
    return found


def _settings() -> list[Finding]:
    try:
        done = subprocess.run(["scontrol", "show", "config"], capture_output=True, text=True, timeout=120)
    except (OSError, subprocess.TimeoutExpired) as problem:
        return [Finding(state=UNKNOWN, what="SLURM: settings", words=f"scontrol did not answer ({problem})")]
    return [Finding(state=NOTE, what="SLURM: settings", words=words) for words in settings(done.stdout)]
