"""Checks that SLURM's jobs can be started from the project's folder, by this interpreter."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

from plumbline.operate.preflight.check_result import STOP, CheckResult


def check(root: Path) -> list[CheckResult]:
    """Report paths that jobs cannot be submitted with: Snakemake writes them into a shell's command without quoting."""
    found = []
    if re.search(r"""['"\\$`]""", str(root.resolve())):
        words = f"{root.resolve()}: SLURM's jobs start in no folder with quotation marks, backslash or $; rename it"
        found.append(CheckResult(state=STOP, what="SLURM: folder", words=words))
    if shlex.quote(sys.executable) != sys.executable:
        words = f"{sys.executable}: SLURM's jobs are started with it, unquoted; make the environment where no space is"
        found.append(CheckResult(state=STOP, what="SLURM: interpreter", words=words))
    return found
