"""Reads from source files what hashes of code are made of, and keeps it from process to process.

Of a file that is the hash of its syntax tree, its import statements, and whether it holds a component. To parse and
hash five hundred files takes seconds of a processor, at every start of Snakemake and of most verbs; so what was read of
a file is kept in ``~/.cache/plumbline/code_facts.json`` (below `XDG_CACHE_HOME`, where that is set), under the SHA-256
of the file's bytes. To remove that file costs the seconds once more and nothing else; where it cannot be read or
written, nothing is kept.
"""

from __future__ import annotations

import ast
import atexit
import hashlib
import json
import os
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic_write_bytes, sha256_file, sha256_text

#: What may begin with a docstring.
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)

#: The names of a node's fields in order, without whether a text was written with a u in front.
_FIELDS = {
    kind: sorted(name for name in kind._fields if name != "kind")
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST)
}

#: A text in JSON.
_QUOTED = json.JSONEncoder(ensure_ascii=False).encode

#: Files of which facts are kept at most: those of a few versions of the package.
_MOST = 4000


class ImportStatement(msgspec.Struct, frozen=True, array_like=True):
    """An import: its line, the dots and the module after ``from`` (None for a plain ``import``), and the names."""

    line: int
    level: int | None
    module: str | None
    names: list[str]


class CodeFacts(msgspec.Struct, frozen=True, array_like=True):
    """What is read of a source file: the hash of its syntax tree, its imports, and whether it holds a component."""

    tree: str
    imports: list[ImportStatement]
    is_component: bool


class _KeptFacts(msgspec.Struct):
    """The file that processes hand on: whose code read the facts, and the facts by the SHA-256 of the files' bytes."""

    reader: str
    facts: dict[str, CodeFacts]


#: What this process read itself, to be kept at its end.
_new: dict[str, CodeFacts] = {}


@cache
def read_facts(path: Path) -> CodeFacts:
    """Read a file's facts, once per process.

    Raises:
        PlumblineError: the file cannot be read, or is not Python.
    """
    source = read_source(path)
    key = hashlib.sha256(source).hexdigest()
    facts = _read_kept().get(key) or _new.get(key)
    if facts is None:
        facts = _new[key] = _collect_facts(parse_source(source, path))
    return facts


def read_source(path: Path) -> bytes:
    """Read a source file as it is now.

    Raises:
        PlumblineError: it cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise PlumblineError(f"{path} cannot be read: {error.strerror}") from error


def parse_source(source: bytes, path: Path) -> ast.Module:
    """Parse a file's bytes.

    Raises:
        PlumblineError: they are not Python; it names `path`.
    """
    try:
        return ast.parse(source.decode("utf-8"), filename=str(path))
    except SyntaxError as error:
        raise PlumblineError(f"{path}:{error.lineno} is not Python: {error.msg}") from error
    except (ValueError, RecursionError, MemoryError) as error:  # nested too deeply, or no text
        raise PlumblineError(f"{path} is not Python: {error}") from error


@cache
def keep_facts_at_exit() -> None:
    """Have this process keep what it reads of source files when it ends."""
    atexit.register(_keep_facts)


def _keep_facts() -> None:
    """Add what this process read to what others left meanwhile, the newest last."""
    file = _find_store_file()
    if not _new or file is None:
        return
    _read_kept.cache_clear()
    facts = {key: value for key, value in _read_kept().items() if key not in _new} | _new
    latest_facts = dict(list(facts.items())[-_MOST:])
    with suppress(OSError, PlumblineError):
        atomic_write_bytes(file, msgspec.json.encode(_KeptFacts(_reader(), latest_facts)))


@cache
def _read_kept() -> dict[str, CodeFacts]:
    """The facts that processes with the same code before this one kept; none if their file is damaged."""
    file = _find_store_file()
    with suppress(OSError, msgspec.MsgspecError):
        content = msgspec.json.decode(file.read_bytes(), type=_KeptFacts) if file else None
        if content is not None and content.reader == _reader():
            return content.facts
    return {}


def _find_store_file() -> Path | None:
    """Where facts are kept; None where there is no home."""
    folder = os.environ.get("XDG_CACHE_HOME", "")
    with suppress(RuntimeError):
        return (Path(folder) if Path(folder).is_absolute() else Path.home() / ".cache") / "plumbline/code_facts.json"
    return None


@cache
def _reader() -> str:
    """Whose facts they are: of this module as it stands, and of this version of Python."""
    return f"{sha256_file(__file__)} {sys.version_info[0]}.{sys.version_info[1]}"


def _collect_facts(tree: ast.Module) -> CodeFacts:
    imports = []
    for node in _list_statements(tree):
        if isinstance(node, ast.Import):
            imports.append(ImportStatement(node.lineno, None, None, [alias.name for alias in node.names]))
        elif isinstance(node, ast.ImportFrom):
            names = [alias.name for alias in node.names]
            imports.append(ImportStatement(node.lineno, node.level, node.module, names))
    marks = [mark for node in tree.body for mark in getattr(node, "decorator_list", [])]
    is_component = any(isinstance(mark, ast.Name) and mark.id == "component" for mark in marks)
    return CodeFacts(sha256_text(_text(tree)), imports, is_component)


def _list_statements(tree: ast.Module) -> list[ast.AST]:
    """All statements, those inside others too: a tenth of what `ast.walk` visits."""
    statements: list[ast.AST] = [tree]
    for node in statements:
        for name in ("body", "handlers", "orelse", "finalbody", "cases"):
            statements += getattr(node, name, ())
    return statements


def _text(node: Any) -> str:
    """A tree as canonical JSON that is the same under every version of Python: empty fields are left out, like
    docstrings. Written at once: lists for it would be a million objects."""
    if isinstance(node, list):
        return f"[{','.join([_text(item) for item in node])}]"
    if not isinstance(node, ast.AST):
        return _QUOTED(f"{type(node).__name__} {node!r}")
    parts = [f'"{type(node).__name__}"']
    for name in _FIELDS[type(node)]:
        value = getattr(node, name, None)
        if value is None or value == []:
            continue
        if name == "body" and isinstance(node, _DOCUMENTED) and ast.get_docstring(node):
            value = value[1:]
        parts.append(f'["{name}",{_text(value)}]')
    return f"[{','.join(parts)}]"
