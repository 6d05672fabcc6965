"""Figures and tables at small presets: with every run, or with some missing, diverged, or of one seed."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path

from plumbline.results.figures.figure_style import FigureWithData
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.paper_columns import add_paper_columns
from plumbline.results.tables.table import Table
from plumbline.specs import study_parts
from plumbline.specs.study_config import Study
from tests.studies.key_norms import synthetic_runs as key_norms
from tests.studies.made_targets import declaration, draw, make_table, use_small_head
from tests.studies.premature import synthetic_runs as premature
from tests.studies.quack import synthetic_runs as quack
from tests.studies.query_free import synthetic_runs as query_free
from tests.studies.transfer import synthetic_runs as transfer

PUBLISHED = {
    module.__name__.split(".")[2]: module.PUBLISHED for module in (key_norms, premature, quack, query_free, transfer)
}

#: Name -> preset, and whether runs are missing.
SHAPES = {"paper": ("paper", False), "demo": ("demo", False), "smoke": ("smoke", False), "gaps": ("demo", True)}


def draw_shape(study: str, name: str, shape: str) -> FigureWithData:
    """A figure of a study, at a shape."""
    if shape == "paper":
        return draw(study, name)
    frames, config = _load(study, shape)
    return study_parts.function(study, "figures", name)(frames, config, PUBLISHED[study])


@cache
def make_table_at(study: str, name: str, shape: str) -> Table:
    """A table of a study, at a shape. Read only."""
    if shape == "paper":
        return make_table(study, name)[0]
    frames, config = _load(study, shape)
    with use_small_head():
        table = study_parts.function(study, "tables", name)(frames, config, PUBLISHED[study])
    table.paper = config.paper
    add_paper_columns(table, declaration(study, name), PUBLISHED[study])
    return table


@cache
def _load(study: str, shape: str) -> tuple[RunFrames, Study]:
    preset, gaps = SHAPES[shape]
    root = Path(tempfile.mkdtemp(prefix=f"plumbline-{study}-{shape}-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    return _WRITE[study](root, preset, gaps)


def _write_key_norms(root: Path, preset: str, gaps: bool) -> tuple[RunFrames, Study]:
    world = key_norms.World(root / "whole", preset)
    if gaps:
        arms = {name: arm for name, arm in world.arms.items() if name != "frozen_gains"}
        arms["no_decay"] = replace(arms["no_decay"], outcome="diverged")
        world = key_norms.World(root / "gaps", preset, arms)
    return world.load(), world.study


def _write_premature(root: Path, preset: str, gaps: bool) -> tuple[RunFrames, Study]:
    facts = premature.make_published_facts(preset)
    # Small models lose and gain more than the paper's, and their attention is nearly uniform.
    for key, run in facts.items():
        run.loss += 2.0
        run.loss += 0.3 * (run.loss - 5.3) if "_slow" in key else 0.0
        for (probe, _), curve in run.run_values.items():
            if probe == "entropy":
                curve.update({at: (0.97 + 0.03 * value, null) for at, (value, null) in curve.items()})
    if gaps:
        facts = {key: run for key, run in facts.items() if key.endswith("s42")}
        del facts["premature/base/llama_slow/s42"], facts["premature/base/gpt_rmsnorm/s42"]
        facts["premature/base/gpt_biasless/s42"].outcome = "diverged"
        facts["premature/base/gpt_slow/s42"].outcome = "diverged"
    premature.write_runs(facts, root, preset)
    return premature.load_frames(root, preset=preset), premature.study_at(preset)


def _write_quack(root: Path, preset: str, gaps: bool) -> tuple[RunFrames, Study]:
    facts = quack.right(preset)
    for number, run in enumerate(facts.values()):
        run.loss += 3.0
        run.logits, run.change = (0.02 * number, 0.5 + 0.1 * number), 10.0 ** (-number % 5 - 2)
    if gaps:
        facts = {key: run for number, (key, run) in enumerate(facts.items()) if number % 3 or "default" in key}
        for key, run in facts.items():
            run.outcome = "diverged" if "qk_" in key or "eta_0.03" in key else run.outcome
    world = quack.Written(root, facts, preset)
    return world.load(), world.study


def _write_query_free(root: Path, preset: str, gaps: bool) -> tuple[RunFrames, Study]:
    world = query_free.as_the_document_says()
    world = query_free.with_losses(world, **{name: facts.loss + 4.0 for name, facts in world.items()})
    world = query_free.with_losses(world, wq_identity=6.86, baseline_small_d=7.02)
    if gaps:
        world = query_free.with_losses(world, baseline=6.8)
        del world["baseline_small_mlp"]
        for name in ("wq_identity", "baseline_small_d"):
            world[name] = query_free.Facts(loss=world[name].loss, outcome="diverged")
    query_free.write_runs(world, root, preset)
    if not gaps:
        measured = query_free.Transfer(
            widths=(32, 64, 96), mlp=(0.11, 0.125, 0.14), linear=(0.13, 0.141, 0.152),
            mlp_distance=(0.006, 0.0088, 0.0092), linear_distance=(0.0071, 0.0089, 0.0105),
        )  # fmt: skip
        query_free.write_transfer(measured, root)
    return query_free.load_frames(root, preset=preset), query_free.study_at(preset)


def _write_transfer(root: Path, preset: str, gaps: bool) -> tuple[RunFrames, Study]:
    world = transfer.World(root, preset)
    for number, run in enumerate(world.study.runs.values()):
        spec, loss = run.spec, 6.5 + 0.01 * (number * 7 % 40)
        scale, method, seed, steps = spec.scale, spec.method, spec.init_seed, spec.train.steps
        if "." in spec.method or (gaps and (seed != 42 or number % 4 == 1)):
            continue
        if gaps and number % 4 == 2:
            world.diverged(scale, method, seed, 3, [(1, 2.0), (2, 9.0), (3, float("nan"))])
            continue
        tasks = transfer.tasks_of(0.30 + 0.004 * (number * 11 % 17))
        metrics = transfer.curve(steps, loss, every=max(1, steps // 8))
        world.completed(scale, method, seed, tasks, loss, metrics, "proxy")
    return world.load(), world.study


_WRITE = {
    "key_norms": _write_key_norms,
    "premature": _write_premature,
    "quack": _write_quack,
    "query_free": _write_query_free,
    "transfer": _write_transfer,
}
