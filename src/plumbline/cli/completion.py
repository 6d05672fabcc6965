"""Completes names in a shell: methods, runs, studies and what else a verb's words and options name.

Read from the YAML of studies as it lies there, unchecked, so that a shell waits for neither checks nor torch. What
cannot be read has no names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any

import yaml

from plumbline.core.errors import PlumblineError
from plumbline.specs import study_folders
from plumbline.specs.yaml_files import PRESETS, ROOT, read_yaml

#: What `plumbline ls` lists.
LISTS = ("studies", "presets", "methods", "variants", "targets", "runs")
#: Options without a value, of the verbs whose words have names.
FLAGS = frozenset(
    (
        *("-h", "--help", "-n", "--dry-run", "--json", "--commit", "--trust", "--quick", "--paired", "--built-in"),
        *("--interleave-baseline", "--accept-implausible", "--force", "--no-check", "--told-only"),
    )
)


def names(verb: str, words: Sequence[str], incomplete: str) -> list[str]:
    """List the names that the word which is being typed may become.

    Args:
        verb: the verb of the command line.
        words: the whole words after it.
        incomplete: what is typed of the next one.
    """
    asked = dict(pairwise(words))
    option = words[-1] if words and words[-1].startswith("-") and words[-1] not in FLAGS else None
    if option is not None:
        kind = _OPTIONS.get(option)
    else:
        kinds = _WORDS.get(verb, ())
        place = len(_positionals(words))
        kind = kinds[place] if place < len(kinds) else None
    if kind is None:
        return []
    with suppress(PlumblineError, OSError, KeyError, TypeError, AttributeError, ValueError, yaml.YAMLError):
        return [name for name in kind(asked, words, incomplete) if name.startswith(incomplete)]
    return []


def _positionals(words: Sequence[str]) -> list[str]:
    """The words that are no option and no option's value."""
    before = ["", *words]
    return [
        word
        for word, last in zip(words, before, strict=False)
        if not word.startswith("-") and (not last.startswith("-") or last in FLAGS)
    ]


Asked = dict[str, str]


def _studies(asked: Asked, words: Sequence[str], incomplete: str) -> Iterable[str]:
    return study_folders.runnable(ROOT)


def _presets(asked: Asked, words: Sequence[str], incomplete: str) -> Iterable[str]:
    return PRESETS


def _lists(asked: Asked, words: Sequence[str], incomplete: str) -> Iterable[str]:
    return LISTS


def _files(asked: Asked, words: Sequence[str], incomplete: str) -> Iterable[str]:
    """What is written: a method or a study."""
    return ("method", "study")


def _suites(asked: Asked, words: Sequence[str], incomplete: str) -> Iterable[str]:
    return sorted(path.stem for kind in ("suites", "tasks") for path in (ROOT / "config" / kind).glob("*.yaml"))


def _slots(asked: Asked, words: Sequence[str], incomplete: str) -> Iterable[str]:
    from plumbline.specs.components import SLOTS

    return SLOTS


def _scales(asked: Asked, words: Sequence[str], incomplete: str) -> Iterable[str]:
    return _definition(_study(asked))["scales"]


def _methods(asked: Asked, words: Sequence[str], incomplete: str) -> Iterable[str]:
    """Methods of the study, the points of swept ones, and variants."""
    from plumbline.specs import sweep

    definition = _definition(_study(asked))
    methods = definition["methods"]
    return [
        *(one for name, entry in methods.items() for one in sweep.points(name, entry) or [name]),
        *sweep.variants(definition),
    ]


def _targets(kind: str) -> Callable[[Asked, Sequence[str], str], Iterable[str]]:
    """The tables or figures of the study that is named before."""

    def targets(asked: Asked, words: Sequence[str], incomplete: str) -> Iterable[str]:
        found = _definition(_positionals(words)[0])["targets"]
        return [name for name, entry in found.items() if entry["kind"] == kind]

    return targets


def _runs(asked: Asked, words: Sequence[str], incomplete: str) -> Iterable[str]:
    """The runs of every study whose name begins as what is typed."""
    preset, typed = asked.get("--preset") or _configured("preset"), incomplete.partition("/")[0]
    whole = "/" in incomplete
    chosen = [name for name in study_folders.runnable(ROOT) if (name == typed if whole else name.startswith(typed))]
    return dict.fromkeys(key for name in chosen for key in _keys(_definition(name), preset))


def _keys(definition: dict[str, Any], preset: str) -> Iterable[str]:
    """The keys of a study's runs at a preset, without their specs."""
    from plumbline.specs import sweep

    arms, inherited = definition.get("arms", {}), definition["inherited"]
    for entry in (entry for entries in definition["runs"].values() for entry in entries):
        if preset not in entry.get("presets", [preset]) or preset not in definition["scales"][entry["scale"]]:
            continue
        for method in sweep.list_named_runs(definition, entry, ""):
            if preset in arms.get(method, {}).get("presets", [preset]):
                own = definition["extends" if method.partition(".")[0] in inherited else "study"]
                yield from (f"{own}/{entry['scale']}/{method}/s{seed}" for seed in entry["seeds"])


def _study(asked: Asked) -> str:
    return asked.get("--study") or _configured("main_study")


def _configured(key: str) -> str:
    return str(read_yaml(ROOT / "config" / "config.yaml")[key])


def _definition(study: str) -> dict[str, Any]:
    """A study's YAML, completed by that of the study that it extends."""
    path = study_folders.folders(ROOT)[study] / study_folders.YAML
    content = dict(read_yaml(path))
    if "extends" in content:
        from plumbline.specs.study_extension import complete_study

        return complete_study(content, str(path), ROOT)
    return content | {"comparison": list(content["methods"]), "inherited": []}


#: Option -> what its value names.
_OPTIONS = {
    "--study": _studies,
    "--preset": _presets,
    "--baseline": _methods,
    "--scale": _scales,
    "--suite": _suites,
    "--slot": _slots,
}
#: Verb -> what its words name, in their order.
_WORDS = {
    "try": (_methods,),
    "train": (_runs,),
    "export": (_runs,),
    "ls": (_lists,),
    "new": (_files,),
    "table": (_studies, _targets("table")),
    "figure": (_studies, _targets("figure")),
    "claims": (_studies,),
}
