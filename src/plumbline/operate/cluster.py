"""Ask SLURM, before the first job, whether it would take every kind of job that a profile sends it.

    python -m plumbline.operate.cluster --profile slurm --profile my-site

Nothing is submitted: each kind of job goes to `sbatch --test-only`. It finds wrong account and partition names, time
limits above a partition's, and nodes that are too small, all of which would otherwise show as failed jobs, or as jobs
that wait for ever. The settings of the cluster that SLURM's executor plugin depends on are looked at as well.
"""

from __future__ import annotations

import argparse
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from plumbline.cli import PlumblineError, run
from plumbline.operate import invocation
from plumbline.plan import machines
from plumbline.project import Plan, plan
from plumbline.specs.config import ROOT, load_config, read_yaml
from plumbline.specs.sheet import Run

NAMES = ("config.v9+.yaml", "config.yaml", "profile.v9+.yaml", "profile.yaml")
#: Seconds that SLURM must remember an ended job: the executor polls at most every 180 s.
MIN_JOB_AGE = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What SLURM said to one kind of job."""

    kind: str
    taken: bool
    words: str


def load(profiles: list[str]) -> dict[str, Any]:
    """The profiles as Snakemake merges them: a later one replaces whole top-level keys, of `config` those it names.

    Raises:
        PlumblineError: no such profile.
    """
    merged: dict[str, Any] = {}
    for profile in profiles:
        found = [path for path in (Path(profile) / name for name in NAMES) if path.is_file()]
        if not found:
            raise PlumblineError(f"--profile {profile}: no {NAMES[0]} in that directory")
        words = [*merged.get("config", []), *invocation.profile_words(found[0])]
        merged |= read_yaml(found[0]) | ({"config": words} if words else {})
    return merged


def evaluated(value: Any, **names: Any) -> Any:
    """A resource as Snakemake evaluates it: an expression, or the text itself if it is none."""
    if not isinstance(value, str):
        return value
    try:
        return eval(value, dict(names))
    except (NameError, SyntaxError):
        return value


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


def ask(kind: str, resources: dict[str, Any]) -> Verdict:
    """SLURM's answer to one kind of job.

    Raises:
        PlumblineError: there is no SLURM here.
    """
    try:
        done = subprocess.run(command(resources), capture_output=True, text=True, timeout=120)
    except FileNotFoundError:
        raise PlumblineError("there is no sbatch here: run this where you submit jobs") from None
    lines = [line.removeprefix("sbatch: ") for line in done.stderr.strip().splitlines()]
    return Verdict(kind=kind, taken=done.returncode == 0, words=lines[-1] if lines else "no answer")


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


def main() -> int:
    """Print a line a kind of job; exit 1 if one of them would be refused."""
    parser = argparse.ArgumentParser(prog="python -m plumbline.operate.cluster", description=__doc__)
    parser.add_argument("--profile", action="append", required=True, help="as given to Snakemake, in the same order")
    profile = load(parser.parse_args().profile)
    verdicts = [ask(kind, resources) for kind, resources in requests(profile, configured(profile)).items()]
    for verdict in verdicts:
        print(f"{'ok     ' if verdict.taken else 'REFUSED'}  {verdict.kind:<18} {verdict.words}")
    done = subprocess.run(["scontrol", "show", "config"], capture_output=True, text=True, timeout=120)
    for words in settings(done.stdout):
        print(f"note     {words}")
    return 0 if all(verdict.taken for verdict in verdicts) else 1


if __name__ == "__main__":
    run(main)
