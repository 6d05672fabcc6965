"""Decision accuracy: of all pairs of methods whose order is known at the larger scale, the share that the smaller one
orders alike. From a paper's printed tables (``studies/<study>/rank_agreement.yaml``), and from runs at hand."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from plumbline.core.errors import PlumblineError
from plumbline.specs import study_folders
from plumbline.specs.yaml_files import ROOT, read_yaml
from plumbline.stats.order_agreement import order_agreement
from plumbline.verdict.sources.row_files import read_rows


@dataclass(frozen=True, kw_only=True, slots=True)
class DecisionAccuracy:
    """Decision accuracy: `alike` of `pairs` of methods; a pair that is tied at either scale counts half.

    `source` says whose numbers they are.
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


def ordered(base: Mapping[str, float], larger: Mapping[str, float], *, source: str, metric: str) -> DecisionAccuracy:
    """Compare the order of every pair of methods that have a value at both scales."""
    found = order_agreement(base, larger, draws=0)
    return DecisionAccuracy(source=source, metric=metric, methods=found.methods, alike=found.alike, pairs=found.pairs)


def pair(one: float, one_larger: float, other: float, other_larger: float) -> float:
    """Compare the order of two methods at both scales: 1 where it is the same, 0 where it is not, a half with a tie."""
    product = (one - other) * (one_larger - other_larger)
    return 1.0 if product > 0 else 0.5 if product == 0 else 0.0


def files(study: str, root: Path = ROOT) -> list[Path]:
    """List the files that `printed` reads for a study; none where it has no `rank_agreement.yaml`."""
    path = study_folders.folder(study, root) / "rank_agreement.yaml"
    entries = read_yaml(path) if path.exists() else []
    tables = {path.parent / "published" / f"{entry['table']}.csv" for entry in entries}
    return [path, *sorted(tables)] if entries else []


def printed(study: str, root: Path = ROOT) -> list[DecisionAccuracy]:
    """Compute decision accuracy from the tables that a study's paper prints; nothing where it has no such table.

    Raises:
        PlumblineError: `rank_agreement.yaml` names a table or a column that is not there.
    """
    path = study_folders.folder(study, root) / "rank_agreement.yaml"
    found = []
    for entry in read_yaml(path) if path.exists() else []:
        table = read_rows(path.parent / study_folders.PUBLISHED / f"{entry['table']}.csv")
        for key in ("base", "larger"):
            if entry[key] not in table.columns:
                raise PlumblineError(f"{path}: {key}: {entry['table']}.csv has no column {entry[key]!r}")
        one, other = (
            {row.cells[table.columns[0]]: float(row.cells[entry[key]] or "nan") for row in table.rows}
            for key in ("base", "larger")
        )
        source = f"{study}, {entry['table']} as printed ({entry['base']}, {entry['larger']})"
        found.append(ordered(one, other, source=source, metric=entry["metric"]))
    return found
