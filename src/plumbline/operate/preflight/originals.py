"""Checks that what is shown or carried on is what was made.

Jobs that copy, report or pack a product compare nothing, or only show that it is another file; and whoever replaces a
file can keep its time stamp, by which Snakemake would see it.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from plumbline.core import fingerprint_file
from plumbline.core.files import sha256_file
from plumbline.results.tables.provenance import provenance_path

#: How the names of rules begin that show or carry on what is in the folder of results.
SHOWING = ("copy_", "report", "bundle")


def list_refusals(jobs: Iterable[Any], results: str) -> list[str]:
    """Find products in the folder `results` that Snakemake's jobs would show or carry on, and that are not the files
    whose SHA-256 stands next to them. Those that another of the jobs makes will be.
    """
    jobs = list(jobs)
    outputs = {str(path) for job in jobs for path in job.output}
    inputs = {str(path) for job in jobs for path in job.input if job.rule.name.startswith(SHOWING)}
    refusals = []
    for path in sorted(Path(name) for name in inputs - outputs if name.startswith(f"{results}/")):
        sidecar = next((file for file in _list_sidecars(path) if file.exists()), None)
        files = ((fingerprint_file.read(sidecar) or {}) if sidecar else {}).get(fingerprint_file.FILES, {})
        expected = files.get(path.name)
        if expected and path.exists() and (sha256 := sha256_file(path)) != expected:
            refusals.append(
                f"{path} is not the file that was made: its sha256 is {sha256}, and {sidecar} says {expected}; restore "
                "it, or delete both and have it made again"
            )
    return refusals


def _list_sidecars(path: Path) -> list[Path]:
    """Where the SHA-256 of a product's files may stand: `table2.all.tex` is one of table2's."""
    product = path.with_name(path.name.partition(".")[0])
    return [fingerprint_file.sidecar_path(product), provenance_path(product)]
