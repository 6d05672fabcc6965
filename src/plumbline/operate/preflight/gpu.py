"""Checks whether jobs want a GPU, and whether torch finds one that can be used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from functools import cache
from typing import Any

from plumbline.core.formats import format_count
from plumbline.operate.console.rule_names import RUN_STAGES, STAGES
from plumbline.operate.preflight.check_result import NOTE, OK, UNKNOWN, CheckResult
from plumbline.operate.preflight.dry_run import DryRun, JobToRun
from plumbline.plan import machines
from plumbline.plan.run_estimate import estimator

#: Rules whose jobs work on a device.
RULES = tuple(rule for rule, stage in STAGES.items() if stage in RUN_STAGES)
#: In a process of its own: this one stays quick where nothing wants torch, and survives a driver that does not.
_ASKED_OF_TORCH = """
import json, torch
gpu = torch.cuda.is_available()
print(json.dumps({
    "torch": torch.__version__,
    "cuda": torch.version.cuda,
    "devices": [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())] if gpu else [],
    "bfloat16": gpu and torch.cuda.is_bf16_supported(including_emulation=False),
}))
"""

_LOOKING = threading.Lock()


def ask_torch() -> dict[str, Any]:
    """Report what torch sees on this machine, as a mapping.

    It has `torch` and `cuda` (versions; no CUDA is None), names of `devices`, and whether they compute in `bfloat16`.
    Where torch cannot be imported it has `fault` alone.
    """
    with _LOOKING:  # several sections ask at the same time
        return _ask_torch_once()


@cache
def _ask_torch_once() -> dict[str, Any]:
    try:
        process = subprocess.run([sys.executable, "-c", _ASKED_OF_TORCH], capture_output=True, text=True, timeout=120)
    except (OSError, subprocess.TimeoutExpired) as problem:
        return {"fault": f"{type(problem).__name__}: {problem}"}
    if process.returncode:
        return {"fault": (process.stderr.strip() or f"exit code {process.returncode}").splitlines()[-1]}
    facts: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    return facts


def check(dry_run: DryRun) -> list[CheckResult]:
    """Check that torch finds a GPU that can be used, where jobs of runs are to do and want one."""
    jobs = dry_run.of(*RULES)
    if not jobs:
        return []
    plan = dry_run.project
    machine = machines.load(plan.config["machine"], plan.root)
    demands = [
        *([f"config/presets/{plan.name}.yaml: device: gpu"] if plan.preset["device"] == "gpu" else []),
        *([f"machine: {plan.config['machine']}"] if machine.device == "cuda" else []),
    ]
    if dry_run.runs_on_other_machines:
        message = f"of {_describe_jobs(jobs)}: depends on the nodes that {dry_run.executor} gives them"
        return [CheckResult(state=UNKNOWN, subject="device", message=message)]
    facts = ask_torch()
    if "fault" in facts:
        return []  # which the environment says
    runs = dry_run.runs()
    short = [run for run in runs if run.spec.train.precision != "float32"]
    if facts["devices"]:
        message = f"{len(facts['devices'])} x {facts['devices'][0]}, torch {facts['torch']}"
        if short and not facts["bfloat16"]:
            message += f"; bfloat16, which {len(short)} of {len(runs)} runs compute in, is emulated there and slow"
            return [CheckResult(state=NOTE, subject="device", message=message)]
        return [CheckResult(state=OK, subject="device", message=message)]
    if not demands:
        return [CheckResult(state=OK, subject="device", message=f"processors, which preset {plan.name} is for")]
    message = (
        f"{' and '.join(demands)} wants a GPU for {_describe_jobs(jobs)}, and torch sees none here "
        f"({_explain_missing_gpu(facts)}): nothing stops, but all of it runs on processors"
    )
    if short:
        message += (
            f"; on processors bfloat16 ({len(short)} of {len(runs)} runs) is emulated, or, at precision "
            "bfloat16_products where their instructions have it, fast"
        )
    core = machines.load("core", plan.root)
    hours = sum(estimator(plan, core, calibrate_on=(), root=plan.root).pretrain_seconds(run) for run in runs) / 3600
    message += f"; the trainings would take about {hours / core.devices_at_once:,.0f} hours on two cores (estimated)"
    remedy = "Use a machine with a GPU, --profile slurm, or --config preset=demo machine=core"
    return [CheckResult(state=NOTE, subject="device", message=f"{message}. {remedy}")]


def _describe_jobs(jobs: list[JobToRun]) -> str:
    return f"{format_count(len(jobs), 'job')} of runs"


def _explain_missing_gpu(facts: dict[str, Any]) -> str:
    if facts["cuda"] is None:
        return f"torch {facts['torch']} is built without CUDA"
    if "CUDA_VISIBLE_DEVICES" in os.environ:
        return f"CUDA_VISIBLE_DEVICES is {os.environ['CUDA_VISIBLE_DEVICES']!r}"
    return "no driver or no device: see nvidia-smi"
