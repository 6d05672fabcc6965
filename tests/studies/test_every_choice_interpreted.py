"""Every choice of a study has an interpretation: methods' components are in `about`, variants are alternatives."""

from __future__ import annotations

import re
from typing import Any

import pytest

from plumbline.specs import components
from plumbline.specs.study_config import has_preset, load
from plumbline.specs.yaml_files import PRESETS, load_study, studies

#: Components that a study's methods choose and no interpretation is about, each with the reason.
AS_PRINTED = {
    "transfer": {
        "query_key.qk_norm": "B.3 says over what, where, with which gains, and that nothing else is learned",
        "placement.sandwich_norm": "B.14 has one formula, and Table 4 its gains",
    },
    "premature": {"norms.rms_norm": "section 4 names it; its epsilon is in the interpretation not_given"},
    "query_free": {"projections.identity_query": "section 5.1: queries are slices of the stream"},
}

#: Variants that are none of an interpretation's, each with the reason.
OF_THE_DOCUMENT = {"quack.spectral": "the paper itself speaks of it"}

#: Studies of a paper; one that extends another has methods of its own, which no document words.
REPRODUCED = [name for name in studies() if "extends" not in load_study(name)]

PRESETS_OF = {name: [preset for preset in PRESETS if has_preset(name, preset)] for name in REPRODUCED}

FOLDER = {components.folder(kind): kind for kind in components.KINDS}


def list_components(part: dict[str, Any]) -> set[str]:
    """The components that a recipe, scale, method, variant or arm chooses, as <folder>.<name>."""
    chosen = [*part.get("model", {}).items()]
    chosen += [(kind, part.get(kind)) for kind in ("optimizer", "schedule")]
    chosen += [(kind, entry) for kind in ("intervention", "probe") for entry in part.get(f"{kind}s", [])]
    return {
        f"{components.folder(kind)}.{entry['name']}"
        for kind, entry in chosen
        if isinstance(entry, dict) and "name" in entry
    }


def layers(definition: dict[str, Any]) -> list[dict[str, Any]]:
    """Everything that may choose a component besides the recipe."""
    entries = [*definition["methods"].values(), *definition.get("arms", {}).values(), *definition["scales"].values()]
    all_entries = [*entries, *(variant for entry in entries for variant in entry.get("variants", {}).values())]
    return all_entries + [entry[preset] for entry in entries for preset in PRESETS if preset in entry]


@pytest.mark.parametrize("name", REPRODUCED)
def test_each_chosen_component_has_an_interpretation(name: str) -> None:
    definition = load(name, "demo").definition
    used = set().union(*map(list_components, layers(definition))) - list_components(definition["recipe"])
    about = {
        component for interpretation in definition["interpretations"] for component in interpretation.get("about", [])
    }
    excused = set(AS_PRINTED.get(name, {}))
    assert used - about == excused, "without an interpretation; give one, or a reason in AS_PRINTED"
    for component in about:
        folder, _, word = component.partition(".")
        assert word in components.available(FOLDER[folder]), f"{component} is no component"


@pytest.mark.parametrize("name", REPRODUCED)
def test_a_variant_is_an_alternative_of_an_interpretation(name: str) -> None:
    definition = load(name, "demo").definition
    entries = definition["methods"] | definition.get("arms", {})
    variants = {f"{method}.{variant}" for method, entry in entries.items() for variant in entry.get("variants", {})}
    alternatives = {text for interpretation in definition["interpretations"] for text in interpretation["alternatives"]}
    named_variants = {text for text in alternatives if re.fullmatch(rf"({'|'.join(entries)})\.\w+", text)}
    assert named_variants | set(OF_THE_DOCUMENT) >= variants, "no interpretation names it"
    assert named_variants <= variants, "an interpretation names a variant that is not there"


@pytest.mark.parametrize("name", REPRODUCED)
def test_an_alternative_is_run_or_says_why_not(name: str) -> None:
    study = load(name, "demo")
    specs = [each.spec for preset in PRESETS_OF[name] for each in load(name, preset).every_run.values()]
    run = {spec.method for spec in specs} | {f"{spec.method}/s{spec.init_seed}" for spec in specs}
    for interpretation in study.definition["interpretations"]:
        texts = [text for text in interpretation["alternatives"] if text not in run]
        assert bool(texts) == ("not_run" in interpretation), f"{interpretation['id']}: not_run for {texts}"


@pytest.mark.parametrize("name", REPRODUCED)
def test_no_number_of_an_alternative_is_cut_at_its_comma(name: str) -> None:
    for interpretation in load_study(name)["interpretations"]:
        assert not re.search(r"\d; \d{3} [a-z]{2}", "; ".join(interpretation["alternatives"])), interpretation["id"]


@pytest.mark.parametrize("name", REPRODUCED)
def test_held_out_sequences_read_are_an_interpretation(name: str) -> None:
    study = load(name, "smoke")
    used = {each["name"] for run in study.runs.values() for each in run.spec.interventions}
    reading = {f"interventions.{each}" for each in used if components.load("intervention", each).held_out == "apart"}
    interpretations = [each for each in study.definition["interpretations"] if each["id"].endswith("_sequences")]
    assert reading <= {component for each in interpretations if each["alternatives"] for component in each["about"]}
