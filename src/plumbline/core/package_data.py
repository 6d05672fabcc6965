"""Finds the files that travel with the package besides its modules: the workflow, configuration, profiles,
documentation.

In a source tree these are the folders of the repository itself. A wheel has a copy of them in `plumbline/_project`,
made when it is built (setup.py, which runs this file: it may import nothing but the standard library).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parents[1]
#: Where a wheel has its copy, and what it says there of the commit that it was built from.
COPY = "_project"
BUILT = "built.json"

#: Files and folders of the repository, as patterns; what is hidden or made is left out of folders.
TRAVELS = (
    "Snakefile",
    "config",
    "studies",
    "workflow",
    "profiles",
    "envs/install_locks.sh",
    "envs/plumbline.yaml",
    "envs/plumbline.post-deploy.sh",
    "examples",
    "benchmarks/*.md",
    "benchmarks/job_resources.yaml",
    "benchmarks/fake_device.jsonl",
    "records/README.md",
    "records/*/record.json",
    "results/README.md",
    "docs/*.md",
    "docs/papers/*.md",
    "docs/_assets/*.png",
    "docs/_assets/*.svg",
    "CONTRIBUTING.md",
    "requirements.lock",
    "requirements-cuda.lock",
)


def is_project(root: Path) -> bool:
    """Whether a folder has the configuration and the studies of a project."""
    return (root / "config").is_dir() and (root / "studies").is_dir()


def source_tree() -> Path | None:
    """The repository that this package lies in; None if it was installed from a wheel."""
    root = PACKAGE.parents[1]
    return root if PACKAGE.parent.name == "src" and (root / "Snakefile").is_file() and is_project(root) else None


def folder() -> Path:
    """The folder of workflow, configuration and documentation: the repository, or the copy in an installed wheel."""
    return source_tree() or PACKAGE / COPY


def list_files(root: Path) -> Iterator[Path]:
    """The files of the folder `root` that travel with the package, as paths relative to it, in order."""
    for pattern in TRAVELS:
        for place in sorted(root.glob(pattern)):
            paths = sorted(place.rglob("*")) if place.is_dir() else [place]
            for path in paths:
                relative = path.relative_to(root)
                hidden = any(part.startswith((".", "__")) or part.endswith(".egg-info") for part in relative.parts[:-1])
                if path.is_file() and not hidden and not relative.name.startswith("."):
                    yield relative


def read_built_commit() -> dict[str, Any]:
    """`git_commit` and `git_dirty` of the source tree that this wheel was built from; None if not recorded."""
    try:
        content = json.loads((PACKAGE / COPY / BUILT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        content = {}
    return {key: content.get(key) for key in ("git_commit", "git_dirty")}
