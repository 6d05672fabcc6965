"""Compares a tokenizer with the one that a finished run was trained with. Nothing here needs torch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError
from plumbline.core.files import sha256_file
from plumbline.data.manifest import beside_tokenizer, of_fingerprint

#: The key of a run's manifest that has the SHA-256 of the tokenizer.json that its packs were cut with.
TOKENIZER = "tokenizer_sha256"


def require(folder: Path, manifest: Mapping[str, Any], tokenizer: Path) -> str:
    """Compute the SHA-256 of a tokenizer.json, and compare it with that of the tokenizer that a run was trained with.

    The manifest of a run of an earlier version does not say which that is; that of its training pack does, and it is
    looked for among the packs of the tokenizer's corpus.

    Args:
        folder: of the run.
        manifest: of the run.

    Raises:
        PlumblineError: it is another tokenizer, or nothing says which one it should be.
    """
    found, said = sha256_file(tokenizer), folder / "manifest.json"
    expected = manifest.get(TOKENIZER)
    if expected is None:
        packs = beside_tokenizer(tokenizer)
        pack = of_fingerprint(packs, manifest.get("data_fingerprint"))
        if pack is None:
            raise PlumblineError(
                f"{said}, of an earlier version, does not say which tokenizer the run was trained with, and the "
                f"manifest of its training pack, which does, is not below {packs}: give the tokenizer.json of the "
                "folder of the run's corpus, and have the pack made there again if it was deleted (its manifest, a "
                "small JSON file, is enough)"
            )
        said, expected = pack[0], pack[1][TOKENIZER]
    if found != expected:
        raise PlumblineError(
            f"{tokenizer} is not the tokenizer that {folder} was trained with: its sha256 is {found}, and {said} says "
            f"{expected}; give or restore that one (the rule `tokenizer` makes a corpus's again where it was deleted "
            "along with its .fingerprint.json)"
        )
    return found
