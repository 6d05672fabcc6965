"""Lists the names that commands take, one a line: ``plumbline ls``."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections.abc import Callable, Sequence
from itertools import zip_longest

from plumbline.core import command_line
from plumbline.core.csv_text import read_rows
from plumbline.core.errors import PlumblineError, nearest, visible
from plumbline.specs import name_completers, study_config, study_folders
from plumbline.specs.study_config import Study
from plumbline.specs.yaml_files import PRESETS, load_study, studies

Row = dict[str, str]


#: Of a study's folder: the table of a kept record that says which methods small models tell from the reference.
SMALL_MODELS = "small_models.csv"
#: Before what stands below a name, where a window is too narrow for both in a line.
INDENT = "    "


def _methods(study: Study) -> list[Row]:
    entries, small = study.definition["methods"], _small_models(study)
    return [
        {"study": study.name, "method": name, "label": study.label(name)}
        | {"category": entries[name.partition(".")[0]].get("category", "")}
        | {"loss against the baseline, small models": small.get(name, "")}
        for name in study.methods
    ]


def _small_models(study: Study) -> dict[str, str]:
    """What the kept record states of each method, as text; nothing for a study without one."""
    path = study_folders.folder(study.code, study.root) / SMALL_MODELS
    if not path.is_file():
        return {}
    with path.open(encoding="utf-8", newline="") as lines:
        return {row["method"]: _difference(row) for row in read_rows(lines)}


def _difference(row: Row) -> str:
    word, by = row["resolved_base"], row["validation_loss_minus_baseline_base"]
    if word not in ("lower", "higher"):
        return word
    return f"{abs(float(by)):.2f} ± {float(row['half_interval_95_base']):.2f} {word} at {row['scale']}"


def _variants(study: Study) -> list[Row]:
    entries = study.definition["methods"]
    return [
        {"study": study.name, "variant": f"{method}.{variant}", "label": study.label(f"{method}.{variant}")}
        for method, entry in entries.items()
        for variant in entry.get("variants", {})
    ]


def _targets(study: Study) -> list[Row]:
    return [
        {"study": study.name, "target": name, "kind": entry["kind"], "runs": str(len(study.group(*entry["runs"])))}
        for name, entry in study.definition["targets"].items()
    ]


def _runs(study: Study) -> list[Row]:
    return [
        {
            "run": run.key,
            "scale": study.scale_label(run.spec.scale),
            "run id": run.spec.run_id,
            "groups": ", ".join(run.groups),
        }
        for run in study.every_run.values()
    ]


#: What is listed of a study, by its name.
OF_A_STUDY: dict[str, Callable[[Study], list[Row]]] = {
    "methods": _methods,
    "variants": _variants,
    "targets": _targets,
    "runs": _runs,
}


def list_rows(kind: str, study: str | None, preset: str) -> list[Row]:
    """Collect the rows that `plumbline ls` prints, one for each thing that can be named in a command.

    Args:
        kind: ``studies``, ``presets`` or a key of `OF_A_STUDY`.
        study: the study that is listed; None: all that have something at the preset.

    Raises:
        PlumblineError: there is no such study.
    """
    names = studies()
    if study is not None and study not in names:
        raise PlumblineError(f"--study: there is no study {study!r}{nearest(study, names)} (there are {names})")
    chosen = [study] if study else [name for name in names if _is_readable(name, preset)]
    if names and not chosen:
        raise PlumblineError(f"none of the studies {names} can be read: the warnings above say why")
    if kind == "studies":
        return [
            {"study": name, "paper": str(study_config.paper_of(name) or ""), "title": load_study(name)["title"]}
            | {"presets": _presets(name)}
            for name in chosen
        ]
    if kind == "presets":
        return [
            {"preset": choice, "studies": ", ".join(name for name in chosen if study_config.has_targets(name, choice))}
            for choice in PRESETS
        ]
    names_at_preset = [name for name in chosen if study_config.has_targets(name, preset)]
    if not names_at_preset:
        raise PlumblineError(f"--preset: {study} has nothing at {preset}; it has {_presets(chosen[0])}")
    return [row for name in names_at_preset for row in OF_A_STUDY[kind](study_config.load(name, preset))]


def _is_readable(study: str, preset: str) -> bool:
    """Whether a study can be read, as it is at the preset too; one that cannot is a warning, others are listed."""
    try:
        if study_config.has_targets(study, preset):
            study_config.load(study, preset)
    except PlumblineError as error:
        print(f"warning: {error}", file=sys.stderr)
        return False
    return True


def _presets(study: str) -> str:
    return ", ".join(name for name in PRESETS if study_config.has_targets(study, name))


def arguments() -> command_line.Parser:
    """Build the command-line parser of `plumbline ls`."""
    parser = command_line.Parser(__doc__)
    parser.add_argument("what", choices=["studies", "presets", *OF_A_STUDY], nargs="?", default="studies")
    parser.add_argument("--study", completer=name_completers.studies, help="list only this study's")
    parser.add_argument("--preset", choices=PRESETS, default="demo", help="list those of this preset (default: demo)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def write_list(listed_rows: Sequence[Row], width: int | None) -> str:
    """Write rows as a table; `width`: of the window, in which the widest columns are wrapped between words, or None
    where the table goes on into a file or a program.
    """
    from tabulate import tabulate

    heads = [*listed_rows[0]]
    table = [heads, *([*row.values()] for row in listed_rows)]
    width = sys.maxsize if width is None else width
    if _measure(limits := _fit_widths(table, width)) <= width:
        table_text = tabulate(
            listed_rows, headers="keys", tablefmt="plain", maxcolwidths=limits, maxheadercolwidths=limits
        )
        return visible(table_text)
    # A name is never cut, for it is there to be copied: the rest of its row stands below it.
    name_columns = 1 if heads[1] == "paper" else 1 + ("study" in heads)
    limits = _fit_widths([row[name_columns:] for row in table], width - len(INDENT))
    return visible("\n".join(line for row in table for line in _stack(row[:name_columns], row[name_columns:], limits)))


def _fit_widths(table: Sequence[Sequence[str]], width: int) -> list[int]:
    """Make the widest columns narrower until a table fits, each as wide as its longest word at least."""
    columns = list(zip(*table))
    widths = [max(map(len, cells)) for cells in columns]
    longest_words = [max(len(word) for cell in cells for word in cell.split() or [""]) for cells in columns]
    while _measure(widths) > width:
        wider = [place for place, least in enumerate(longest_words) if widths[place] > least]
        if not wider:
            break
        widths[max(wider, key=widths.__getitem__)] -= 1
    return widths


def _measure(widths: Sequence[int]) -> int:
    return sum(widths) + 2 * (len(widths) - 1)


def _stack(names: Sequence[str], cells: Sequence[str], widths: Sequence[int]) -> list[str]:
    """Write a row on several lines: its names, and below them its cells, wrapped."""
    wrapped = [textwrap.wrap(cell, max(1, size), break_on_hyphens=False) for cell, size in zip(cells, widths)]
    cell_lines = [
        INDENT + "  ".join(part.ljust(size) for part, size in zip(parts, widths))
        for parts in zip_longest(*wrapped, fillvalue="")
    ]
    return [line.rstrip() for line in ("  ".join(names), *cell_lines)]


def main() -> None:
    """Run `plumbline ls`: print the list as a table or as JSON."""
    options = arguments().parse_args()
    listed_rows = list_rows(options.what, options.study, options.preset)
    if options.json:
        print(json.dumps(listed_rows, indent=2, ensure_ascii=False))
        return
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    print(write_list(listed_rows, width) if listed_rows else f"no {options.what}")
