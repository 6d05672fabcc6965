"""Reads the YAML files of config/, checks them against their structs, and gives errors that state what to do."""

from __future__ import annotations

import copy
import io
import math
import os
import re
from functools import cache
from pathlib import Path
from typing import Any, get_args

import yaml
from msgspec import Struct

from plumbline.core import package_data, permissions, structs
from plumbline.core.errors import PlumblineError
from plumbline.specs import study_folders
from plumbline.specs.config_files import ConfigFile, PresetFile
from plumbline.specs.field_types import Preset
from plumbline.specs.study_files import StudyFile


def _project_root() -> Path:
    """The project that is worked on: the working directory if it is one, else what travels with this package."""
    folder = Path.cwd()
    return folder if package_data.is_project(folder) else package_data.folder()


#: Root of the project whose config/ is read.
ROOT = _project_root()
#: What `plumbline init` prints in a project of what it wrote there.
PROJECT = ".plumbline.json"
PRESETS = get_args(Preset)
#: Preset -> what stands above its tables, on the card of a model of it and in its bundle.
PRESET_NOTES = {
    "paper": "Sizes and budget of the paper, under the interpretations of interpretations.md.",
    "mini": "The paper's experiment on small models: not its scale. Its numbers are no reproduction of the printed "
    "ones.",
    "evening": "The paper's experiment on tiny models, long enough and with seeds enough that validation loss tells "
    "methods apart at this size. Its numbers are no reproduction of the printed ones.",
    "demo": "The paper's experiment on tiny models: its numbers show that the pipeline works, and say "
    "nothing about the methods.",
    "smoke": "A few steps of tiny models: its numbers mean nothing.",
}


#: Folders of a project that heavy files must not be in, where they would be tracked, removed, or taken for products.
OWN = (
    *("results", "logs", "config", "studies", "workflow", "profiles", "src", ".snakemake", ".git"),
    *("benchmarks", "docs", "envs", "examples", "slurm", "tests", ".venv"),
)

#: What a file by hand never reaches: levels of nesting, and values once every alias is written out. Deeper or longer
#: ones end Python's stack (or libyaml's, without a word), or the memory.
DEEPEST, MOST = 50, 200_000


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML that refuses the same key twice and numbers that are none or of another base, and reads 1e-5 as a number."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Put merged keys (<<) below own ones; of one that is merged before it is made, twice."""
        keys = set()
        for key_node, _ in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise PlumblineError(f"{_name_line(key_node)}: a key is a list or mapping; write a text")
            is_merge = key_node.tag == "tag:yaml.org,2002:merge"
            key = "<<" if is_merge else self.construct_object(key_node, deep=True)
            if (is_merge, key) in keys:
                remedy = "write one, with a list of aliases" if is_merge else "keep one of them"
                raise PlumblineError(f"{_name_line(key_node)}: the key {key!r} is there twice; {remedy}")
            keys.add((is_merge, key))
        super().flatten_mapping(node)
        node.value = list({(key.tag, key.value): (key, value) for key, value in node.value}.values())

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except PlumblineError:
            raise
        except (ValueError, LookupError, AttributeError) as error:  # of a date, a tag or thousands of digits
            raise PlumblineError(
                f"{_name_line(node)}: {node.value!r:.80} is not a {node.tag.rpartition(':')[2]}; correct it, or write "
                "it in quotation marks if it is a text"
            ) from error

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        number: int = super().construct_yaml_int(node)
        _require_base_ten(node, number)
        return number

    def construct_yaml_float(self, node: yaml.ScalarNode) -> float:
        number: float = super().construct_yaml_float(node)
        _require_base_ten(node, number)
        if not math.isfinite(number):
            raise PlumblineError(
                f"{_name_line(node)}: {node.value} is not a finite number, and nothing can be computed with it; "
                "write one that is, or quotation marks around a text"
            )
        return number


# YAML 1.1, which PyYAML reads, takes 1e-5 (no dot, or no sign) for a text.
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)[eE][-+]?[0-9]+\Z"), list("-+.0123456789")
)
_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.construct_yaml_float)
_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_yaml_int)


def _require_base_ten(node: yaml.ScalarNode, number: float) -> None:
    """Refuse what YAML 1.1 reads in base 8 or 60 and nobody means: 042 as 34, and 1:30 as 90."""
    by_sixties = ":" in node.value
    if by_sixties or (isinstance(number, int) and re.match(r"[-+]?0[0-7_]", node.value)):
        raise PlumblineError(
            f"{_name_line(node)}: YAML reads {node.value} in base {60 if by_sixties else 8}, as {number}; write it "
            f"without {'a colon' if by_sixties else 'a zero in front'}, or in quotation marks if it is a text"
        )


def _name_line(node: yaml.Node) -> str:
    return f"{node.start_mark.name}:{node.start_mark.line + 1}"


def read_yaml(path: Path) -> Any:
    """Read a YAML file.

    Raises:
        PlumblineError: there is no such file, it cannot be read, it is not YAML or not UTF-8, a key stands twice, a
            number is not finite, or it is larger or nested deeper than any file written by hand.
    """
    return parse_yaml(_read_text(path), str(path))


def read_struct(path: Path, kind: Any) -> Any:
    """Read a YAML file as a struct, or what else msgspec knows as a type; of the same text again it is the same one.

    Raises:
        PlumblineError: as `read_yaml` and `check`.
    """
    return _struct(_read_text(path), path, kind)


def read_checked(path: Path, kind: type[Struct]) -> Any:
    """Read a YAML file and hold it against its struct, as `check` does; the same text again is copied.

    Raises:
        PlumblineError: as `read_yaml` and `check`.
    """
    return copy.deepcopy(_parse_checked(_read_text(path), path, kind))


