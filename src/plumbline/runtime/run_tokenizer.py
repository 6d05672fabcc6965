"""Compares a tokenizer with the one that a finished run was trained with. Nothing here needs torch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError
from plumbline.core.files import sha256_file

#: The key of a run's manifest that has the SHA-256 of the tokenizer.json that its packs were cut with.
TOKENIZER = "tokenizer_sha256"


def require(folder: Path, manifest: Mapping[str, Any], tokenizer: Path) -> str:
    """Compute the SHA-256 of a tokenizer.json, and compare it with that of the tokenizer that a run was trained with.

    Args:
        folder: of the run.
        manifest: of the run.

    Raises:
        PlumblineError: it is another tokenizer, or nothing says which one it should be.
    """
    path, found, expected = folder / "manifest.json", sha256_file(tokenizer), manifest.get(TOKENIZER)
    if expected is None:
        raise PlumblineError(
            f"{path} has no {TOKENIZER!r}, so that nothing says which tokenizer the run was trained with; "
            "delete the run's folder and pretrain again"
        )
    if found != expected:
        raise PlumblineError(
            f"{tokenizer} is not the tokenizer that {folder} was trained with: its sha256 is {found}, and {path} says "
            f"{expected}; give or restore that one (the rule `tokenizer` makes a corpus's again where it was deleted "
            "along with its .fingerprint.json)"
        )
    return found
