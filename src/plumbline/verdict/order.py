"""Decision accuracy: of all pairs of methods whose order is known at the larger scale, the share that the smaller one
orders alike. From a document's printed tables (``config/studies/<study>/orders.yaml``), and from runs at hand."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from plumbline.cli import PlumblineError
from plumbline.results.published import Published
from plumbline.specs.config import ROOT, read_yaml


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """`alike` of `pairs`; a pair that is tied at either scale counts half. `source` says whose they are."""

    source: str
    metric: str
    methods: int
    alike: float
    pairs: int

    @property
    def share(self) -> float:
        return self.alike / self.pairs if self.pairs else math.nan


def ordered(base: Mapping[str, float], larger: Mapping[str, float], *, source: str, metric: str) -> Order:
    """Pairs of methods with a value at both scales."""
    both = [name for name in base if math.isfinite(base[name]) and math.isfinite(larger.get(name, math.nan))]
    alike, pairs = 0.0, 0
    for one, other in itertools.combinations(both, 2):
        product = (base[one] - base[other]) * (larger[one] - larger[other])
        alike += 1.0 if product > 0 else 0.5 if product == 0 else 0.0
        pairs += 1
    return Order(source=source, metric=metric, methods=len(both), alike=alike, pairs=pairs)


def printed(study: str, root: Path = ROOT) -> list[Order]:
    """What the tables of a study's document say; nothing where it has no such table.

    Raises:
        PlumblineError: `orders.yaml` names a table or a column that is not there.
    """
    path = root / "config" / "studies" / study / "orders.yaml"
    found = []
    for entry in read_yaml(path) if path.exists() else []:
        table = Published.of(study, root).numbers(entry["table"])
        for key in ("base", "larger"):
            if entry[key] not in table.columns:
                raise PlumblineError(f"{path}: {key}: {entry['table']}.csv has no column {entry[key]!r}")
        one, other = (table[entry[key]].astype(float).to_dict() for key in ("base", "larger"))
        source = f"{study}, {entry['table']} as printed ({entry['base']}, {entry['larger']})"
        found.append(ordered(one, other, source=source, metric=entry["metric"]))
    return found