@cache
def _struct(text: str, path: Path, kind: Any) -> Any:
    return structs.convert(kind, parse_yaml(text, str(path)), f"{path}:")


@cache
def _parse_checked(text: str, path: Path, kind: type[Struct]) -> Any:
    content = parse_yaml(text, str(path))
    check(content, kind, path)
    return content


def _read_text(path: Path) -> str:
    if not path.exists():
        raise PlumblineError(f"there is no file {path}")
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise PlumblineError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise PlumblineError(f"{path} is not UTF-8 (byte {error.start}: {error.reason}); save it as UTF-8") from error


def parse_yaml(text: str, name: str) -> Any:
    """Parse a YAML text with the checks of `read_yaml`; `name` is what messages call it.

    Raises:
        PlumblineError: as `read_yaml`.
    """
    try:
        _require_small(text, name)
        stream = io.StringIO(text)
        stream.name = name
        return yaml.load(stream, Loader=_Loader)
    except PlumblineError:
        raise
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        # What is missing at the end is found missing behind it.
        where = f"{name}:{min(mark.line, text.rstrip().count(chr(10))) + 1}" if mark else name
        problem = error.problem or "it cannot be read"
        if error.context and error.context_mark:
            problem += f", {error.context} that begins in line {error.context_mark.line + 1}"
        raise PlumblineError(f"{where} is not YAML: {problem}") from error
    except yaml.YAMLError as error:
        raise PlumblineError(f"{name} is not YAML: {error}") from error


def _require_small(text: str, path: str) -> None:
    """Refuse nesting and aliases that would end this process, which reads them by recursion. Goes by events, flat."""
    anchors: dict[str, tuple[int, int]] = {}  # anchor -> values below it, levels below it
    open_: list[tuple[str | None, int, int]] = [(None, 0, 0)]  # anchor, values and levels so far
    event: Any
    for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        if isinstance(event, yaml.CollectionStartEvent):
            open_.append((event.anchor, 0, 0))
            size = (0, 0)
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, values, levels = open_.pop()
            size = (values + 1, levels + 1)
            if anchor:
                anchors[anchor] = size
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor in {anchor for anchor, _, _ in open_}:
                line = event.start_mark.line + 1  # type: ignore[union-attr]
                raise PlumblineError(f"{path}:{line}: *{event.anchor} contains itself")
            size = anchors.get(event.anchor or "", (1, 0))
        else:
            size = (1, 0)
        anchor, values, levels = open_[-1]
        open_[-1] = (anchor, values + size[0], max(levels, size[1]))
        if len(open_) - 1 + open_[-1][2] > DEEPEST or open_[-1][1] > MOST:
            raise PlumblineError(
                f"{path}:{event.start_mark.line + 1}: nested deeper than {DEEPEST} levels, or more than {MOST:,} "
                "values with every alias written out; no file here needs that"
            )


def check(content: Any, kind: Any, path: str | Path) -> None:
    """Hold a file's content against its struct, `kind`.

    Raises:
        PlumblineError: the content does not match; the message names the file, the key and the remedy.
    """
    structs.convert(kind, content, f"{path}:")


def load_config(path: Path | None = None) -> dict[str, Any]:
    """Read config/config.yaml (or the file `path`) and check it."""
    path = path or ROOT / "config" / "config.yaml"
    return read_checked(path, ConfigFile)


def require_work(config: dict[str, Any], root: Path = ROOT) -> None:
    """Refuse a folder for heavy files (`work`) that is one of the project's own folders or lies in one, however it is
    spelt: through a link, from above, or in full. (Its struct refuses what its text alone shows.) Refuse one that this
    user may not read, too.

    Raises:
        PlumblineError: the message names the folder that `work` would be.
    """
    work = (root / config["work"]).resolve()
    own_folder = next((name for name in OWN if work.is_relative_to((root / name).resolve())), None)
    if own_folder is None and root.resolve().is_relative_to(work / config["preset"]):
        own_folder = "."
    if own_folder is not None:
        place = "the project's own" if own_folder == "." else f"{own_folder}, a folder of the project's own"
        raise PlumblineError(
            f"config/config.yaml (with --config): work: {config['work']!r} is {work}, and so in {place}; name another "
            "one, such as work, or a folder on a scratch disk"
        )
    if not os.access(permissions.find_nearest(work / config["preset"]), os.R_OK | os.X_OK):
        raise PlumblineError(
            f"config/config.yaml (with --config): work: {permissions.explain_denial(work / config['preset'])}"
        )


def load_preset(name: str, root: Path = ROOT) -> dict[str, Any]:
    """Read config/presets/<name>.yaml and check it."""
    path = root / "config" / "presets" / f"{name}.yaml"
    return read_checked(path, PresetFile)


def papers(root: Path = ROOT) -> list[str]:
    """Names of the studies whose printed numbers are there: those with a folder `published`."""
    return study_folders.list_printed(root)


def studies(root: Path = ROOT) -> list[str]:
    """Names of the studies that can be run: those with a study.yaml, of the project and of installed packages."""
    return study_folders.list_runnable_studies(root)


def load_study(name: str, root: Path = ROOT) -> dict[str, Any]:
    """A study's study.yaml, checked (components are checked when specs are made)."""
    path = study_folders.folder(name, root) / study_folders.YAML
    content = read_checked(path, StudyFile)
    if content["study"] != name:
        raise PlumblineError(f"{path}: study: {content['study']!r} must be the folder's name, {name!r}")
    return content
