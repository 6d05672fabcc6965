"""Builds the pages of a trainer's folder: what was tried, each change with its runs, each run, any runs compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from plumbline.core.formats import format_seconds
from plumbline.project.paths import EXPERIMENTS
from plumbline.report.page_frame import ReportPage
from plumbline.report.page_table import ColumnHead, HtmlCell, PageTable, number_cell, text_cell
from plumbline.report.workbench.change_pages import WORDS, ChangeRuns, build_change_page, write_name
from plumbline.report.workbench.drawn_curves import (
    CurveOfRun,
    DrawnCurves,
    embed_json,
    number_band,
    number_line,
)
from plumbline.report.workbench.made_run import MadeRun
from plumbline.report.workbench.progress_picture import TriesOverTime
from plumbline.report.workbench.tried_changes import TriedChange
from plumbline.verdict.decision.experiment import BASELINE, FINISHED, ArmRun
from plumbline.verdict.formatting import format_value

#: The script that draws, next to the report's own.
SCRIPTS = ("chart.js",)
#: Runs of the baseline whose span lies behind curves, and quantities that the page of a change draws.
BEHIND, DRAWN = 12, 2


@dataclass(kw_only=True)
class Workbench:
    """What the pages of a folder show.

    Attributes:
        title: the folder's name.
        changes: all that was decided, the newest last; `unreadable`: pages of others that cannot be read, and why.
        runs: every run by its id, in the order in which they were made.
    """

    title: str
    changes: Sequence[TriedChange]
    unreadable: Sequence[str] = ()
    runs: dict[str, MadeRun] = field(default_factory=dict)

    def build_pages(self) -> list[ReportPage]:
        """Build every page, the first one first."""
        pages = [self._build_index()]
        pages += [build_change_page(each.path, EXPERIMENTS, self.show_runs(at)) for at, each in enumerate(self.changes)]
        if self.runs:
            pages += [self._build_runs(), self.build_comparison(), *map(self._build_run, self.runs.values())]
        return pages

    @cached_property
    def series(self) -> list[list[tuple[int, TriedChange]]]:
        """Changes that may be compared, with their places; the series of the newest first."""
        by_series: dict[tuple[str, ...], list[tuple[int, TriedChange]]] = {}
        for place, change in enumerate(self.changes):
            if change.kind != "budgets":
                by_series.setdefault(change.series, []).append((place, change))
        return sorted(by_series.values(), key=lambda listed: -listed[-1][0])

    def _build_index(self) -> ReportPage:
        return ReportPage(
            path="index.html",
            title=self.title,
            template="workbench.html.j2",
            content={"tried": self.summarize()},
            nav="What was tried",
            scripts=SCRIPTS,
        )

    def summarize(self) -> dict[str, Any]:
        """Gather what a first page shows: what was tried last, all of it over time, and as a table."""
        pictures = []
        for listed in (each for each in self.series if len(each) > 1):
            tries = TriesOverTime([each for _, each in listed], [link_to(each) for _, each in listed])
            pictures.append({"words": tries.describe(), "drawn": tries.lay_out(), "metric": listed[0][1].metric})
        last = self.changes[-1] if self.changes else None
        undecided = [
            made_run for made_run in self.runs.values() if not made_run.changes and made_run.run.arm != BASELINE
        ]
        return {
            "undecided": Counter(made_run.title for made_run in undecided),
            "last": last,
            "link": link_to(last) if last else "",
            "badge": WORDS[last.verdict][1] if last else "",
            "pictures": pictures,
            "grid": build_table(self.changes) if last else None,
            "unreadable": self.unreadable,
        }

    def show_runs(self, place: int) -> ChangeRuns:
        """Gather what the page of a change shows of its runs."""
        change = self.changes[place]
        neighbours = [
            (self.changes[at].title, f"../{link_to(self.changes[at])}") if 0 <= at < len(self.changes) else None
            for at in (place - 1, place + 1)
        ]
        made_runs = [self.runs[run.run_id] for run in change.runs if run.run_id in self.runs]
        run_ids = [run.run.run_id for run in made_runs if run.curves]
        return ChangeRuns(
            grid=self._build_run_table(change),
            charts=self._draw_change(change, made_runs),
            compare=f"../compare.html#show={','.join(run_ids)}" if run_ids else "",
            before=neighbours[0],
            after=neighbours[1],
        )

    def _draw_change(self, change: TriedChange, made_runs: Sequence[MadeRun]) -> list[DrawnCurves]:
        behind = [self.runs[run.run_id] for run in change.baseline_runs if run.run_id in self.runs]
        quantities = list(dict.fromkeys(name for run in made_runs for name in run.curves))[:DRAWN]
        return [
            DrawnCurves(
                quantity=name,
                curves=[
                    CurveOfRun(name=run.label, href=f"../{run.page}", points=run.curves[name])
                    for run in made_runs
                    if name in run.curves
                ],
                baseline=change.baseline,
                baseline_curves=[run.curves[name] for run in behind if name in run.curves][-BEHIND:],
            )
            for name in quantities
        ]

    def _build_run_table(self, change: TriedChange) -> PageTable:
        heads = [
            ColumnHead(text="run"),
            ColumnHead(text="arm", wide=True),
            ColumnHead(text=change.metric, numeric=True),
        ]
        heads += [
            ColumnHead(text="outcome"),
            ColumnHead(text="seconds", numeric=True),
            *([ColumnHead(text="why", wide=True)] if any(run.why for run in change.runs) else []),
        ]
        of_change = change.baseline if change.kind == "screen" else change.title  # whose sets have names of their own
        rows = [
            [
                text_cell(f"seed {run.seed}", href=self._link_run(run)),
                text_cell(write_name(run.arm) if change.kind == "screen" and run.arm != BASELINE else arm),
                number_cell(run.value, "" if run.value is None else f"{run.value:.6g}"),
                text_cell("completed" if run.outcome == FINISHED else run.outcome),
                number_cell(run.seconds, "" if run.seconds is None else format_seconds(run.seconds)),
                text_cell(run.why),
            ][: len(heads)]
            for arm, runs in ((of_change, change.runs), (change.baseline, change.baseline_runs))
            for run in _drop_duplicates(runs)
        ]
        return PageTable(id="runs", title="Its runs, and those of the baseline.", heads=heads, rows=rows)

    def _link_run(self, run: ArmRun) -> str:
        return f"../{self.runs[run.run_id].page}" if run.run_id in self.runs else ""

    def _build_runs(self) -> ReportPage:
        heads = [
            ColumnHead(text="run"),
            ColumnHead(text="outcome"),
            ColumnHead(text="value", numeric=True),
            ColumnHead(text="seconds", numeric=True),
            ColumnHead(text="tried in", wide=True),
            ColumnHead(text="when (UTC)"),
        ]
        rows = [self._make_run_row(run) for run in reversed(self.runs.values())]
        grid = PageTable(id="runs", title="Every run, the newest first.", heads=heads, rows=rows)
        content = {"grid": grid, "count": len(self.runs)}
        return ReportPage(
            path="runs.html", title="Runs", template="workbench_runs.html.j2", content=content, nav="Runs"
        )

    def _make_run_row(self, made_run: MadeRun) -> list[HtmlCell]:
        run, last = made_run.run, made_run.changes[-1] if made_run.changes else None
        more = f" and {len(made_run.changes) - 1} more" if len(made_run.changes) > 1 else ""
        return [
            text_cell(made_run.label, href=made_run.page),
            text_cell("completed" if run.outcome == FINISHED else run.outcome),
            number_cell(run.value, "" if run.value is None else f"{run.value:.6g}"),
            number_cell(run.seconds, "" if run.seconds is None else format_seconds(run.seconds)),
            text_cell(f"{last.title}{more}", href=link_to(last)) if last else text_cell("not decided yet"),
            text_cell(made_run.at[:16].replace("T", " ")),
        ]

    def _build_run(self, made_run: MadeRun) -> ReportPage:
        run, result = made_run.run, made_run.result
        facts = [("value", "none" if run.value is None else f"{run.value:.8g}"), ("metric", made_run.metric)]
        facts += [
            ("seed", str(run.seed)),
            ("trainer", made_run.group),
            ("made at", made_run.at),
            ("run id", run.run_id),
        ]
        facts += [("time", format_seconds(run.seconds))] if run.seconds is not None else []
        if result:
            facts += [("machine", ", ".join([result.host, *result.fingerprint.values()]))]
            facts += [(f"last {name}", f"{value:g}") for name, value in result.place.items()]
        facts += [(name, f"{value:.6g}") for name, value in run.others.items()]
        content = {
            "made": made_run,
            "state": "completed" if run.outcome == FINISHED else run.outcome,
            "charts": [
                DrawnCurves(quantity=name, curves=[CurveOfRun(name=made_run.label, href="", points=points)])
                for name, points in made_run.curves.items()
            ],
            "facts": [(name, value) for name, value in facts if value],
            "tried": [
                (each.title, f"../{link_to(each)}", each.word, WORDS[each.verdict][1]) for each in made_run.changes
            ],
            "tail": "\n".join(result.tail) if result else "",
            "remarks": [remark for remark in (*run.remarks, run.why, made_run.unreadable) if remark],
        }
        return ReportPage(
            path=made_run.page, title=made_run.label, template="workbench_run.html.j2", content=content, scripts=SCRIPTS
        )

    def build_comparison(self) -> ReportPage:
        """Build the page that lays any runs over each other."""
        with_curves = [made_run for made_run in self.runs.values() if made_run.curves]
        groups: dict[str, dict[str, Any]] = {}
        for made_run in reversed(with_curves):
            changes = [each for each in made_run.changes if made_run.run.run_id in {run.run_id for run in each.runs}]
            # A screen decides on ideas, and a run has several.
            word = ("screened" if changes[-1].kind == "screen" else changes[-1].word) if changes else ""
            group = groups.setdefault(made_run.title, {"name": made_run.title, "word": word, "runs": []})
            of_run = {
                "id": made_run.run.run_id,
                "name": made_run.label,
                "short": f"seed {made_run.run.seed}",
                "href": made_run.page,
            }
            group["runs"].append(of_run)
        names = list(dict.fromkeys(name for made_run in with_curves for name in made_run.curves))
        newest = self.changes[-1] if self.changes else None
        behind = [self.runs[run.run_id] for run in newest.baseline_runs if run.run_id in self.runs] if newest else []
        quantities = []
        for name in names:
            spanned = [made_run.curves[name] for made_run in behind if name in made_run.curves]
            lines = {
                made_run.run.run_id: number_line(made_run.curves[name])
                for made_run in with_curves
                if name in made_run.curves
            }
            band = number_band(newest.baseline if newest else "", spanned[-BEHIND:])
            quantities.append({"name": name, "lines": lines, "band": band})
        start = [run.run_id for run in newest.runs if run.run_id in self.runs] if newest else []
        data = {"groups": list(groups.values()), "quantities": quantities, "start": start}
        content = {"data": embed_json(data), "count": len(with_curves)}
        return ReportPage(
            path="compare.html",
            title="Compare",
            template="workbench_compare.html.j2",
            content=content,
            nav="Compare",
            scripts=SCRIPTS,
        )


def build_table(changes: Sequence[TriedChange]) -> PageTable:
    """Build the table of what was tried, the newest first; its first columns, which decide, fit on a phone."""
    heads = [
        ColumnHead(text="what was tried", wide=True),
        ColumnHead(text="verdict"),
        ColumnHead(text="gain", numeric=True),
        ColumnHead(text="interval", numeric=True),
        ColumnHead(text="mean", numeric=True),
        ColumnHead(text="runs", numeric=True),
        ColumnHead(text="when (UTC)"),
        ColumnHead(text="#", numeric=True),
    ]
    rows = []
    for place, change in reversed(list(enumerate(changes, start=1))):
        word = f"{change.word}, claim" if change.kind == "claim" else change.word
        size = abs(change.gain or 0.0) / 10 or 1e-3
        ends = [None if end is None else format_value(end, size) for end in (change.gain_low, change.gain_high)]
        interval = f"{ends[0] or 'no limit'} to {ends[1] or 'no limit'}" if any(ends) else ""
        rows.append(
            [
                text_cell(change.title, href=link_to(change)),
                HtmlCell(text=word, sort=word, badges=((WORDS[change.verdict][1], word),)),
                number_cell(change.gain, "" if change.gain is None else f"{change.gain:+.3g}"),
                number_cell(change.gain_low if change.gain_low is not None else change.gain_high, interval),
                number_cell(change.value, "" if change.value is None else f"{change.value:.6g}"),
                number_cell(change.counted_runs or None, str(change.counted_runs)),
                text_cell(change.at[:16].replace("T", " ")),
                number_cell(place, str(place)),
            ]
        )
    return PageTable(id="tried", title="Everything that was tried, the newest first.", heads=heads, rows=rows)


def link_to(change: TriedChange) -> str:
    """Where the page of a change is in the report."""
    return f"{EXPERIMENTS}s/{change.name}.html"


def _drop_duplicates(runs: Sequence[ArmRun]) -> list[ArmRun]:
    return list({(run.run_id, run.seed): run for run in runs}.values())
