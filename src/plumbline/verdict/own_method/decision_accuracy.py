"""Decision accuracy: of all pairs of methods whose order is known at the larger scale, the share that the smaller one
orders alike.

From a paper's printed tables (``studies/<study>/rank_agreement.yaml``), from runs at hand, and from the runs of the
pages that a user has made so far: each page's numbers keep what it knows of two scales.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbline.core import fingerprint_file
from plumbline.core.errors import PlumblineError
from plumbline.core.files import sha256_file
from plumbline.specs import study_folders
from plumbline.specs.yaml_files import ROOT, read_yaml
from plumbline.stats.order_agreement import order_agreement
from plumbline.verdict.sources.row_files import read_rows

#: The key of a page's numbers that holds what it knows of two scales: study, metric, scales, and each method's two
#: means of the deciding metric; null where nothing does.
KEY = "at_both"

#: The fact of a page's fingerprint file that is the SHA-256 of its numbers.
NUMBERS = "numbers_sha256"


@dataclass(frozen=True, kw_only=True, slots=True)
class DecisionAccuracy:
    """Decision accuracy: `alike` of `pairs` of methods; a pair that is tied at either scale counts half.

    `source` states whose numbers they are.
    """

    source: str
    metric: str
    methods: int
    alike: float
    pairs: int

    @property
    def share(self) -> float:
        """The share of pairs that both scales order alike; NaN without pairs."""
        return self.alike / self.pairs if self.pairs else math.nan


def compare(base: Mapping[str, float], larger: Mapping[str, float], *, source: str, metric: str) -> DecisionAccuracy:
    """Compare the order of every pair of methods that have a value at both scales."""
    order = order_agreement(base, larger, draws=0)
    return DecisionAccuracy(source=source, metric=metric, methods=order.methods, alike=order.alike, pairs=order.pairs)


def list_files(study: str, root: Path = ROOT) -> list[Path]:
    """List the files that `read_printed` reads for a study; none if it has no `rank_agreement.yaml`."""
    path = study_folders.folder(study, root) / "rank_agreement.yaml"
    entries = read_yaml(path) if path.exists() else []
    tables = {path.parent / "published" / f"{entry['table']}.csv" for entry in entries}
    return [path, *sorted(tables)] if entries else []


def read_printed(study: str, root: Path = ROOT) -> list[DecisionAccuracy]:
    """Compute decision accuracy from the tables that a study's paper prints; nothing where it has no such table.

    Raises:
        PlumblineError: `rank_agreement.yaml` names a table or a column that is not there.
    """
    path = study_folders.folder(study, root) / "rank_agreement.yaml"
    accuracies = []
    for entry in read_yaml(path) if path.exists() else []:
        table = read_rows(path.parent / study_folders.PUBLISHED / f"{entry['table']}.csv")
        for key in ("base", "larger"):
            if entry[key] not in table.columns:
                raise PlumblineError(f"{path}: {key}: {entry['table']}.csv has no column {entry[key]!r}")
        base, larger = (
            {row.cells[table.columns[0]]: float(row.cells[entry[key]] or "nan") for row in table.rows}
            for key in ("base", "larger")
        )
        source = f"{study}, {entry['table']} as printed ({entry['base']}, {entry['larger']})"
        accuracies.append(compare(base, larger, source=source, metric=entry["metric"]))
    return accuracies


def read_pages(folder: Path, without: str) -> list[dict[str, Any]]:
    """Read what the pages in a folder know of two scales (`KEY`), in the order of their names.

    `without`: the name of a page that is left out.

    Raises:
        PlumblineError: a page's numbers cannot be read, or are not those that were written with it.
    """
    entries = []
    for path in sorted(folder.glob("*.json")):
        if path.stem == without:
            continue
        try:
            numbers = json.loads(path.read_text(encoding="utf-8"))
        except (UnicodeDecodeError, json.JSONDecodeError) as error:
            raise PlumblineError(f"{path} is not JSON ({error}); remove it, its page's target rebuilds it") from error
        expected = (fingerprint_file.read(fingerprint_file.sidecar_path(path)) or {}).get(NUMBERS)
        if expected not in (None, sha256_file(path)):
            raise PlumblineError(
                f"{path} has other numbers than its page was written with: its sha256 is {sha256_file(path)}, and "
                f"{fingerprint_file.sidecar_path(path)} says {expected}; restore it, or remove both, and the page's "
                "target rebuilds them"
            )
        if isinstance(numbers, dict) and numbers.get(KEY):
            entries.append(numbers[KEY])
    return entries


def pool_pages(entries: Sequence[Mapping[str, Any]], label: str) -> DecisionAccuracy | None:
    """Compute decision accuracy over the pairs of methods of each page, each pair once.

    None if there are no two methods. `label`: what the metric is called on a page.
    """
    agreements: dict[tuple[Any, ...], float] = {}
    methods = set[str]()
    for entry in entries:
        for pair in itertools.combinations(sorted(entry["means"].items()), 2):
            base, larger = ({method: means[place] for method, means in pair} for place in (0, 1))
            methods |= base.keys()
            # The same two methods with other runs are another observation.
            agreements[tuple((method, *means) for method, means in pair)] = order_agreement(base, larger, draws=0).alike
    if len(agreements) < 2:
        return None
    source = f"your runs, from {len(entries)} pages"
    return DecisionAccuracy(
        source=source, metric=label, methods=len(methods), alike=sum(agreements.values()), pairs=len(agreements)
    )
