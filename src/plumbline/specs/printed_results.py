"""Reads results that somebody else printed from a CSV, before any run of a user's own file is made."""

from __future__ import annotations

import csv
from pathlib import Path

from plumbline.core.errors import PlumblineError, nearest
from plumbline.specs.compared_metrics import METRICS
from plumbline.specs.yaml_files import ROOT

COLUMNS = ("method", "metric", "scale", "value")


def rows(published: str, of: str, methods: list[str], scales: list[str], root: Path = ROOT) -> list[dict[str, str]]:
    """Read the rows of the CSV `published`, in its order; none where no CSV is named.

    It is read before any run is made, so that a slip of the pen is not told only after hours of training.

    Args:
        of: the file that names the CSV, for messages.
        methods, scales: what a row may be about.

    Raises:
        PlumblineError: there is no such file, it is no CSV in UTF-8, or a row names something that these runs do not
            have.
    """
    if not published:
        return []
    path, key = Path(published), f"{of}: published"
    try:
        with (root / path).open(encoding="utf-8-sig", newline="") as lines:  # Excel begins UTF-8 with a mark
            read = csv.DictReader(lines)
            if missing := [name for name in COLUMNS if name not in (read.fieldnames or ())]:
                raise PlumblineError(f"{key}: {path}: the column {missing[0]!r} is missing; it has {read.fieldnames}")
            found = [(read.line_num, row) for row in read]
    except FileNotFoundError:
        raise PlumblineError(f"{key}: there is no file {path}; name it relative to the folder of {of}") from None
    except OSError as error:
        raise PlumblineError(f"{key}: {path} cannot be read ({error.strerror}); name a CSV") from None
    except UnicodeDecodeError as error:
        raise PlumblineError(f"{key}: {path} is not UTF-8 ({error.reason}); save it as UTF-8") from None
    except csv.Error as error:
        raise PlumblineError(f"{key}: {path} is not a CSV ({error}); save it as one, in UTF-8") from None
    for number, row in found:
        for column, known in (("method", methods), ("metric", list(METRICS)), ("scale", scales)):
            if row[column] not in known:
                raise PlumblineError(
                    f"{key}: {path}, line {number}: {column}: {row[column]!r} is not here"
                    f"{nearest(str(row[column]), known)} (there are {known})"
                )
        if not (row["value"] or "").strip():
            raise PlumblineError(f"{key}: {path}, line {number}: value: it is empty; give the printed value, or no row")
    return [row for _, row in found]
