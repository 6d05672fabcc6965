"""Fingerprints the checks of a user's own file: their code, the models' code, and the models that are checked."""

from __future__ import annotations

import dataclasses
from typing import Any

from plumbline.core.files import canonical_json, sha256_text
from plumbline.experiment.checks.trained_size import trained_sizes
from plumbline.specs import code_hash
from plumbline.specs.checked_models import models
from plumbline.specs.own_methods_file import OwnMethodsFile


def of_checks(mine: OwnMethodsFile) -> str:
    """Fingerprint the checks of a user's own file.

    It changes with their code, the models' code, and the models checked.
    """
    entries = ("experiment/checks/method_checks.py", "operate/preflight/own_training.py")
    files = {file for entry in entries for file in code_hash.product_files(code_hash.PACKAGE / entry)}
    asked: list[Any] = [mine.against, mine.asked["parity"]]
    for method, (small, whole) in models(mine).items():
        sizes = [dataclasses.asdict(size) for size in trained_sizes(mine, method)]
        runs = {k: v.to_dict() for k, v in whole.items()}
        asked.append([method, small.to_dict(), small.components, runs, sizes])
    return sha256_text(canonical_json([code_hash.tree_hash(files), asked]))[:16]
