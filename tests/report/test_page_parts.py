"""Judgements, curves and Markdown of the report, each by itself; and what a plan states about it."""

from __future__ import annotations

import dataclasses
import json
import math
import re
import shutil
import sys
from pathlib import Path

import pytest

from plumbline.core.errors import PlumblineError
from plumbline.report import __main__ as verb
from plumbline.report import agreement_with_print, claims_page, markdown_page, run_comparison, study_front
from plumbline.report.page_frame import PresetWarning
from plumbline.report.page_table import split_badges
from plumbline.report.report_site import ReportSite
from plumbline.report.results_on_disk import ResultsOnDisk
from plumbline.report.run_curve import POINTS, TrainingCurveLine, TrainingCurvePicture, thin_points
from plumbline.report.run_page import build_page
from plumbline.specs import code_hash, study_config
from plumbline.specs.yaml_files import PRESETS, load_study, studies
from plumbline.stats.power import compute_resolvable_distance
from tests.report.broken_projects import planned
from tests.studies.transfer.synthetic_runs import World, tasks_of

SPREAD, EDGE = agreement_with_print.SeedSpread(0.01, 2), compute_resolvable_distance(0.01, 3)


@pytest.mark.parametrize(
    ("ours", "printed", "how", "mark"),
    [
        (str(0.5 + 0.99 * EDGE), "0.5", {"trained": True, "spread": SPREAD, "seeds": 3}, agreement_with_print.WITHIN),
        (str(0.5 + 1.01 * EDGE), "0.5", {"trained": True, "spread": SPREAD, "seeds": 3}, agreement_with_print.BEYOND),
        (str(0.5 + 1.2 * EDGE), "0.5", {"trained": True, "spread": SPREAD, "seeds": 1}, agreement_with_print.WITHIN),
        ("0.9", "0.5", {"trained": True}, agreement_with_print.UNKNOWN),
        ("0.1234999999", "0.123", {"trained": False}, agreement_with_print.SAME),
        ("0.1236", "0.123", {"trained": False}, agreement_with_print.OTHER),
        ("1230", "1.23e3", {"trained": False}, agreement_with_print.SAME),
        (
            "0.5266",
            "0.53",
            {"trained": True, "spread": agreement_with_print.SeedSpread(0.0005, 2), "seeds": 3},
            agreement_with_print.WITHIN,
        ),
        ("soft", "hard", {"trained": False}, agreement_with_print.OTHER),
        ("", "0.5", {"trained": True}, None),
        ("0.5", "", {"trained": True}, None),
        ("no label", "not printed", {"trained": False}, None),
    ],
)
def test_what_lies_within_noise(ours: str, printed: str, how: dict, mark: agreement_with_print.CellMark | None) -> None:
    assert agreement_with_print.judge_cell(ours, printed, "paper", **how) is mark
    judged_elsewhere = agreement_with_print.judge_cell(ours, printed, "demo", **how)
    stays = mark in (None, agreement_with_print.SAME)
    assert judged_elsewhere is (mark if stays else agreement_with_print.ELSEWHERE), (
        "no demo is a reproduction, nor a contradiction"
    )


def test_runs_on_other_texts_are_not_judged() -> None:
    def judge(printed: str, **options) -> agreement_with_print.CellMark | None:
        return agreement_with_print.judge_cell("0.5", printed, "paper", texts=False, **options)

    assert judge("0.9", trained=True, spread=SPREAD, seeds=3) is agreement_with_print.TEXTS
    assert judge("0.9", trained=False) is agreement_with_print.OTHER
    assert judge("0.5", trained=False) is agreement_with_print.SAME


def test_spreads_together_weigh_by_their_seeds() -> None:
    both = agreement_with_print.SeedSpread.pool(
        [agreement_with_print.SeedSpread(0.01, 2), agreement_with_print.SeedSpread(0.03, 4)]
    )
    assert both is not None and both.freedom == 6 and both.sigma == pytest.approx(math.sqrt((2 + 4 * 9) / 6) / 100)
    assert agreement_with_print.SeedSpread.pool([]) is None


def test_a_long_curve_is_small_and_keeps_its_spike_and_its_gap() -> None:
    points = [(float(step), 2.0 + 0.1 * math.sin(step)) for step in range(44_000)]
    points[30_001] = (30_001.0, 90.0)
    points[41_000] = (41_000.0, math.nan)
    thin = thin_points(points)
    assert len(thin) <= POINTS + POINTS // 2 and thin[0] == points[0] and thin[-1] == points[-1]
    assert points[30_001] in thin and any(math.isnan(value) for _, value in thin)
    lines = [TrainingCurveLine(name="train", points=points)]
    svg = TrainingCurvePicture(title="Loss <b>", lines=lines, steps=44_000, description='it "fell"', ended=41_000).svg()
    assert svg.count("M") >= 2 and len(svg) < 12_000 and "<b>" not in svg and 'class="ended"' in svg
    assert (
        TrainingCurvePicture(
            title="Loss", lines=[TrainingCurveLine(name="train", points=[(0, math.nan)])], steps=9, description=""
        ).svg()
        == ""
    )


