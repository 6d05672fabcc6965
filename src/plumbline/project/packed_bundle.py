"""Reads the description of a bundle in a folder where it was rebuilt: `plumbline.json`, which lies at its root.

Such a folder holds what was packed: how runs ended, their frames and products. It has no weights, checkpoints or
corpora, and its runs are of the code of the bundle's commit, whose ids those of other code need not be.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from plumbline.core import fingerprint_file

#: The file's name, in an archive and in the folder that it is unpacked into.
DESCRIPTION = "plumbline.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class PackedBundle:
    """A bundle that a folder was rebuilt from: the commit of the code that made it (empty if that was in no
    repository), and when its last run or measurement ended (empty if it has none).
    """

    commit: str
    finished: str

    @property
    def remedy(self) -> str:
        """Describe, for an error message, how the folder is read by the code that it belongs to."""
        whose = f"this folder was rebuilt from a bundle, and its files are those of the bundle's code ({DESCRIPTION})"
        if not self.commit:
            return f"{whose}, which is of no commit: use the sources that made it"
        worktree = f"../plumbline-{self.commit[:7]}"
        return (
            f"{whose}; in a clone of Plumbline that has its commit: git worktree add {worktree} {self.commit} && "
            f"cd {worktree} && make setup, and here the plumbline of {worktree}/.venv/bin"
        )


def read(root: Path) -> PackedBundle | None:
    """Read what the project `root` was rebuilt from; None if it was not rebuilt from a bundle."""
    description = fingerprint_file.read(root / DESCRIPTION)
    if description is None or not {"format", "commit", "products"} <= description.keys():
        return None
    return PackedBundle(commit=str(description["commit"] or ""), finished=str(description.get("finished") or ""))
