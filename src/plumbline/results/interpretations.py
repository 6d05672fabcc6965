"""Writes what a paper leaves open and what is done here about it: ``python -m plumbline.results.interpretations
STUDY``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from plumbline.core import fingerprint_file
from plumbline.core.command_line import HIDDEN, Parser, run
from plumbline.core.files import atomic_write_text
from plumbline.specs import corpus, spec_changes, study_config
from plumbline.specs.corpus import Corpus
from plumbline.specs.measurement import measurements
from plumbline.specs.study_config import Study
from plumbline.specs.yaml_files import PRESETS, load_preset


def write_interpretations(study: Study, corpus_entry: Corpus, items: str | None = None) -> str:
    """Write the page of a study at its preset as Markdown: interpretations, arms, variants, corpus and sizes."""
    declared = study.definition["interpretations"]
    applying = [
        interpretation for interpretation in declared if study.preset in interpretation.get("presets", [study.preset])
    ]
    other_interpretations = [interpretation for interpretation in declared if interpretation not in applying]
    lines = [
        f"# {study.definition['title']}",
        "",
        f"Interpretations of the study `{study.name}`, preset {study.preset_named}.",
    ]
    if study.paper:
        lines.append(f"Its paper: {study.paper}{f', {study.paper.link}' if study.paper.link else ''}.")
    if study.code != study.name:
        lines.append(f"It extends `{study.code}`, whose recipe, scales and interpretations apply here too.")
    lines += [f"Generated from `{study.file}`; change it there.", ""]
    in_force = [line for interpretation in applying for line in _list_interpretation(interpretation)]
    lines += ["## Interpretations that apply", "", *(in_force or ["None.", ""])]
    if other_interpretations:
        lines += [
            "## Interpretations for other presets",
            "",
            *(line for interpretation in other_interpretations for line in _list_interpretation(interpretation)),
        ]
    lines += ["## Runs outside the comparison of methods", "", *_list_arms(study)]
    lines += ["## Variants of a method", "", *_list_variants(study)]
    if sweeps := _list_sweeps(study):
        lines += ["## Methods that are swept", "", *sweeps]
    lines += ["## Stand-ins and sizes of this preset", "", *_list_sizes(study, corpus_entry, items)]
    return "\n".join(lines).rstrip() + "\n"


def describe_arm(study: Study, name: str) -> str:
    """Describe what an arm changes of its method at the study's preset; empty for nothing."""
    arm = study.definition.get("arms", {}).get(name, {})
    return _format_change(
        spec_changes.overlay({part: arm[part] for part in spec_changes.PARTS if part in arm}, arm.get(study.preset, {}))
    )


def describe_variant(study: Study, name: str) -> str:
    """Describe what a variant ``<method>.<variant>`` changes of its method, or return the note in the study's YAML."""
    method, _, variant = name.partition(".")
    entry = study.definition["methods"].get(method) or study.definition["arms"][method]
    change = entry["variants"][variant]
    return change.get("note", "").strip() or _format_change(change)


def describe_run(study: Study, name: str) -> str:
    """Describe a variant, or an arm by its note; a method's other seed changes nothing else."""
    if arm := study.definition.get("arms", {}).get(name):
        return arm["note"].strip()
    return describe_variant(study, name) if name in study.variants else "another seed"


def list_alternatives(study: Study, name: str) -> list[str]:
    """List the interpretations of which a variant, an arm or a run (``method/sSEED``) is an alternative."""
    return [entry["id"] for entry in study.definition["interpretations"] if name in entry["alternatives"]]


def _format_limit(value: float | str | list[float]) -> str:
    return " to ".join(f"{number:g}" for number in value) if isinstance(value, list) else f"{value}"


def _list_interpretation(interpretation: dict[str, Any]) -> list[str]:
    lines = [f"### {interpretation['id'].replace('_', ' ')}", "", interpretation["text"], ""]
    lines += [f"- Source: {interpretation['source']}", f"- Choice: {interpretation['choice']}"]
    lines.append(f"- Alternatives: {'; '.join(interpretation['alternatives']) or 'none'}")
    if "not_run" in interpretation:
        lines.append(f"- Not run: {interpretation['not_run']}")
    for limit in interpretation.get("limits", {}).values():
        instead = ", ".join(map(_format_limit, limit["instead"]))
        lines.append(f"- Limit: {limit['what']}: {_format_limit(limit['value'])} (instead: {instead})")
    if "about" in interpretation:
        lines.append(f"- Concerns: {', '.join(f'`{name}`' for name in interpretation['about'])}")
    if "presets" in interpretation:
        lines.append(f"- Presets: {', '.join(interpretation['presets'])}")
    return [*lines, ""]


