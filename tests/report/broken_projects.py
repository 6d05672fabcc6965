"""Projects in which things went wrong: claims fail, runs diverge or are not there, and texts are hostile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from plumbline.project import Project, load
from plumbline.report import write_report
from plumbline.results.claims import claim_verdicts
from plumbline.results.tables import write_table
from plumbline.results.tables.paper_columns import add_paper_columns
from plumbline.results.tables.table import Cell, Column, Table
from plumbline.specs.yaml_files import load_config
from plumbline.studies.transfer.claims import CHECKS, Evidence
from plumbline.studies.transfer.tables.table1 import table1
from plumbline.studies.transfer.tables.table2 import table2
from tests.hostile_texts import HOSTILE, MARKUP
from tests.studies.transfer.synthetic_results import PUBLISHED, Facts, history, hold_frames, right, tasks_of
from tests.studies.transfer.synthetic_runs import World

#: The methods of which there is a run at all, and how many claims are judged: few, for both take their time.
METHODS, CLAIMS = ("baseline", "softpick", "qknorm", "ssmax", "sigmoid_attn"), 24
GROUPS = ("base", "noise_floor")


def make_groups(name: str = "table4", texts: Sequence[str] = ()) -> Table:
    """A table of groups of rows, each named once; `texts`: more of them."""
    columns = [
        Column(name="row", header="row", kind="label", readable=False),
        Column(name="label", header="Result", kind="label", once=True),
        Column(name="without", header="without", kind="label"),
        Column(name="residual", header=f"residual, as a share {HOSTILE}", kind="reproduced", format=".1f"),
    ]
    rows = [
        {"row": Cell(f"{label} {without}"), "label": Cell(label), "without": Cell(without), "residual": Cell(value)}
        for label, without, value in (
            ("first", "", 0.0), ("first", "norms", 5.0), ("first", "skips", 2.0), ("second", "", 1.0),
            ("second", "norms", 4.0), *((text, text, 0.0) for text in texts),
        )
    ]  # fmt: skip
    return Table(
        name=name,
        title=f"Groups. {HOSTILE}",
        study="transfer",
        preset="paper",
        key="row",
        columns=columns,
        rows=rows,
    )


#: What a run's trainer states about the memory that it took; runs of older ones state nothing.
MEMORY = {"device": "cpu", "peak_memory_bytes": 514_390_016, "peak_memory_of": "resident, beside its packages"}


def wrong() -> Facts:
    """The paper's world, but: softpick loses its gain, and a seed of QK-Norm diverges."""
    facts = right()
    for seed in (42, 43, 44):
        facts["base", "softpick", seed] = replace(facts["base", "softpick", seed], tasks=tasks_of(0.41 + seed / 1e4))
    facts["base", "qknorm", 44] = replace(right()["large", "ssmax", 42], diverged=5800, norms=history("rise", 5800))
    return facts


def planned(preset: str, *studies: str, source: str = "corpus") -> Project:
    """A plan of these studies, with texts of a source."""
    return load(load_config() | {"preset": preset, "studies": list(studies), "data": {"source": source}})


def broken_project(root: Path) -> Project:
    """The transfer study at paper size where `wrong` is the case, and the query-free one of which nothing is made. To
    be called, and its plan used, with `root` as the working directory."""
    world, facts = World(Path("work/paper"), "paper"), wrong()
    for (scale, method, seed), run in facts.items():
        if scale != "base" or method not in METHODS:
            continue
        if run.diverged is not None:
            world.diverged(scale, method, seed, run.diverged, run.norms)
        else:
            steps = world.study.runs[world.study.key(scale, method, seed)].spec.train.steps
            memory = MEMORY if method == "softpick" else None
            world.completed(scale, method, seed, run.tasks, run.loss, run.metrics(steps), probed=run, made_on=memory)
    results, frames = Path("results/paper/transfer"), world.load(*GROUPS)
    for name, make in (("table2", table2), ("table1", table1)):
        table = make(frames, world.study, PUBLISHED)
        add_paper_columns(table, world.study.definition["targets"][name]["printed"], PUBLISHED)
        write_table.write(table, frames, results / f"{name}.csv")
    for groups in (make_groups(), make_groups("table7", MARKUP)):
        write_table.write(groups, frames, results / f"{groups.name}.csv")
    claims = PUBLISHED.claims()[:CLAIMS]
    checks = {claim.id: CHECKS[claim.id] for claim in claims if claim.id in CHECKS}
    rows = claim_verdicts.judge_claims(claims, checks, Evidence(hold_frames(facts), world.study, PUBLISHED))
    (results / "claims.csv").write_text(claim_verdicts.to_csv(rows))
    (results / "interpretations.md").write_text(
        f"# Interpretations\n\n## Interpretations that apply\n\n### heads\n\n{HOSTILE} [page](other.md)\n"
    )
    for ending in (".png", ".svg", ".csv"):
        (results / f"fig2{ending}").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    verdicts = results.parent / "verdict"
    verdicts.mkdir()
    head = "# Verdict on `mine`\n\n`mine` is not decided.\n\n![a picture](mine.svg)"
    (verdicts / "mine.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg' width='700' height='90'/>")
    tried = verdicts.with_name("experiment")
    tried.mkdir()
    (tried / "softpick.md").write_text("# softpick\n\nsoftpick is kept.\n\n![x](softpick.svg)\n")
    (tried / "softpick.svg").write_text("<svg/>")
    (verdicts / "mine.md").write_text(f"{head}\n\n{HOSTILE}\n\n| a | b |\n|---|--:|\n| x | 1 |\n")
    log = Path("logs/paper/pretrain/transfer.base.qknorm.s44.log")
    log.parent.mkdir(parents=True)
    log.write_text(f"\x1b[31mstep 1\x1b[0m\rstep 2\n{HOSTILE}\n")
    return planned("paper", "transfer", "query_free")


def report(project: Project) -> Path:
    """Its report's folder."""
    out = Path(project.paths.report)
    write_report.build_report(project, out)
    return out.parent.resolve()