def test_markdown_becomes_no_more_than_text_headings_and_tables() -> None:
    html = markdown_page.to_html(
        "# Gone\n\n## Two & <i>\n\n## Two, I\n\n<b>x</b> ![p](http://a/b.png) [here](other.md) [out](https://a.b)\n\n|a|\n|-|\n|b|\n"
    )
    assert "Gone" not in html and '<h3 id="part-two-i">Two &amp; &lt;i&gt;</h3>' in html
    assert 'id="part-two-i--2"' in html, "an id of its own"
    assert "<b>" not in html and "<img" not in html and "other.md" not in html and 'href="https://a.b"' in html
    assert html.count('<div class="box"') == 1 == html.count("</table></div>")


def test_numbers_stand_on_the_right_and_sentences_are_wrapped_on_the_left() -> None:
    sentence = "The runs of each arm end at one step, which is 400."
    html = markdown_page.to_html(
        f"| check | answer | p | says |\n|:--|--:|--:|--:|\n| a | holds | -0.3 | {sentence} |\n| b | holds | none | |\n"
    )
    cells = {text: look for look, text in re.findall(r"<t[hd](?: class=\"(\w+)\")?>(.+?)</t[hd]>", html)}
    assert cells == dict.fromkeys(["check", "a", "b", "answer", "holds"], "") | dict.fromkeys(
        ["p", "-0.3", "none"], "end"
    ) | {"says": "wide", sentence: "wide"}


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("welch_t_softpick", ["welch_", "t_", "softpick"]),
        ("transfer/base/s42", ["transfer/", "base/", "s42"]),
        ("table2.base", ["table2.", "base"]),
        ("0.4922", ["0.4922"]),
        ("quack/eta_0.03", ["quack/", "eta_", "0.03"]),
        ("a / b", ["a / b"]),
    ],
)
def test_a_name_is_broken_between_its_words_and_a_number_nowhere(text: str, parts: list[str]) -> None:
    breakable = ReportSite(folder=Path()).environment.filters["breakable"]
    assert breakable(text).split("<wbr>") == parts


def test_a_curve_that_is_compared_keeps_its_spike_and_its_gap() -> None:
    rows: list[tuple[int, float | None, float | None]] = [(step, 2.0, 0.5) for step in range(1, 1001)]
    rows[502], rows[700] = (503, 2.0, 90.0), (701, None, math.nan)
    steps, losses, norms = run_comparison.bin_rows(rows)
    assert len(steps) == run_comparison.POINTS == len(losses) == len(norms) and steps[-1] == 1000
    assert max(norm for norm in norms if norm) == 90.0 and losses[140] is None is norms[140], "no mean over a gap"
    assert sum(loss is None for loss in losses) == 1
    assert run_comparison.bin_rows(rows[:3]) == ([1, 2, 3], [2.0, 2.0, 2.0], [0.5, 0.5, 0.5])


def test_every_preset_is_named_and_every_figure_has_a_title() -> None:
    for preset in PRESETS:
        banner = PresetWarning.of(preset, {"transfer": ""})
        assert banner.sentence and banner.short.startswith(preset) and banner.loud == (preset != "paper")
    read = {study: study_front.read_readme(study_config.load(study, "demo")) for study in studies()}
    for name, readme in read.items():
        assert readme.findings and "findings.yaml" not in markdown_page.to_html(readme.findings), name
        targets = load_study(name)["targets"]
        assert [key for key, entry in targets.items() if entry["kind"] == "figure" and key not in readme.targets] == []
    assert read["transfer"].title("fig3") == "Differences by task" and read["quack"].title("own_one") == "Own one"


@pytest.mark.parametrize(
    ("text", "count", "parts"),
    [
        ("losses; norms", 2, ["losses", "norms"]),
        ("losses, norms, tasks", 3, ["losses", "norms", "tasks"]),
        ("entropy, and norms", 2, ["entropy", "norms"]),
        ("how often, by simulation", 2, ["how often, by simulation"] * 2),
        ("losses, by seed", 1, ["losses, by seed"]),
    ],
)
def test_a_row_of_several_targets_is_parted_where_it_says_so(text: str, count: int, parts: list[str]) -> None:
    assert study_front.split_parts(text, count) == parts


def test_a_claim_that_was_not_judged_is_said_so() -> None:
    for reason in ("smoke size", "demo size", "evening size", "mini size"):
        assert claims_page.format_verdict(f"here: 3 not judged ({reason}), 1 partly") == (
            "here: 3 not judged at this size, 1 partly"
        )
    assert [text for _, text in split_badges(claims_page.format_verdict("not judged (other texts)"))] == [
        "not judged on other texts"
    ]


