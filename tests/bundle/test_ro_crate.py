"""The crate: what RO-Crate 1.2 asks of every one, and what a bundle needs beside."""

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


def test_it_names_files_licence_author_action_and_software() -> None:
    crate = document()
    assert ro_crate.read_crate(crate, "here") == {entry.name: entry for entry in ENTRIES}
    root = entity(crate, "./")
    assert root["@type"] == "Dataset" and root["datePublished"] == "2026-01-02"
    assert entity(crate, root["license"]["@id"])["name"] == "Apache License 2.0"
    assert entity(crate, root["author"]["@id"])["@type"] == "Organization"
    action = entity(crate, root["mentions"]["@id"])
    assert (action["@type"], action["endTime"]) == ("CreateAction", "2026-01-02")
    assert action["result"] == {"@id": "results/smoke/a%20b.csv"} and {"@id": "README.md"} in action["object"]
    workflow = entity(crate, action["instrument"]["@id"])
    assert workflow["@type"] == ["File", "SoftwareSourceCode", "ComputationalWorkflow"]
    assert (workflow["@id"], workflow["version"]) == ("Snakefile", "0.1+000000000000")
    assert entity(crate, workflow["softwareRequirements"]["@id"])["version"] == "2.4.6"
    file = entity(crate, "results/smoke/a%20b.csv")
    assert file == {
        "@id": "results/smoke/a%20b.csv",
        "@type": "File",
        "name": "results/smoke/a b.csv",
        "contentSize": "4",
        "encodingFormat": "text/csv",
        "sha256": "b" * 64,
    }


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda found: found.update({"@context": "https://schema.org"}), "@context is not"),
        (lambda found: found.update({"@graph": {}}), "@graph is no list"),
        (lambda found: found["@graph"].append({"@type": "File"}), "an entity has no @id"),
        (lambda found: found["@graph"].append(copy.deepcopy(found["@graph"][0])), "two entities have the same @id"),
        (lambda found: entity(found, "#made").pop("@type"), "an entity has no @type"),
        (lambda found: entity(found, ro_crate.NAME).pop("conformsTo"), "does not conform to"),
        (lambda found: entity(found, ro_crate.NAME).update(about={"@id": "#"}), "is not about ./"),
        (lambda found: entity(found, "./").pop("license"), "./ has no license"),
        (lambda found: entity(found, "./").update(author={"@id": "#nobody"}), "./ refers to #nobody"),
        (lambda found: entity(found, "./")["hasPart"].pop(), "hasPart is not the list"),
        (lambda found: entity(found, "README.md").pop("sha256"), "README.md has no size and sha256"),
        (lambda found: entity(found, "README.md").update(contentSize=-1), "README.md has no size and sha256"),
    ],
)
def test_a_crate_that_lacks_something_is_refused(change: Callable[[dict[str, Any]], Any], says: str) -> None:
    crate = document()
    change(crate)
    with pytest.raises(PlumblineError, match=says):
        ro_crate.read_crate(crate, "here")
