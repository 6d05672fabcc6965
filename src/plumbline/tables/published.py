"""Numbers a document prints, kept as text, so that 0.4880 stays 0.4880."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from plumbline.cli import PlumblineError
from plumbline.studies.config import ROOT, read_yaml
from plumbline.tables.table import NOT_PRINTED


class Published:
    """The printed tables of one study: ``config/published/<study>``."""

    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory)

    def path(self, name: str) -> Path:
        """Where the printed table `name` is."""
        return self.directory / f"{name}.csv"

    def shown(self, name: str) -> str:
        """The file's path for readers: inside the project, relative to it."""
        path = self.path(name).resolve()
        return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.as_posix()

    def table(self, name: str, key: str | list[str] = "method_id") -> pd.DataFrame:
        """A printed table on its key, every cell as printed; an empty string where nothing is printed.

        Raises:
            PlumblineError: there is no such file.
        """
        if not self.path(name).exists():
            raise PlumblineError(f"--published: there is no file {self.path(name)}")
        return pd.read_csv(self.path(name), dtype=str, keep_default_na=False).set_index(key)

    def claim(self, name: str) -> dict[str, Any]:
        """The printed values of a claim, for numbers that stand in the text and in no table.

        Raises:
            PlumblineError: there is no claims.yaml, or no such claim in it.
        """
        path = self.directory / "claims.yaml"
        for claim in read_yaml(path):
            if claim["id"] == name:
                return claim["values"]
        raise PlumblineError(f"{path}: there is no claim {name!r}")


def printed(frame: pd.DataFrame, row: object, column: str) -> str:
    """A printed cell, or the words that nothing is printed there."""
    if row not in frame.index:
        return NOT_PRINTED
    return frame.loc[row, column] or NOT_PRINTED
