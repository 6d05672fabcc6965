"""Fingerprints the checks of a file of one's own: their code, the models' code, and the models that are checked."""

from __future__ import annotations

from typing import Any

from plumbline.core.files import canonical_json, sha256_text
from plumbline.specs import code
from plumbline.specs.mine import Mine, models


def of_checks(mine: Mine) -> str:
    """Changes with the code of the checks and of the models, and with the models that are checked."""
    files = code.product_files(code.PACKAGE / "experiment" / "checks.py")
    asked: list[Any] = [mine.against, mine.asked["parity"]]
    for method, (small, whole) in models(mine).items():
        asked.append([method, small.to_dict()["model"], small.components, {k: v.to_dict() for k, v in whole.items()}])
    return sha256_text(canonical_json([code.tree_hash(files), asked]))[:16]
