"""Computes decision accuracy between two scales from the runs of the pages that a user has made so far."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from plumbline.core import fingerprint_file
from plumbline.core.errors import PlumblineError
from plumbline.core.files import sha256_file
from plumbline.verdict.own_method.decision_accuracy import DecisionAccuracy, pair

#: The key of a page's numbers that holds what it knows of two scales; null where nothing does.
KEY = "at_both"

#: The fact of a page's fingerprint file that is the SHA-256 of its numbers.
NUMBERS = "numbers_sha256"


def entry(study: str, metric: str, scales: Sequence[str], means: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """Make the entry that a page keeps: each method's means of the deciding metric, at the scale and at the larger
    one.
    """
    return {"study": study, "metric": metric, "scales": list(scales), "means": {m: list(v) for m, v in means.items()}}


def known(folder: Path, but: str) -> list[dict[str, Any]]:
    """Read the entries of all pages in a folder but the one named `but`, in the order of their names.

    Raises:
        PlumblineError: a page's numbers cannot be read, or are not those that were written with it.
    """
    found = []
    for path in sorted(folder.glob("*.json")):
        if path.stem == but:
            continue
        try:
            numbers = json.loads(path.read_text(encoding="utf-8"))
        except (UnicodeDecodeError, json.JSONDecodeError) as error:
            raise PlumblineError(f"{path} is not JSON ({error}); remove it, its page's target rebuilds it") from error
        expected = (fingerprint_file.read(fingerprint_file.beside(path)) or {}).get(NUMBERS)
        if expected not in (None, sha256_file(path)):
            raise PlumblineError(
                f"{path} has other numbers than its page was written with: its sha256 is {sha256_file(path)}, and "
                f"{fingerprint_file.beside(path)} says {expected}; restore it, or remove both, and the page's "
                "target rebuilds them"
            )
        if isinstance(numbers, dict) and numbers.get(KEY):
            found.append(numbers[KEY])
    return found


def pooled(entries: Sequence[Mapping[str, Any]], label: str) -> DecisionAccuracy | None:
    """Compute decision accuracy over the pairs of methods of each page, each pair once.

    None where there are no two methods. `label`: what the result is called on a page.
    """
    pairs: dict[tuple[Any, ...], float] = {}
    methods = set()
    for one in entries:
        for here, there in itertools.combinations(sorted(one["means"].items()), 2):
            methods |= {here[0], there[0]}
            # The same two methods with other runs are another observation.
            key = (here[0], *here[1], there[0], *there[1])
            pairs[key] = pair(*here[1], *there[1])
    if len(pairs) < 2:
        return None
    source = f"your runs, from {len(entries)} pages"
    return DecisionAccuracy(
        source=source, metric=label, methods=len(methods), alike=sum(pairs.values()), pairs=len(pairs)
    )


def alike(entries: Sequence[Mapping[str, Any]], study: str, metric: str, scale: str) -> list[Mapping[str, Any]]:
    """Choose the entries that order methods of the same study, by the same metric, from the same scale."""
    asked = (study, metric, scale)
    return [one for one in entries if (one["study"], one["metric"], one["scales"][0]) == asked]
