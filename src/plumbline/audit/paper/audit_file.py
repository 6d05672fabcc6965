"""Reads `audit.toml`: what a reviewer states about a paper, and the checks of it. The schema is closed.

Without the file, an audit checks what can be checked in tables without instructions.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct, field

from plumbline.audit.audit_rows import Basis
from plumbline.audit.paper.paper_table import read_text
from plumbline.audit.paper.printed_cell import apply_unit, read_cell
from plumbline.core.errors import PlumblineError, UsageError, nearest
from plumbline.core.structs import convert
from plumbline.core.toml_keys import check_keys
from plumbline.published.printed_number import PrintedNumber

NAME = "audit.toml"

#: Most checks and numbers of a file; bare whole numbers are below it.
MOST, LARGEST = 1_000, 10**40


class PaperPart(Struct, frozen=True, forbid_unknown_fields=True):
    """Which paper it is."""

    title: str = ""
    link: Annotated[
        str, Meta(pattern=r"^(?i:https?://[!-;=?-~]+)?\Z", description="is no link; begin it with https://")
    ] = ""


class NumberPart(Struct, frozen=True, forbid_unknown_fields=True):
    """A number of running text: as printed, whether it is a count or setting (never rounded), and where it stands."""

    printed: str
    exact: bool = False
    where: str = ""


class TablePart(Struct, frozen=True, forbid_unknown_fields=True):
    """What a reviewer states about a table.

    Attributes:
        baseline: the row with which others are compared.
        better: column -> "lower" or "higher".
        items: column of means -> how many whole numbers each is the mean of, or the column that states it.
        skip: columns that are only checked where a check names them.
    """

    baseline: str = ""
    better: dict[str, str] = {}
    items: dict[str, int | str] = {}
    skip: tuple[str, ...] = ()


class ModelPart(Struct, frozen=True, forbid_unknown_fields=True):
    """The shape of a decoder, its parameters as printed ("124M"), and where they stand.

    `biases`, `norm_vectors` and `tied`: None if the file does not state it; each way is then counted.
    """

    layers: int
    width: int
    heads: int
    ffn_width: int
    vocabulary: int
    parameters: str = ""
    non_embedding: str = ""
    key_value_heads: int = 0
    head_width: int = 0
    ffn_matrices: int = 2
    norm_vectors: int | None = None
    learned_positions: int = 0
    biases: bool | None = None
    tied: bool | None = None
    query_key_norm: bool = False
    where: str = ""


class TrainingPart(Struct, frozen=True, forbid_unknown_fields=True):
    """The training run: numbers that the paper states, each as printed; those that are missing are not checked."""

    steps: int | str = ""
    batch_tokens: int | str = ""
    batch: int | str = ""
    sequence: int | str = ""
    tokens: int | str = ""
    parameters: int | str = ""
    flops: float | str = ""
    where: str = ""


class CheckPart(Struct, frozen=True, forbid_unknown_fields=True):
    """A check with words: the expression, what the number is, where it is printed, and what the check rests on."""

    check: str
    what: str = ""
    where: str = ""
    basis: Basis = "follows"


class AuditFile(Struct, frozen=True, forbid_unknown_fields=True):
    """The content of `audit.toml`."""

    paper: PaperPart = PaperPart()
    numbers: dict[str, str | int | float | NumberPart] = {}
    tables: dict[str, TablePart] = {}
    model: ModelPart | None = None
    training: TrainingPart | None = None
    checks: dict[str, str | CheckPart] = {}
    path: Path = field(default=Path(NAME))


def load(path: Path) -> AuditFile:
    """Read an audit file; an empty one if there is no file.

    Raises:
        UsageError: it cannot be meant; the key, the file and the remedy are named.
    """
    if not path.is_file():
        return AuditFile(path=path)
    try:
        text = read_text(path)
        check_keys(text)
        toml = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a number of too many digits is a ValueError
        if isinstance(error, UsageError):
            raise
        raise UsageError(f"{path}: no TOML ({error}); a check is a line NAME = 'EXPRESSION' under [checks]") from None
    kinds = {"paper": PaperPart, "numbers": None, "tables": None, "model": ModelPart, "training": TrainingPart}
    names = [*kinds, "checks"]
    try:
        for name, part in toml.items():
            if name not in names:
                raise UsageError(f"{path}: there is no part [{name}]{nearest(name, names)} (there are {names})")
            if not isinstance(part, dict):
                raise UsageError(f"{path}: {name}: is a part, not a value; write [{name}]")
            if len(part) > MOST:
                raise UsageError(f"{path}: {name}: {len(part)} entries, and at most {MOST} are read")
        parts = {
            name: convert(kind, toml[name], f"{path}: {name}") for name, kind in kinds.items() if kind and name in toml
        }
        for name, kind in (("numbers", NumberPart), ("checks", CheckPart)):
            parts[name] = {
                key: convert(kind, entry, f"{path}: {name}.{key}")
                if isinstance(entry, dict)
                else _require_plain(path, name, key, entry)
                for key, entry in toml.get(name, {}).items()
            }
        parts["tables"] = {
            key: convert(TablePart, entry if isinstance(entry, dict) else {"": entry}, f"{path}: tables.{key}")
            for key, entry in toml.get("tables", {}).items()
        }
        _check_values(parts, path)
        return AuditFile(**parts, path=path)
    except UsageError:
        raise
    except PlumblineError as error:
        raise UsageError(str(error)) from None


def _require_plain(path: Path, part: str, key: str, value: object) -> object:
    types: tuple[type, ...] = (str,) if part == "checks" else (str, int, float)
    if not isinstance(value, types) or isinstance(value, bool):
        raise UsageError(f"{path}: {part}.{key}: {value!r} is no {'expression' if part == 'checks' else 'number'}")
    return value


def _check_values(parts: dict[str, object], path: Path) -> None:
    for name, table in dict(parts["tables"]).items():  # type: ignore[call-overload]
        for column, direction in table.better.items():
            if direction not in ("lower", "higher"):
                raise UsageError(f"{path}: tables.{name}.better.{column}: {direction!r}; write 'lower' or 'higher'")
        for column, count in table.items.items():
            if isinstance(count, int) and not 0 < count < 10**9:
                raise UsageError(f"{path}: tables.{name}.items.{column}: {_shorten(count)}; write a count from 1 on")
    model = parts.get("model")
    if isinstance(model, ModelPart):
        for key in ("layers", "width", "heads", "ffn_width", "vocabulary"):
            if not 0 < getattr(model, key) < 10**9:
                raise UsageError(f"{path}: model.{key}: {_shorten(getattr(model, key))}; write a size from 1 on")
        for key in ("key_value_heads", "head_width", "ffn_matrices", "norm_vectors", "learned_positions"):
            if not 0 <= (getattr(model, key) or 0) < 10**9:
                raise UsageError(f"{path}: model.{key}: {_shorten(getattr(model, key))}; write a count from 0 on")
        if not model.head_width and model.width % model.heads:
            raise UsageError(
                f"{path}: model.heads: {model.heads} do not share a width of {model.width}; give head_width"
            )


def _shorten(number: int) -> str:
    """A number for a message; Python writes none of thousands of digits."""
    return str(number) if abs(number) < LARGEST else "a number of more than 40 digits"


def parse_number(entry: str | int | float | NumberPart, name: str, where: str) -> PrintedNumber:
    """Parse a number of the file: one in quotes is rounded as printed ("124M", "2.5B"), a bare whole number is exact.

    Raises:
        UsageError: it is not a number.
    """
    if isinstance(entry, int):
        if not abs(entry) < LARGEST:
            raise UsageError(f"{where}: a number of more than 40 digits; write it as printed, in quotes")
        return PrintedNumber(text=str(entry), exact=True, name=name)
    text = entry.printed if isinstance(entry, NumberPart) else str(entry)
    cell = read_cell(text)
    if cell.number is None or cell.sd or cell.bracket or cell.relation in ">~":
        raise UsageError(f'{where}: {text!r} is no number; write it as printed: "0.4829", "124M", "1.2e20"')
    part = entry if isinstance(entry, NumberPart) else NumberPart(printed=text)
    number, relation = apply_unit(cell.number, cell.unit), "<" if cell.relation == "<" else "="
    return PrintedNumber(
        text=number, exact=part.exact, relation=relation, name=name, where=part.where, shown=cell.number + cell.unit
    )
