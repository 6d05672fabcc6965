"""Fingerprints the checks of a user's own file: their code, the models' code, and the models that are checked."""

from __future__ import annotations

from typing import Any

from plumbline.core.files import canonical_json, sha256_text
from plumbline.specs import code_hash
from plumbline.specs.mine import Mine, models


def of_checks(mine: Mine) -> str:
    """Fingerprint the checks of a user's own file.

    It changes with their code, the models' code, and the models checked.
    """
    files = code_hash.product_files(code_hash.PACKAGE / "experiment" / "checks.py")
    asked: list[Any] = [mine.against, mine.asked["parity"]]
    for method, (small, whole) in models(mine).items():
        asked.append([method, small.to_dict()["model"], small.components, {k: v.to_dict() for k, v in whole.items()}])
    return sha256_text(canonical_json([code_hash.tree_hash(files), asked]))[:16]
