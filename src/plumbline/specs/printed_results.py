"""Reads results that somebody else printed from a CSV, before any run of a user's own file is made."""

from __future__ import annotations

from pathlib import Path

from plumbline.core.errors import PlumblineError, nearest
from plumbline.core.foreign_rows import split_rows
from plumbline.specs.compared_metrics import METRICS
from plumbline.specs.yaml_files import ROOT

COLUMNS = ("method", "metric", "scale", "value")


def read(published: str, file: str, methods: list[str], scales: list[str], root: Path = ROOT) -> list[dict[str, str]]:
    """Read the rows of the CSV `published`, in its order; none if no CSV is named.

    It is read before any run is made, so that a slip of the pen is reported before hours of training.

    Args:
        file: the file that names the CSV, for messages.
        methods, scales: what a row may be about.

    Raises:
        PlumblineError: there is no such file, it is not a CSV in UTF-8, or a row names something that these runs do not
            have.
    """
    if not published:
        return []
    path, key = Path(published), f"{file}: published"
    try:
        text = (root / path).read_bytes().decode("utf-8-sig")  # Excel begins UTF-8 with a mark
    except FileNotFoundError:
        raise PlumblineError(f"{key}: there is no file {path}; name it relative to the folder of {file}") from None
    except OSError as error:
        raise PlumblineError(f"{key}: {path} cannot be read ({error.strerror}); name a CSV") from None
    except UnicodeDecodeError as error:
        raise PlumblineError(f"{key}: {path} is not UTF-8 ({error.reason}); save it as UTF-8") from None
    try:
        lines = [(number, cells) for number, cells in split_rows(path, text, ",") if cells]
    except PlumblineError as error:
        raise PlumblineError(f"{key}: {error}") from None
    columns = lines[0][1] if lines else []
    if missing := [name for name in COLUMNS if name not in columns]:
        raise PlumblineError(f"{key}: {path}: the column {missing[0]!r} is missing; it has {columns}")
    numbered = []
    for number, cells in lines[1:]:
        if len(cells) != len(columns):
            raise PlumblineError(f"{key}: {path}, line {number}: {len(cells)} cells under {len(columns)} columns")
        numbered.append((number, dict(zip(columns, cells, strict=True))))
    for number, row in numbered:
        for column, allowed in (("method", methods), ("metric", list(METRICS)), ("scale", scales)):
            if row[column] not in allowed:
                raise PlumblineError(
                    f"{key}: {path}, line {number}: {column}: {row[column]!r} is not here"
                    f"{nearest(row[column], allowed)} (there are {allowed})"
                )
        if not row["value"].strip():
            raise PlumblineError(f"{key}: {path}, line {number}: value: it is empty; give the printed value, or no row")
    return [row for _, row in numbered]
