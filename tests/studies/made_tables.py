"""Every table of every study, made from the world in which its paper is right."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.runs.finished_runs import RunFrames, load
from plumbline.results.tables.paper_columns import add_paper_columns
from plumbline.results.tables.table import Cell, Table
from plumbline.specs import study_parts
from plumbline.specs.study_config import Study
from tests.studies.key_norms import synthetic_runs as key_norms
from tests.studies.premature import synthetic_runs as premature
from tests.studies.quack import synthetic_runs as quack
from tests.studies.query_free import synthetic_runs as query_free
from tests.studies.transfer import synthetic_runs as transfer

STUDIES = ("key_norms", "premature", "quack", "query_free", "transfer")

#: The tables of each study.
TABLES = [(study, name) for study in STUDIES for name in study_parts.targets(study, "tables")]


@cache
def make_table(study: str, name: str) -> tuple[Table, RunFrames]:
    """Make a table as the workflow does, and give the frames that it was made from."""
    table, frames = _make_plain_table(study, name)
    _, _, published = _world(study)
    table = replace(table, notes=list(table.notes), paper_columns=[])
    add_paper_columns(table, declaration(study, name), published)
    return table, frames


def make_table_without_results(study: str, name: str) -> Table:
    """Make a table of whose reproduced numbers none is there: what is left of numbers is the paper's."""
    table, _ = _make_plain_table(study, name)
    own = {column.name for column in table.columns if column.kind in ("reproduced", "fact") and column.numeric}
    rows = [
        {column: Cell(None, word="missing") if column in own else cell for column, cell in row.items()}
        for row in table.rows
    ]
    table = replace(table, rows=rows, notes=[], warnings=[], paper_columns=[])
    _, _, published = _world(study)
    add_paper_columns(table, declaration(study, name), published)
    return table


def declaration(study: str, name: str) -> dict[str, Any] | None:
    """What a study declares of the table as its paper prints it."""
    _, config, _ = _world(study)
    return config.definition["targets"][name].get("printed")


@cache
def _make_plain_table(study: str, name: str) -> tuple[Table, RunFrames]:
    loaded, config, published = _world(study)
    frames = loaded(*config.definition["targets"][name]["runs"])
    table = study_parts.function(study, "tables", name)(frames, config, published)
    table.paper = config.paper
    return table, frames


@cache
def _world(study: str) -> tuple[Callable[..., RunFrames], Study, PrintedNumbers]:
    """How the runs of a world at paper size are read, its study, and the printed numbers. Read only."""
    if study == "transfer":
        world = transfer.published_once()
        return _none_is_none(world.load), world.study, transfer.PUBLISHED
    if study == "premature":
        root = premature.published_once()
        read = _none_is_none(lambda *groups: premature.load_frames(root, *groups))
        return read, premature.study_at(), premature.PUBLISHED
    root = Path(tempfile.mkdtemp(prefix="plumbline-tables-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    if study == "key_norms":
        norms = key_norms.World(root)
        return lambda *_: norms.load(), norms.study, key_norms.PUBLISHED
    if study == "quack":
        written = quack.Written(root, quack.right())
        return lambda *_: written.load(), written.study, quack.PUBLISHED
    runs = query_free.write_runs(query_free.as_the_document_says(), root)
    there = query_free.write_transfer(query_free.Transfer(), runs)
    return lambda *groups: query_free.load_frames(there, *groups), query_free.study_at(), query_free.PUBLISHED


def _none_is_none(read: Callable[..., RunFrames]) -> Callable[..., RunFrames]:
    """A table that asks for no group reads no run, where the world would read all of them."""
    return lambda *groups: read(*groups) if groups else load([], Path(tempfile.gettempdir()), probes=True)
