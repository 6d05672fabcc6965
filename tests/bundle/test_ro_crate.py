"""The crate: the list of a bundle's files, in as much of RO-Crate 1.2 as every crate must have."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from plumbline.bundle import ro_crate
from plumbline.core.errors import PlumblineError
from tests.bundle.test_archive import make_metadata

ENTRIES = [
    ro_crate.ArchivedFile("README.md", 7, "a" * 64),
    ro_crate.ArchivedFile("Snakefile", 9, "c" * 64),
    ro_crate.ArchivedFile("results/smoke/a b.csv", 4, "b" * 64),
]


def document() -> dict[str, Any]:
    return json.loads(ro_crate.to_json(ro_crate.build_crate(ENTRIES, make_metadata())))


def entity(crate: dict[str, Any], identity: str) -> dict[str, Any]:
    (match,) = (each for each in crate["@graph"] if each["@id"] == identity)
    return match


def test_it_lists_files_with_sizes_and_checksums() -> None:
    crate = document()
    assert ro_crate.read_crate(crate, "here") == {entry.name: entry for entry in ENTRIES}
    root = entity(crate, "./")
    assert (root["@type"], root["name"], root["datePublished"]) == ("Dataset", "Made up", "2026-01-02")
    assert entity(crate, ro_crate.NAME)["conformsTo"] == {"@id": ro_crate.CONFORMS_TO}
    assert {"@id": "results/smoke/a%20b.csv"} in root["hasPart"]


def test_a_crate_of_before_is_read() -> None:
    """Early bundles describe their packages, and the Snakefile as a workflow too."""
    crate = document()
    entity(crate, "Snakefile")["@type"] = ["File", "SoftwareSourceCode", "ComputationalWorkflow"]
    crate["@graph"].append({"@id": "#numpy", "@type": "SoftwareApplication", "version": "2.4.6"})
    assert ro_crate.read_crate(crate, "here") == {entry.name: entry for entry in ENTRIES}


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        (lambda crate: crate.update({"@graph": {}}), "@graph"),
        (lambda crate: crate["@graph"].append({"@type": "File"}), "no @id"),
        (lambda crate: crate["@graph"].append(copy.deepcopy(crate["@graph"][-1])), r"same @id .*a%20b\.csv"),
        (lambda crate: entity(crate, "./").pop("@type"), "no @type"),
        (lambda crate: entity(crate, "README.md").pop("sha256"), "README.md .*sha256"),
        (lambda crate: entity(crate, "README.md").update(contentSize=-1), "README.md .*size"),
    ],
)
def test_a_crate_that_lacks_something_is_refused(change: Callable[[dict[str, Any]], Any], fact: str) -> None:
    crate = document()
    change(crate)
    with pytest.raises(PlumblineError, match=fact):
        ro_crate.read_crate(crate, "here")