def test_a_report_of_nothing_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A verdict alone, or one run, is something; the workflow, which gives a fingerprint, is not asked."""
    smoke = planned("smoke", "transfer")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(verb, "load", lambda config: smoke)
    monkeypatch.setattr(sys, "argv", ["plumbline report"])
    with pytest.raises(PlumblineError, match=r"plumbline.toml .*setup-trainer.*audit --from.*plumbline init"):
        verb.main()  # in an empty folder a command of a project would not work
    Path("results").mkdir()
    with pytest.raises(PlumblineError, match=r"report at preset smoke: .*transfer/table1.csv"):
        verb.main()
    page = Path("results/smoke/experiment/softpick.md")
    page.parent.mkdir(parents=True)
    page.write_text("# softpick\n\nsoftpick is kept.\n")
    page.with_suffix(".svg").write_text("<svg/>")
    verb.main()
    page.unlink()
    run = smoke.runs["transfer/base/softpick/s42"]
    outcome = Path(smoke.paths.run(run, "outcome.json"))
    outcome.parent.mkdir(parents=True)
    outcome.write_text(json.dumps({"run_id": run.spec.run_id, "outcome": "completed"}))
    ResultsOnDisk(project=smoke).require_something()


def test_a_rebuilt_folder_of_other_code_names_its_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(config: dict) -> None:
        raise PlumblineError("config/config.yaml: top level: unknown key 'trial'")

    monkeypatch.setattr(verb, "load", refuse)
    monkeypatch.setattr(verb, "ROOT", tmp_path)
    monkeypatch.setattr(sys, "argv", ["plumbline report"])
    with pytest.raises(PlumblineError, match=r"unknown key 'trial'$"):
        verb.main()
    info = {"format": 2, "commit": "ab" * 20, "products": []}
    (tmp_path / "plumbline.json").write_text(json.dumps(info))
    with pytest.raises(PlumblineError, match=f"'trial'; this folder was rebuilt from a bundle.* {'ab' * 20} &&"):
        verb.main()


def test_a_plan_knows_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is made of every product, and made anew when a template changes; nothing else answers for its name."""
    smoke = planned("smoke", "transfer")
    files = smoke.report_files()
    assert "results/smoke/transfer/table2.csv" in files and "results/smoke/audit.csv" in files
    assert not any("report" in path for path in smoke.targets.list_all_products()), "no part of `all`"
    for path in ("report/index.html", "smoke/report/index.html"):
        assert not re.fullmatch(smoke.unknown_paths.results(), path)
    assert re.fullmatch(smoke.unknown_paths.results(), "smoke/report/other.html")
    before = smoke.fingerprints.report()
    package = tmp_path / "plumbline"
    shutil.copytree(code_hash.PACKAGE / "report", package / "report")
    with open(package / "report/templates/run.html.j2", "a") as handle:
        handle.write("more")
    monkeypatch.setattr(code_hash, "PACKAGE", package)
    assert smoke.fingerprints.report() != before


@pytest.mark.parametrize("names", [["thesis.tex"], ["index.html", "report.css", "report.js"]])
def test_a_folder_that_is_no_report_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: list[str]
) -> None:
    for name in names:
        (tmp_path / name).write_text("mine")
    for name, text in (
        ("index", rf"holds something else \({names[0]}\), and would"),
        ("page", r"name FOLDER/index\.html"),
    ):
        monkeypatch.setattr(sys, "argv", ["report", "--preset", "smoke", "--out", str(tmp_path / f"{name}.html")])
        with pytest.raises(PlumblineError, match=text):
            verb.main()
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == dict.fromkeys(names, "mine")


def test_a_run_that_two_studies_score_shows_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    project, world, key = planned("demo", "transfer"), World(Path("work/demo"), "demo"), "transfer/base/baseline/s42"
    world.completed("base", "baseline", 42, tasks_of(0.3), 5.0)
    again = dataclasses.replace(project.runs[key], scored_by=("other", "premature7"))
    other = dataclasses.replace(project.studies["transfer"], name="other", runs={key: again})
    project = dataclasses.replace(project, studies=project.studies | {"other": other})
    disk = ResultsOnDisk(project=project)
    assert [grid.title for grid in build_page(disk, disk.run(key), []).content["scores"]] == [
        "Scores on the suite climb12, by which the study transfer judges the run."
    ]
    shutil.copytree(f"work/demo/scores/{key}", "work/demo/scores/other/base/baseline/s42")
    both = build_page(disk, disk.run(key), []).content["scores"]
    assert [grid.title.split(",")[0] for grid in both] == [
        "Scores on the suite climb12",
        "Scores on the suite premature7",
    ]
