"""Lists the names that a shell offers for an argument: methods, runs, studies and what else it may name.

Each function is named as `completer` where an argument is declared, and is called with the arguments before it. Names
are read from the YAML of studies as it lies there, unchecked, so that a shell waits for neither checks nor torch. What
reads them is loaded by the first call: every parser names completers, and a third of `plumbline try --help` was that.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from typing import Any

from plumbline.core.command_line import Completer


def or_files(names: Completer) -> Completer:
    """Complete what may be a file or folder too: with names, and with files if no name begins as what is typed."""

    def complete(prefix: str, **context: Any) -> Iterable[str]:
        from argcomplete.completers import FilesCompleter

        matches = [name for name in names(prefix=prefix, **context) if name.startswith(prefix)]
        return matches or FilesCompleter()(prefix)

    return complete


def studies(**_: Any) -> Iterable[str]:
    """List the studies that can be run."""
    from plumbline.specs import study_folders
    from plumbline.specs.yaml_files import ROOT

    return study_folders.list_runnable_studies(ROOT)


def suites(**_: Any) -> Iterable[str]:
    """List suites of evaluation tasks, and single tasks."""
    from plumbline.specs.yaml_files import ROOT

    return sorted(path.stem for kind in ("suites", "tasks") for path in (ROOT / "config" / kind).glob("*.yaml"))


def scales(parsed_args: Namespace, **_: Any) -> Iterable[str]:
    """List the scales of the study that is named before, else of the main study."""
    return _definition(_study(parsed_args))["scales"]


def methods(parsed_args: Namespace, **_: Any) -> Iterable[str]:
    """List methods, the points of swept ones, and variants of the study that is named before, else of the main one."""
    from plumbline.specs import sweep

    definition = _definition(_study(parsed_args))
    points = (sweep.points(name, entry) or [name] for name, entry in definition["methods"].items())
    return [*(point for method in points for point in method), *sweep.variants(definition)]


def targets(kind: str) -> Completer:
    """Make a completer of the tables or figures of the study that is named before."""

    def complete(parsed_args: Namespace, **_: Any) -> Iterable[str]:
        entries = _definition(parsed_args.study)["targets"]
        return [name for name, entry in entries.items() if entry["kind"] == kind]

    return complete


def runs(prefix: str, parsed_args: Namespace, **_: Any) -> Iterable[str]:
    """List the runs of every study whose name begins as what is typed."""
    preset, study = parsed_args.preset or _read_settings("preset"), prefix.partition("/")[0]
    chosen_studies = [name for name in studies() if (name == study if "/" in prefix else name.startswith(study))]
    return dict.fromkeys(key for name in chosen_studies for key in _list_keys(_definition(name), preset))


def _list_keys(definition: dict[str, Any], preset: str) -> Iterable[str]:
    """The keys of a study's runs at a preset, without their specs."""
    from plumbline.specs import study_names, sweep

    inherited = definition["inherited"]
    for entry in (entry for entries in definition["runs"].values() for entry in entries):
        if preset not in entry.get("presets", [preset]) or preset not in definition["scales"][entry["scale"]]:
            continue
        for method in sweep.list_named_runs(definition, entry, ""):
            if study_names.is_wanted(definition, method, preset, ""):
                study = definition["extends" if method.partition(".")[0] in inherited else "study"]
                yield from (f"{study}/{entry['scale']}/{method}/s{seed}" for seed in entry["seeds"])


def _study(parsed_args: Namespace) -> str:
    return parsed_args.study or _read_settings("main_study")


def _read_settings(key: str) -> str:
    from plumbline.specs.yaml_files import ROOT, read_yaml

    return str(read_yaml(ROOT / "config" / "config.yaml")[key])


def _definition(study: str) -> dict[str, Any]:
    """A study's YAML, completed by that of the study that it extends."""
    from plumbline.specs import study_folders
    from plumbline.specs.yaml_files import ROOT, read_yaml

    path = study_folders.folders(ROOT)[study] / study_folders.YAML
    content = dict(read_yaml(path))
    if "extends" in content:
        from plumbline.specs.study_extension import complete_study

        return complete_study(content, str(path), ROOT)
    return content | {"comparison": list(content["methods"]), "inherited": []}
