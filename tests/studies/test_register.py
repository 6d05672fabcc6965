"""Every reading of a study is a ruling: its methods' components stand in the rulings' `about`, its readings among the
alternatives."""

from __future__ import annotations

import re
from typing import Any

import pytest

from plumbline.specs import components
from plumbline.specs.config import PRESETS, load_study, studies
from plumbline.specs.study_config import load

#: Components that a study's methods choose and no ruling is about, each with the reason.
AS_PRINTED = {
    "transfer": {
        "query_key.qk_norm": "B.3 says over what, where, with which gains, and that nothing else is learned",
        "mixers.softmax_cap": "B.13 has one formula: scores clipped at 50",
        "placement.sandwich_norm": "B.14 has one formula, and Table 4 its gains",
    },
    "premature": {"norms.rms_norm": "section 4 names it; its epsilon is in the ruling not_given"},
    "query_free": {"projections.identity_query": "section 5.1: queries are slices of the stream"},
}

#: Readings that are none of a ruling's, each with the reason.
OF_THE_DOCUMENT = {"quack.spectral": "the document itself speaks of it"}

#: Studies of a document; one that extends another has methods of its own, which no document words.
REPRODUCED = [name for name in studies() if "extends" not in load_study(name)]

FOLDER = {components.folder(kind): kind for kind in components.KINDS}


def named(part: dict[str, Any]) -> set[str]:
    """The components that a recipe, scale, method, reading or arm chooses, as <folder>.<name>."""
    chosen = [*part.get("model", {}).items()]
    chosen += [(kind, part.get(kind)) for kind in ("optimizer", "schedule")]
    chosen += [(kind, entry) for kind in ("intervention", "probe") for entry in part.get(f"{kind}s", [])]
    return {
        f"{components.folder(kind)}.{entry['name']}"
        for kind, entry in chosen
        if isinstance(entry, dict) and "name" in entry
    }


def layers(sheet: dict[str, Any]) -> list[dict[str, Any]]:
    """Everything that may choose a component beside the recipe."""
    entries = [*sheet["methods"].values(), *sheet.get("arms", {}).values(), *sheet["scales"].values()]
    found = [*entries, *(reading for entry in entries for reading in entry.get("readings", {}).values())]
    return found + [entry[preset] for entry in entries for preset in PRESETS if preset in entry]


@pytest.mark.parametrize("name", REPRODUCED)
def test_a_component_that_a_method_chooses_has_a_ruling_or_a_reason(name: str) -> None:
    sheet = load(name, "demo").sheet
    used = set().union(*map(named, layers(sheet))) - named(sheet["recipe"])
    about = {component for ruling in sheet["rulings"] for component in ruling.get("about", [])}
    excused = set(AS_PRINTED.get(name, {}))
    assert used - about == excused, "without a ruling; give one, or a reason in AS_PRINTED"
    for component in about:
        folder, _, word = component.partition(".")
        assert word in components.available(FOLDER[folder]), f"{component} is no component"


@pytest.mark.parametrize("name", REPRODUCED)
def test_a_reading_is_an_alternative_of_a_ruling(name: str) -> None:
    sheet = load(name, "demo").sheet
    readings = {
        f"{method}.{reading}" for method, entry in sheet["methods"].items() for reading in entry.get("readings", {})
    }
    alternatives = {text for ruling in sheet["rulings"] for text in ruling["alternatives"]}
    said = {text for text in alternatives if re.fullmatch(rf"({'|'.join(sheet['methods'])})\.\w+", text)}
    assert said | set(OF_THE_DOCUMENT) >= readings, "no ruling names it"
    assert said <= readings, "a ruling names a reading that is not there"
