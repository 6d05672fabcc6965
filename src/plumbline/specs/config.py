"""Reading the YAML files of config/ against their closed schemas, with errors that say what to do."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any, cast

import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match

from plumbline.cli import PlumblineError, nearest


def _project_root() -> Path:
    """The project that is worked on: the working directory if it is one, else the one this package lies in."""
    here = Path.cwd()
    return here if (here / "config" / "studies").is_dir() else Path(__file__).resolve().parents[3]


#: Root of the project whose config/ is read.
ROOT = _project_root()
PRESETS = ("paper", "mini", "demo", "smoke")


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML that refuses the same key twice, and reads 1e-5 as a number."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                mark = key_node.start_mark
                raise PlumblineError(f"{mark.name}:{mark.line + 1}: the key {key!r} stands twice; keep one of them")
            seen.add(key)
        return super().construct_mapping(node, deep)


# YAML 1.1, which PyYAML reads, takes 1e-5 (no dot, or no sign) for a text.
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)[eE][-+]?[0-9]+\Z"), list("-+.0123456789")
)


def read_yaml(path: Path) -> Any:
    """A YAML file's content.

    Raises:
        PlumblineError: there is no such file, it is not YAML, or a key stands twice.
    """
    if not path.exists():
        raise PlumblineError(f"there is no file {path}")
    try:
        with open(path, encoding="utf-8") as stream:
            return yaml.load(stream, Loader=_Loader)
    except yaml.YAMLError as error:
        raise PlumblineError(f"{path} is not YAML: {error}") from error


@cache
def _schema(name: str) -> Draft202012Validator:
    return Draft202012Validator(read_yaml(ROOT / "workflow" / "schemas" / f"{name}.schema.yaml"))


def check(content: Any, schema: str, path: str | Path) -> None:
    """Hold a file's content against its schema.

    Raises:
        PlumblineError: naming the file, the key and the remedy.
    """
    error = best_match(error for error in _schema(schema).iter_errors(content) if not _echo(error))
    if error is not None:
        where = ".".join(str(part) for part in error.absolute_path) or "top level"
        raise PlumblineError(f"{path}: {where}: {_explain(error)}")


def _echo(error: ValidationError) -> bool:
    """Whether it only repeats, higher up, a mistake further down: a faulty part does not count as evaluated."""
    return error.validator == "unevaluatedProperties" and not _unknown_keys(error)


def _explain(error: ValidationError) -> str:
    unknown = _unknown_keys(error)
    if unknown:
        known = sorted(_known_keys(error))
        return f"unknown key {unknown[0]!r}{nearest(unknown[0], known)} (known: {known})"
    if error.validator == "enum" and isinstance(error.instance, str):
        return error.message + nearest(error.instance, map(str, cast(list[Any], error.validator_value)))
    if error.validator == "required":
        return f"{error.message}; add it"
    return error.message


def _unknown_keys(error: ValidationError) -> list[str]:
    """Keys that a closed schema does not know, where it lists those that it knows."""
    if error.validator not in ("additionalProperties", "unevaluatedProperties") or not isinstance(error.instance, dict):
        return []
    known = _known_keys(error)
    return [key for key in error.instance if key not in known] if known else []


def _known_keys(error: ValidationError) -> set[str]:
    schema = cast(dict[str, Any], error.schema)
    known = set(schema.get("properties", {}))
    if error.validator == "unevaluatedProperties":
        known |= set(cast(dict[str, Any], _schema("study").schema)["$defs"]["parts"]["properties"])
    return known


def load_config(path: Path | None = None) -> dict[str, Any]:
    """config/config.yaml, checked."""
    path = path or ROOT / "config" / "config.yaml"
    content = read_yaml(path)
    check(content, "config", path)
    return content


def load_preset(name: str, root: Path = ROOT) -> dict[str, Any]:
    """config/presets/<name>.yaml, checked."""
    path = root / "config" / "presets" / f"{name}.yaml"
    content = read_yaml(path)
    check(content, "preset", path)
    return content


def documents(root: Path = ROOT) -> list[str]:
    """Names of the studies whose printed numbers are there: folders of config/studies with a folder `published`."""
    return sorted(path.parent.name for path in (root / "config" / "studies").glob("*/published"))


def studies(root: Path = ROOT) -> list[str]:
    """Names of the studies that can be run: folders of config/studies with a study.yaml."""
    return sorted(path.parent.name for path in (root / "config" / "studies").glob("*/study.yaml"))


def load_study(name: str, root: Path = ROOT) -> dict[str, Any]:
    """config/studies/<name>/study.yaml, checked against the schema (components are checked when specs are made)."""
    path = root / "config" / "studies" / name / "study.yaml"
    if not path.exists():
        known = studies(root)
        raise PlumblineError(f"there is no study {name!r}{nearest(name, known)} (there are {known}): {path} is missing")
    content = read_yaml(path)
    check(content, "study", path)
    if content["study"] != name:
        raise PlumblineError(f"{path}: study: {content['study']!r} must be the folder's name, {name!r}")
    return content
