"""Reads what somebody prints, a CSV, and nothing else: asked of a file of one's own before any run is made."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING

from plumbline.cli import PlumblineError, nearest
from plumbline.specs.config import ROOT
from plumbline.verdict.measures import MEASURES

if TYPE_CHECKING:
    from plumbline.specs.mine import Mine

COLUMNS = ("method", "metric", "scale", "value")


def rows(mine: Mine, root: Path = ROOT) -> list[dict[str, str]]:
    """The rows of the file, in its order; none where no file was given. Asked before any run is made: a slip of the pen
    is not to be told after hours of training.

    Raises:
        PlumblineError: there is no such file, it is no CSV in UTF-8, or a row names something that these runs do not
            have.
    """
    if not mine.asked["published"]:
        return []
    path, key = Path(mine.asked["published"]), f"{mine.path}: published"
    try:
        with (root / path).open(encoding="utf-8-sig", newline="") as lines:  # Excel begins UTF-8 with a mark
            read = csv.DictReader(lines)
            if missing := [name for name in COLUMNS if name not in (read.fieldnames or ())]:
                raise PlumblineError(f"{key}: {path}: the column {missing[0]!r} is missing; it has {read.fieldnames}")
            found = [(read.line_num, row) for row in read]
    except FileNotFoundError:
        raise PlumblineError(f"{key}: there is no file {path}; name it from the folder of {mine.path}") from None
    except OSError as error:
        raise PlumblineError(f"{key}: {path} cannot be read ({error.strerror}); name a CSV") from None
    except UnicodeDecodeError as error:
        raise PlumblineError(f"{key}: {path} is not UTF-8 ({error.reason}); save it as UTF-8") from None
    except csv.Error as error:
        raise PlumblineError(f"{key}: {path} is no CSV ({error}); save it as one, in UTF-8") from None
    scales = [mine.scale, *([mine.larger] if mine.larger else [])]
    for number, row in found:
        for column, known in (("method", mine.compared), ("metric", list(MEASURES)), ("scale", scales)):
            if row[column] not in known:
                raise PlumblineError(
                    f"{key}: {path}, line {number}: {column}: {row[column]!r} is not here"
                    f"{nearest(str(row[column]), known)} (there are {known})"
                )
        if not (row["value"] or "").strip():
            raise PlumblineError(f"{key}: {path}, line {number}: value: it is empty; put what is printed, or no row")
    return [row for _, row in found]
