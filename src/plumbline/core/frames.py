"""Declares the schemas of the long frames that every table is made from, writes frames and reads them.

A frame is a parquet file. Its columns and types are declared here and nowhere else; a column that is missing, unknown
or of another type is an error at the place that writes it, not at the place that reads it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from plumbline.core.errors import PlumblineError
from plumbline.core.files import name_in_errors, open_atomically

if TYPE_CHECKING:  # a trainer writes frames without ever loading pandas' half second of imports itself
    import pandas as pd

SCHEMAS: dict[str, pa.Schema] = {
    # One row per logged step. Times are not here: a frame of the same run is the same bytes wherever it was made.
    "metrics": pa.schema(
        [
            ("step", pa.int64()),
            ("split", pa.string()),
            ("loss", pa.float64()),
            ("grad_norm", pa.float64()),
            ("learning_rate", pa.float64()),
            ("tokens", pa.int64()),
        ]
    ),
    # What probes read, offline from checkpoints or online from inside training. `layer` and `head` are null where a
    # number is of none; `null` is what a model would give that does nothing of what the probe looks for.
    "probes": pa.schema(
        [
            ("run_id", pa.string()),
            ("step", pa.int64()),
            ("fraction", pa.float64()),
            ("layer", pa.int64()),
            ("head", pa.int64()),
            ("probe", pa.string()),
            ("value", pa.float64()),
            ("null", pa.float64()),
            ("source", pa.string()),
        ]
    ),
    "scores": pa.schema(
        [
            ("run_id", pa.string()),
            ("task", pa.string()),
            ("metric", pa.string()),
            ("value", pa.float64()),
            ("stderr", pa.float64()),
            ("items", pa.int64()),
            ("task_source", pa.string()),
            ("primary", pa.bool_()),
            ("harness_version", pa.string()),
        ]
    ),
    "examples": pa.schema(
        [
            ("run_id", pa.string()),
            ("task", pa.string()),
            ("item", pa.string()),
            ("metric", pa.string()),
            ("value", pa.float64()),
        ]
    ),
}


def write(frame: pd.DataFrame, name: str, path: str | Path, metadata: dict[str, str] | None = None) -> None:
    """Write `frame` as a frame of the schema `name`, atomically; `metadata` is stored with it as text labels.

    Raises:
        PlumblineError: a column is missing, unknown, or cannot be stored as the declared type.
    """
    schema = SCHEMAS[name]
    unknown = [column for column in frame.columns if column not in schema.names]
    missing = [column for column in schema.names if column not in frame.columns]
    if unknown or missing:
        raise PlumblineError(f"frame {name!r}: missing columns {missing}, unknown columns {unknown}")
    try:
        table = pa.Table.from_pandas(frame[schema.names], schema=schema, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise PlumblineError(f"frame {name!r}: a column does not have its declared type: {error}") from error
    _store(table, name, path, metadata)


def write_measured(frame: pd.DataFrame, path: str | Path, metadata: dict[str, str] | None = None) -> None:
    """Write the frame of a study's own measurement, atomically; the study chooses the columns.

    Raises:
        PlumblineError: the frame has no rows, a column has no name, or a column holds something other than numbers,
            truth values or texts.
    """
    if frame.empty or not all(isinstance(column, str) for column in frame.columns):
        raise PlumblineError(f"{path}: a measurement needs rows, and columns with names; it has {list(frame.columns)}")
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise PlumblineError(f"{path}: a column of the measurement cannot be stored: {error}") from error
    of = pa.types
    for column in table.schema:
        kinds = (of.is_integer, of.is_floating, of.is_boolean, of.is_string, of.is_large_string)
        if not any(fits(column.type) for fits in kinds):
            raise PlumblineError(
                f"{path}: the column {column.name!r} of the measurement is of {column.type}; give numbers, truths or "
                "texts"
            )
    _store(table, "measured", path, metadata)


def read(path: str | Path, name: str) -> pd.DataFrame:
    """Read a frame and check that it has the schema `name`.

    Raises:
        PlumblineError: the file is no parquet file (it may be empty), or a frame of another schema.
    """
    try:
        table = pq.read_table(path)
    except pa.ArrowInvalid as error:
        raise PlumblineError(
            f"{path} is damaged: {Path(path).stat().st_size} bytes, and no frame can be read from it "
            f"({str(error).splitlines()[0]}); delete it and run its command again"
        ) from error
    if table.schema.remove_metadata() != SCHEMAS[name]:
        raise PlumblineError(f"{path} is not a {name!r} frame: its columns are {table.schema.names}")
    return table.to_pandas()


def _store(table: pa.Table, name: str, path: str | Path, metadata: dict[str, str] | None) -> None:
    labels = {b"plumbline.frame": name.encode()} | {
        key.encode(): value.encode() for key, value in (metadata or {}).items()
    }
    with open_atomically(path) as file, name_in_errors(path):
        pq.write_table(table.replace_schema_metadata(labels), file)


def metadata(path: str | Path) -> dict[str, str]:
    """The text labels that are stored with the frame at `path`."""
    stored = pq.read_schema(path).metadata or {}
    return {key.decode(): value.decode() for key, value in stored.items()}
