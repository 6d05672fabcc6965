"""Checks the interpreter, the packages that jobs import, and Snakemake's executor."""

from __future__ import annotations

import importlib.util
import re
import sys
from importlib import metadata

from plumbline.core import numeric_environment
from plumbline.operate.preflight import gpu
from plumbline.operate.preflight.check_result import OK, STOP, CheckResult
from plumbline.operate.preflight.dry_run import DryRun

#: Oldest Python that this is written for (pyproject.toml, requires-python).
PYTHON = (3, 11, 2)
#: What jobs of a rule import beyond the packages that planning itself takes. torch is tried, the others looked for.
IMPORTS = {
    "documents": ("datasets",),
    "tokenizer": ("tokenizers",),
    "tokenize": ("tokenizers", "numpy"),
    "items": ("datasets",),
    "pretrain": ("torch", "safetensors"),
    "probe": ("torch", "safetensors"),
    "evaluate": ("torch", "lm_eval", "transformers"),
    "table": ("pandas", "scipy"),
    "figure": ("matplotlib",),
}
#: The rules whose jobs compute numbers with torch.
COMPUTES = ("pretrain", "probe", "evaluate", "measure")
_REMEDY = "make setup, or sh envs/install_locks.sh python"


def check(dry_run: DryRun) -> list[CheckResult]:
    """Check the version of Python, and that every package is installed which a job to do imports."""
    if sys.version_info < PYTHON:
        message = f"Python {sys.version.split()[0]} is older than {'.'.join(map(str, PYTHON))}; use a newer one"
        return [CheckResult(state=STOP, subject="environment", message=message)]
    importers = {name: rule for rule, names in IMPORTS.items() if dry_run.of(rule) for name in names}
    results = [
        CheckResult(
            state=STOP, subject="environment", message=f"{rule} imports {name}, which is not installed; {_REMEDY}"
        )
        for name, rule in importers.items()
        if importlib.util.find_spec(name) is None
    ]
    results += [CheckResult(state=STOP, subject="environment", message=message) for message in list_refusals(dry_run)]
    versions = [f"Python {sys.version.split()[0]}", f"snakemake {metadata.version('snakemake')}"]
    if "torch" in importers and not results:
        facts = gpu.ask_torch()
        if "fault" in facts:
            message = f"{importers['torch']} imports torch, which fails here ({facts['fault']}); {_REMEDY}"
            results.append(CheckResult(state=STOP, subject="environment", message=message))
        else:
            versions.append(f"torch {facts['torch']}")
    return results or [CheckResult(state=OK, subject="environment", message=", ".join(versions))]


def list_refusals(dry_run: DryRun) -> list[str]:
    """Explain why no job to do that computes with torch would start in this environment, which jobs inherit."""
    computes = any(dry_run.of(rule) for rule in COMPUTES)
    return [message] if computes and (message := numeric_environment.explain_refusal()) else []


def check_executor(refused: str) -> list[CheckResult]:
    """Explain Snakemake's error about an executor that is not installed; none if it `refused` for another reason."""
    match = re.search(r"argument --executor\S*: invalid choice: '([\w-]+)'", refused)
    if match is None:
        return []
    message = (
        f"executor: {match[1]}: its plug-in snakemake-executor-plugin-{match[1]} is not installed in "
        f"{sys.prefix}; {_REMEDY}"
    )
    return [CheckResult(state=STOP, subject="executor", message=message)]
