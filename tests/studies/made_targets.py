"""Every table and figure of every study, made from the world in which its paper is right."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.figures.figure_style import FigureWithData
from plumbline.results.runs.finished_runs import RunFrames, load
from plumbline.results.tables.paper_columns import add_paper_columns
from plumbline.results.tables.table import Cell, Table
from plumbline.specs import study_parts
from plumbline.specs.study_config import Study
from plumbline.studies.quack import lemma1_numbers
from plumbline.studies.quack.logit_change import HeadSizes
from tests.studies.key_norms import synthetic_runs as key_norms
from tests.studies.premature import synthetic_runs as premature
from tests.studies.quack import synthetic_runs as quack
from tests.studies.query_free import synthetic_runs as query_free
from tests.studies.transfer import synthetic_runs as transfer
from tests.studies.watched_numbers import Watched

STUDIES = ("key_norms", "premature", "quack", "query_free", "transfer")

#: The tables and the figures of each study.
TABLES, FIGURES = (
    [(study, name) for study in STUDIES for name in study_parts.targets(study, kind)] for kind in ("tables", "figures")
)


@dataclass(frozen=True, kw_only=True)
class MadeTarget:
    """A table or a figure, the frames that it was made from, and the printed files that were read for it."""

    product: Table | FigureWithData
    frames: RunFrames
    study: Study
    read: frozenset[str]


@cache
def make_target(study: str, name: str) -> MadeTarget:
    """A table or a figure, made once a process. Read only."""
    return make_anew(study, name)


def make_anew(study: str, name: str) -> MadeTarget:
    """Make a table or a figure as the workflow does."""
    made = _make_without_paper(study, name)
    if isinstance(made.product, Table):
        add_paper_columns(made.product, declaration(study, name), _world(study)[2])
    return made


def _make_without_paper(study: str, name: str) -> MadeTarget:
    """Make a table before the paper's columns are added, or a figure."""
    loaded, config, published = _world(study)
    entry, watched = config.definition["targets"][name], Watched(published)
    frames = loaded(*entry["runs"])
    with use_small_head():
        product = study_parts.function(study, f"{entry['kind']}s", name)(frames, config, watched)
    if isinstance(product, Table):
        product.paper = config.paper
    return MadeTarget(product=product, frames=frames, study=config, read=frozenset(watched.seen))


def declaration(study: str, name: str) -> dict[str, Any] | None:
    """What a study declares of the table as its paper prints it."""
    return _world(study)[1].definition["targets"][name].get("printed")


def make_table_without_results(study: str, name: str) -> Table:
    """Make a table of whose reproduced numbers none is there: what is left of numbers is the paper's."""
    table = _make_without_paper(study, name).product
    assert isinstance(table, Table)
    own = {column.name for column in table.columns if column.kind in ("reproduced", "fact") and column.numeric}
    rows = [
        {column: Cell(None, word="missing") if column in own else cell for column, cell in row.items()}
        for row in table.rows
    ]
    table = replace(table, rows=rows, notes=[], warnings=[])
    add_paper_columns(table, declaration(study, name), _world(study)[2])
    return table


def make_table(study: str, name: str) -> tuple[Table, RunFrames]:
    """A table with the frames that it was made from."""
    made = make_target(study, name)
    assert isinstance(made.product, Table)
    return made.product, made.frames


class Tables(dict[str, Table]):
    """A study's tables by name, each made when it is first asked for."""

    def __init__(self, study: str) -> None:
        super().__init__()
        self.study = study

    def __missing__(self, name: str) -> Table:
        self[name] = make_table(self.study, name)[0]
        return self[name]


def draw(study: str, name: str) -> FigureWithData:
    """A figure."""
    picture = make_target(study, name).product
    assert isinstance(picture, FigureWithData)
    return picture


@contextmanager
def use_small_head() -> Iterator[None]:
    """Compute the lemma of quack on a head that is drawn in no time."""
    sizes = HeadSizes(width=48, head_width=8, init_std=0.02, rate=3e-3, tau=1.0, tokens=12)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lemma1_numbers, "sizes", lambda study: sizes)
        lemma1_numbers.compute_rows.cache_clear()
        yield
    lemma1_numbers.compute_rows.cache_clear()


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
    root = Path(tempfile.mkdtemp(prefix="plumbline-targets-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    if study == "key_norms":
        norms = key_norms.World(root)
        return cache(norms.load), norms.study, key_norms.PUBLISHED
    if study == "quack":
        written = quack.Written(root, quack.right())
        return cache(written.load), written.study, quack.PUBLISHED
    runs = query_free.write_runs(query_free.as_the_document_says(), root)
    there = query_free.write_transfer(query_free.Transfer(), runs)
    return lambda *groups: query_free.load_frames(there, *groups), query_free.study_at("paper"), query_free.PUBLISHED


def _none_is_none(read: Callable[..., RunFrames]) -> Callable[..., RunFrames]:
    """A table that asks for no group reads no run, where the world would read all of them."""
    return lambda *groups: read(*groups) if groups else load([], Path(tempfile.gettempdir()), probes=True, packs=True)