def _list_arms(study: Study) -> list[str]:
    lines = []
    for name, arm in study.definition.get("arms", {}).items():
        presets = arm.get("presets", list(PRESETS))
        change = describe_arm(study, name)
        lines.append(f"- **{arm['label']}** (`{name}`, presets {', '.join(presets)}). {arm['note'].strip()}")
        if study.preset not in presets:
            lines.append(f"  Not run under {study.preset}.")
        elif change:
            lines.append(f"  Under {study.preset} it differs from `{arm['variant_of']}` by {change}.")
        else:
            lines.append(f"  Under {study.preset} its spec is that of `{arm['variant_of']}`.")
    return [*lines, ""] if lines else ["None.", ""]


def _list_variants(study: Study) -> list[str]:
    lines = [f"- `{name}`: {describe_variant(study, name)}" for name in study.variants]
    return [*lines, ""] if lines else ["None is declared; the alternatives are options of components.", ""]


def _list_sweeps(study: Study) -> list[str]:
    lines = []
    for name, entry in _select_compared_methods(study).items():
        if points := study.points(name):
            axes = [
                f"{axis} (`{axis_entry['sets']}`) {', '.join(f'{value:g}' for value in axis_entry['values'])}"
                for axis, axis_entry in entry["sweep"].items()
            ]
            lines.append(f"- `{name}` is run at every point of {'; '.join(axes)}: {len(points)} runs a seed and scale.")
    return [*lines, ""] if lines else []


def _select_compared_methods(study: Study) -> dict[str, dict[str, Any]]:
    """Select the YAML entry of each method of the comparison, a swept one once."""
    names = (name.partition(".")[0] for name in study.definition["comparison"])
    return {name: study.definition["methods"][name] for name in names}


def _list_sizes(study: Study, corpus_entry: Corpus, source: str | None) -> list[str]:
    lines = [
        f"- Corpus `{corpus_entry.name}` ({corpus_entry.path}): documents from {corpus_entry.source}, "
        f"tokenizer {corpus_entry.tokenizer.kind}."
    ]
    if study.suite is not None:
        evaluation = load_preset(study.preset)["evaluation"]
        limit = f"at most {evaluation['limit']} items a task" if evaluation["limit"] else "all items"
        items = source or evaluation["source"]
        lines.append(f"- Evaluation by the suite `{study.suite.name}`: {limit}, items from {items}.")
    for name, presets in study.definition["scales"].items():
        if study.preset in presets:
            entry = presets[study.preset]
            sizes = {part: values for part, values in entry.items() if part not in ("label", "size")}
            lines.append(f"- Scale `{name}` is {entry['label']}: {_format_change(sizes)}.")
            if study.preset != "paper" and "paper" in presets:
                lines.append(f"  The paper's is {presets['paper']['label']}.")
    paper_measurements = measurements(study.definition, study.code, "paper")
    for name in study.definition.get("measurements", {}):
        if name not in study.measurements:
            lines.append(f"- Measurement `{name}` is not made under {study.preset}.")
            continue
        entry = study.measurements[name].options
        lines.append(f"- Measurement `{name}` has {_format_change({'options': entry}) or 'no options'}.")
        if name in paper_measurements and paper_measurements[name].options != entry:
            lines.append(
                f"  At paper it has {_format_change({'options': paper_measurements[name].options}) or 'none'}."
            )
    return lines


def _format_change(change: dict[str, Any]) -> str:
    parts = []
    for part, values in change.items():
        if isinstance(values, dict):
            parts += [f"{part}.{name} = {_format_value(value)}" for name, value in values.items()]
        else:
            parts.append(f"{part} = {_format_value(values)}")
    return ", ".join(parts)


def _format_value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def main() -> None:
    """Write the page to the file in `--out`, or print it if there is none."""
    parser = Parser(__doc__)
    parser.add_argument("study")
    parser.add_argument("--preset", choices=PRESETS, default="demo")
    parser.add_argument("--out", type=Path, help="the page (default: standard output)")
    parser.add_argument(
        "--documents-source",
        default=corpus.AS_THE_CORPUS_SAYS,
        help="where documents come from, if not as the corpus's file says",
    )
    parser.add_argument("--items-source", help="where items come from, if not as the preset's file says")
    parser.add_argument("--fingerprint", default="", help=HIDDEN)
    options = parser.parse_args()
    study = study_config.load(options.study, options.preset, source=options.documents_source)
    text = write_interpretations(
        study, corpus.load(study.corpus, options.preset, options.documents_source), options.items_source
    )
    if options.out is None:
        print(text, end="")
    else:
        atomic_write_text(options.out, text)
        fingerprint_file.write(options.out, options.fingerprint)


if __name__ == "__main__":
    run(main)
