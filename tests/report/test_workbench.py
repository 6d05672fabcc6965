"""The workbench of a trainer's folder: what its pages say, where they lead, and that no name becomes a part of them."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from html import unescape
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

import pytest

from plumbline.core.csv_text import write_rows
from plumbline.core.errors import visible
from plumbline.operate.experiments import setup_trainer
from plumbline.report import __main__ as report
from plumbline.report.report_site import list_foreign
from plumbline.report.results_on_disk import ResultsOnDisk
from plumbline.report.workbench import write_workbench
from plumbline.report.workbench.change_pages import shorten_names, write_name
from plumbline.report.workbench.collected_pages import collect_pages
from plumbline.report.workbench.printed_curves import POINTS, average_points, read_curves, span_curves
from plumbline.report.workbench.progress_picture import LuckBand, TriesOverTime, _draw_band
from plumbline.report.workbench.study_runs import gather_study_runs
from plumbline.report.workbench.tried_changes import TriedChange
from plumbline.report.workbench.workbench_pages import Workbench
from plumbline.specs.yaml_files import ROOT
from plumbline.verdict.board import __main__ as board
from plumbline.verdict.decision.experiment import ArmRun
from plumbline.verdict.outcome import Outcome
from tests import run_in_process, warm_runs
from tests.hostile_texts import FORMULAS, HOSTILE, MARKUP, NO_FORMULAS
from tests.operate.experiments.trainer_folder import change, git, plumbline, repository_of
from tests.report.broken_projects import planned
from tests.report.headless_browser import Browser
from tests.report.page_checks import check_in_browser, check_page
from tests.report.test_pages import Read

TRAINER = """\
import random, sys
flags = {"--seed": 0, "--worse": 0} | dict(zip(sys.argv[1::2], sys.argv[2::2]))
open("data/input.txt").read()
GAIN = 0.0
BROKEN = False
value = 3 + float(flags["--worse"]) - GAIN + random.Random(int(flags["--seed"])).gauss(0, 0.01)
for step in range(0, 50, 5):
    print(f"step {step}/50 | train loss {value + 1 / (step + 1):.6f}")
    if BROKEN:
        raise RuntimeError("</pre><script>hostile=3</script>")
print(f"val_loss: {value:.6f}")
"""
#: Keeps what a button gives the person to keep, and gives nobody anything.
KEEP_BLOBS = """
var blobs = []; HTMLAnchorElement.prototype.click = () => {};
URL.createObjectURL = blob => { blobs.push(blob); return "about:blank"; };
"""
#: The folder, as a person of bad will calls it.
FOLDER = "own <i>&"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder in which one change was kept, one discarded, one crashed. Read only."""
    with pytest.MonkeyPatch.context() as patch, warm_runs.start_warm():
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        own = repository_of(tmp_path_factory.mktemp("trainer") / FOLDER, TRAINER)
        run_in_process.run(setup_trainer.main, "python train.py", cwd=own)
        change(own)
        assert plumbline(own, "try", "-m", HOSTILE, "--commit").returncode == 0
        assert plumbline(own, "try", "-m", "worse", "--", "--worse", "1").returncode == 10
        change(own, "BROKEN = True", "BROKEN = False")
        assert plumbline(own, "try", "-m", "broken").returncode == 12
        git(own, "restore", "train.py")
        assert run_in_process.run(report.main, cwd=own).returncode == 0
        yield own


@pytest.fixture(scope="module")
def pages(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workbench, carried to another place."""
    return shutil.copytree(folder / ".plumbline/report", tmp_path_factory.mktemp("elsewhere") / "bench")


@pytest.fixture(scope="module")
def read(pages: Path) -> dict[str, Read]:
    return {path.relative_to(pages).as_posix(): Read(path) for path in sorted(pages.rglob("*.html"))}


def test_what_was_tried_last_stands_first_with_its_sentence(read: dict[str, Read], folder: Path) -> None:
    first = read["index.html"].text
    sentence = json.loads((folder / ".plumbline/decisions.jsonl").read_text().splitlines()[-1])["sentence"]
    places = [first.index(part) for part in ("Tried last", ">broken<", "crashed", "<svg", 'id="tried"')]
    assert places == sorted(places) and sentence.replace("`", "").split(":")[0] in first[: places[3]]


def test_every_try_is_a_mark_that_leads_to_its_page(read: dict[str, Read]) -> None:
    picture = re.search(r"<svg class=\"curve progress.*?</svg>", read["index.html"].text, flags=re.S)
    assert picture is not None
    marks = re.findall(r'<a href="(experiments/[^"]+)"[^>]*class="try (\w+)[^"]*"><title>(.*?)</title>', picture[0])
    assert [kind for _, kind, _ in marks] == ["kept", "discarded", "crashed"]
    assert marks[0][2].startswith("&lt;/title&gt;") and "worse: discarded; mean of" in marks[1][2]
    assert all(page in read for page, _, _ in marks)
    assert {"band", "line level", "line best"} <= set(re.findall(r'<path class="([^"]+)"', picture[0]))
    assert "1 kept" in read["index.html"].text and "of these 1 kept" in read["index.html"].text


def test_every_link_leads_somewhere_in_the_folder(pages: Path, read: dict[str, Read]) -> None:
    runs = json.loads(read["compare.html"].text.partition('id="overlay">')[2].partition("<")[0])
    ids = {run["id"] for group in runs["groups"] for run in group["runs"]}
    for name, page in read.items():
        assert len(set(page.ids)) == len(page.ids), name
        for link in page.links:
            path, _, fragment = unquote(link).partition("#")
            target = ((pages / name).parent / path if path else pages / name).resolve()
            assert link == "data:," or (target.is_relative_to(pages.resolve()) and target.is_file()), (name, link)
            if fragment.startswith("show="):
                assert target.name == "compare.html" and set(fragment[5:].split(",")) & ids, (name, link)
            elif fragment:
                assert fragment in read[target.relative_to(pages.resolve()).as_posix()].ids, (name, link)


def test_a_try_and_its_runs_lead_to_each_other(read: dict[str, Read]) -> None:
    (page,) = [name for name in read if name.startswith("experiments/worse")]
    runs = {link for link in read[page].links if link.startswith("../runs/")}
    assert runs and all(f"../{page}" in read[run.removeprefix("../")].links for run in runs)
    assert runs <= {f"../{link}" for link in read["runs.html"].links}


def test_curves_lie_over_the_baselines_without_a_script_too(read: dict[str, Read]) -> None:
    (page,) = [name for name in read if name.startswith("experiments/worse")]
    (figure,) = re.findall(r'<figure class="drawn chart">.*?</figure>', read[page].text, flags=re.S)
    assert 'class="band"' in figure and 'class="line c0"' in figure and 'class="grid"' in figure
    numbers = json.loads(figure.partition('type="application/json">')[2].partition("<")[0])
    assert numbers["y"] == "train_loss" and len(numbers["lines"]) == len(set(re.findall(r'class="line c\d', figure)))
    assert numbers["lines"][0]["steps"] == numbers["band"]["steps"] == list(range(0, 50, 5))
    assert all(low < high for low, high in zip(numbers["band"]["low"], numbers["band"]["high"]))


def test_names_are_escaped_and_pages_forbid_foreign_scripts(pages: Path, read: dict[str, Read]) -> None:
    for name, page in read.items():
        check_page(pages / name)
        assert {script and script.rpartition("/")[2] for script in page.scripts} <= {"report.js", "chart.js", None}
        assert "<i>" not in page.text, name
    assert "&lt;i&gt;&amp;" in read["index.html"].text and any("hostile=3" in page.text for page in read.values())


@pytest.mark.parametrize("what", [".json", ".md"])
def test_an_unreadable_page_is_named_and_others_are_there(folder: Path, tmp_path: Path, what: str) -> None:
    own = shutil.copytree(folder, tmp_path / "own")
    (file,) = own.glob(f".plumbline/pages/worse*{what}")
    file.unlink()
    if what == ".json":
        file.write_text("half a fi")
    write_workbench.write_workbench(own, tmp_path / "bench/index.html")
    assert not list_foreign(tmp_path / "bench")
    first = (tmp_path / "bench/index.html").read_text()
    assert file.name in first and "broken" in first and first.count('class="try') == 2


def test_who_looks_changes_nothing_and_what_a_run_left_may_be_broken(folder: Path, tmp_path: Path) -> None:
    own = shutil.copytree(folder, tmp_path / "own")
    for name in ("decisions.jsonl", "runs.jsonl"):
        with open(own / ".plumbline" / name, "ab") as log:
            log.write(b'{"half a li')
    results = sorted(own.glob(".plumbline/runs/*.result.json"))[:2]
    results[0].write_text("{}")
    results[1].unlink()
    results[1].mkdir()
    next(own.glob(".plumbline/pages/worse*.md")).write_bytes(b"# \xff\n\nno text")
    before = {path: path.stat().st_mtime_ns for path in own.rglob("*")}
    write_workbench.write_workbench(own, tmp_path / "bench/index.html")
    assert {path: path.stat().st_mtime_ns for path in own.rglob("*")} == before
    for result in results:
        run = result.name.partition(".")[0]
        assert result.name in (tmp_path / f"bench/runs/{run}.html").read_text()


def test_a_folder_in_which_nothing_was_tried_says_the_command(tmp_path: Path) -> None:
    (tmp_path / "plumbline.toml").write_text("")
    process = run_in_process.run(report.main, cwd=tmp_path)
    assert process.returncode == 1 and "plumbline try -m" in process.stderr and not (tmp_path / ".plumbline").exists()
    (tmp_path / ".plumbline").mkdir()
    process = run_in_process.run(report.main, cwd=tmp_path)
    assert process.returncode == 0, process.stderr
    assert "plumbline try -m" in (tmp_path / ".plumbline/report/index.html").read_text()


def test_a_report_in_a_folder_that_cannot_be_written_names_another_place(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = folder / ".plumbline"
    monkeypatch.setattr(os, "access", lambda path, mode: path != locked.resolve())
    for words in ([folder], [folder, "--watch"]):
        process = run_in_process.run(report.main, *words, cwd=tmp_path)
        assert process.returncode == 1 and str(locked) in process.stderr and "--out FOLDER/index.html" in process.stderr
    assert run_in_process.run(report.main, folder, "--out", tmp_path / "r/index.html", cwd=tmp_path).returncode == 0


def test_a_folder_of_audits_and_verdicts_lists_their_pages(folder: Path, tmp_path: Path) -> None:
    papers = tmp_path / "papers"
    for name in ("first", "second"):
        (papers / name / "audit").mkdir(parents=True)
        row = f"{name},row1,follows,,a sum,{HOSTILE.replace(',', ' ')!r},,,3,4,,,,,mismatch,\n"
        head = "study,id,evidence_kind,finding,quantity,source,formula,inputs,printed,recomputed,recomputed_kind,"
        (papers / name / "audit/audit.csv").write_text(
            f"{head}recomputed_low,recomputed_high,refuses,verdict,explanation\n{row}"
        )
        (papers / name / "audit/audit.html").write_text("the tables as printed")
    shutil.copytree(folder / ".plumbline/pages", papers / "tries/pages")
    shutil.copy(folder / ".plumbline/decisions.jsonl", papers / "tries")
    for words, here in (((papers,), tmp_path), ((), papers)):  # its own pages are none of what it lists
        assert run_in_process.run(report.main, *words, cwd=here).returncode == 0
        written = {
            path.relative_to(papers / "report").as_posix(): Read(path) for path in papers.rglob("report/*/*.html")
        }
        first = Read(papers / "report/index.html")
        listed = [link for link in first.links if link.startswith(("audits/", "verdicts/"))]
        assert sorted(listed) == sorted(name for name in written if not name.startswith("files/")) and len(listed) == 5
        assert "mismatch" in first.text and "1 mismatch" in written[listed[0]].text
        (copy,) = [link for link in written[listed[0]].links if link.endswith(".html") and "files/" in link][:1]
        assert (papers / "report/audits" / copy).read_text().endswith("the tables as printed")
        for page in papers.glob("report/*/*.html"):
            check_page(page)


def test_what_cannot_be_read_beside_an_audit_is_named(tmp_path: Path) -> None:
    (tmp_path / "audit.csv").write_text("study,verdict\n")
    (tmp_path / "record.json").write_text("half a fi")
    (tmp_path / "board").mkdir()
    (tmp_path / "board/board.json").write_text("{}")
    others = {
        "of others": b"name,verdict\na,match\n",
        "cut": b"id,stu\n1,",
        "binary": b"\0\xff",
        "long": b"a\n" + b"a" * 200_000,
    }
    for name, content in others.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "audit.csv").write_bytes(content)
    assert collect_pages(tmp_path).pages[0].content["left_out"] == [
        "record.json cannot be read as a record or a verdict.",
        "board/board.json cannot be read as a board.",
        *(f"{name}/audit.csv cannot be read as an audit." for name in sorted(others)),
    ]


def test_a_folder_of_records_shows_what_its_board_does(folder: Path, tmp_path: Path) -> None:
    records = tmp_path / "records"
    shutil.copytree(folder / ".plumbline/pages", records / "pages")
    shutil.copy(folder / ".plumbline/decisions.jsonl", records)
    assert run_in_process.run(board.main, ".", "--out", "board", cwd=records).returncode == 0
    for _ in range(2):  # its own board is none of what it lists
        assert run_in_process.run(report.main, records, cwd=tmp_path).returncode == 0
        first = Read(records / "report/index.html")
        numbers = json.loads((records / "board/board.json").read_text())
        own = json.loads((records / "report/board.json").read_text())
        assert [each["lines"] for each in own["records"]] == [each["lines"] for each in numbers["records"]]
        assert f"{numbers['tiers']['claimed']} claimed, 0 logs checked, 0 run again" in first.text
        for line in (line for record in numbers["records"] for line in record["lines"]):
            assert visible(line.replace("`", "").replace("**", "")) in unescape(first.text)
        (copy,) = {link for link in first.links if link.startswith("files/boards/")}
        back = f'<nav><a href="../../../index.html">← {records.name}</a></nav>'
        assert (records / "report" / copy).read_text().replace(back, "") == (records / "board/index.html").read_text()
        assert "../../../index.html" in Read(records / "report" / copy).links
        assert {"board.json", "card.svg"} < set(first.links) and (records / "report/card.svg").is_file()


def test_a_try_is_listed_once_though_its_own_report_has_a_copy(folder: Path, tmp_path: Path) -> None:
    own = shutil.copytree(folder, tmp_path / "deep/own")
    entries = [json.loads(line) for line in own.joinpath(".plumbline/decisions.jsonl").read_text().splitlines()]
    rows = collect_pages(tmp_path).board.rows
    assert len(rows) == sum("verdict" in entry for entry in entries) == 3
    assert all(".plumbline/pages/" in row.page and "does not hold" not in str(row) for row in rows)


def test_watching_writes_again_only_what_is_new(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    own = shutil.copytree(folder, tmp_path / "own")
    ledger, naps = own / ".plumbline/decisions.jsonl", iter(range(4))
    whole = ledger.read_bytes()
    ledger.write_bytes(whole[: whole[:-1].rindex(b"\n") + 1])

    def sleep(seconds: float) -> None:
        nap = next(naps)
        if nap == 1:
            assert "Not decided yet: broken (1 run)" in (tmp_path / "bench/index.html").read_text()
            ledger.write_bytes(whole)
        if nap == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", sleep)
    with pytest.raises(KeyboardInterrupt):
        write_workbench.watch(own, tmp_path / "bench/index.html")
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_the_wheel_alone_shows_a_folder(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "bench/index.html"
    light = [sys.executable, "-m", "tests.cli.without_pipeline_packages", "plumbline", "report", "--out", str(out)]
    environment = {"PYTHONPATH": f"{ROOT}:{ROOT / 'src'}", "PATH": "/usr/bin:/bin"}
    process = subprocess.run(light, cwd=folder, capture_output=True, text=True, env=environment, timeout=120)
    assert process.returncode == 0 and out.exists(), process.stderr


@pytest.mark.parametrize(
    "text, names",
    [
        ("".join(f"step {n}/9: train loss 2.{n}, val loss 2.9\n" for n in (1, 2, 3)), {"val_loss": 3, "train_loss": 3}),
        ("step:125/1750 val_loss:4.5\rstep:250/1750 val_loss:4.1\rstep:375/1750 val_loss:3.9", {"val_loss": 3}),
        ("{'loss': 2.3, 'epoch': 0.1}\n{'loss': 2.2, 'epoch': 0.2}\n{'loss': 2.1, 'epoch': 0.3}", {"loss": 3}),
        ("loss 2.5\nloss 2.25\nloss 2.125", {"loss": 3}),
        ("val_loss: 2.3\nval_loss: nan\nloss: 1e999", {}),
        (f"step {'9' * 400} loss: 2.5\nstep 1 loss: 2.2\nstep 2 loss: 2.1\nstep 3 loss: 1.5", {"loss": 3}),
        ("loss 1.5e308\nloss -1.5e308\nloss 2.5\nloss 2.25\nloss 2.125", {"loss": 3}),
    ],
)  # fmt: skip
def test_curves_are_read_from_what_is_printed(tmp_path: Path, text: str, names: dict[str, int]) -> None:
    log = tmp_path / "seed-1.log"
    log.write_text(text)
    curves = read_curves(log)
    assert {name: len(points) for name, points in curves.items()} == names
    assert list(curves) == list(names), "what is held out comes first"
    assert all(sorted(step for step, _ in points) == [step for step, _ in points] for points in curves.values())
    assert all(math.isfinite(step) for points in curves.values() for step, _ in points)


def test_a_pipe_in_place_of_a_log_is_no_curve(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "seed-1.log")
    assert read_curves(tmp_path / "seed-1.log") == {}


def test_a_long_curve_keeps_its_mean_and_a_span_its_grid() -> None:
    long = [(float(step), float(step % 2)) for step in range(1000)]
    short = average_points(long)
    assert len(short) <= POINTS and short[-1][0] == 999 and {value for _, value in short[:-1]} <= {8 / 17, 9 / 17}
    spans = span_curves([[(0.0, 1.0), (1.0, 2.0)], [(0.0, 3.0), (1.0, 2.0)], [(5.0, 9.0)]])
    assert spans == [(0.0, 1.0, 2.0, 3.0), (1.0, 2.0, 2.0, 2.0)]


def test_an_arm_is_its_runs_and_a_stretch_its_baseline(tmp_path: Path) -> None:
    def make(title: str, *arms: tuple[str, str, float], bank: str = "b", kind: str = "try") -> TriedChange:
        def run(arm: str, key: str, value: float) -> list[ArmRun]:
            return [ArmRun(arm=arm, seed=n, value=value + n / 100, run_id=f"{key}{n}") for n in range(3)]

        runs = [each for arm in arms for each in run(*arm)]
        beside = run("baseline", bank, {"b": 2.0, "c": 3.0}[bank])
        return TriedChange(
            path=tmp_path / f"{title}-{arms[0][1]}.md", title=title, kind=kind, verdict=Outcome.DISCARD, at="",
            sentence="", metric="loss", higher=False, series=("a",), runs=tuple(runs), baseline="baseline",
            baseline_runs=tuple(beside), value=2.0, counted_runs=3, is_in_folder=True,
        )  # fmt: skip

    tried = [
        make("lr", ("lr", "k", 2.5)),
        make("lr", ("lr", "l", 9.5)),  # another change of the same name
        make("screen of 2 ideas", ("one", "m", 1.0), ("one + two", "n", 5.0), kind="screen"),
        make("last", ("last", "o", 2.5), bank="c"),
    ]
    tries = TriesOverTime(tried, ["x"] * 4)
    assert tries.sigma == pytest.approx(0.01)
    assert [(each.first, each.last, round(each.baseline or 0, 2)) for each in tries.stretches] == [
        (1, 3, 2.01),
        (4, 4, 3.01),
    ]


def test_where_nothing_has_a_value_the_picture_has_no_numbers() -> None:
    change = TriedChange(
        path=Path("a.md"), title="a", kind="try", verdict=Outcome.CRASHED, at="", sentence="", metric="loss",
        higher=False, series=("a",),
    )  # fmt: skip
    drawn = TriesOverTime([change, change], ["x"] * 2).lay_out()
    assert drawn["ticks"] == [] and [mark["kind"] for mark in drawn["marks"]] == ["crashed"] * 2


def test_a_name_is_short_seen_and_no_others() -> None:
    long = [write_name("x" * 5000 + end) for end in "ab"]
    assert len(set(long)) == 2 and max(map(len, long)) < 140
    assert write_name("a\tb\n\u202ec") == "a b \\u202ec"
    assert (
        shorten_names(f"`{'x' * 5000}a` and short: kept.", "x" * 5000 + "a", "short") == f"`{long[0]}` and short: kept."
    )


@pytest.mark.parametrize("spread", [0.0, 0.01])
def test_a_keep_moves_the_line_in_a_folder_alone(spread: float) -> None:
    def make(title: str, value: float, verdict: Outcome, *, is_in_folder: bool) -> TriedChange:
        runs = [ArmRun(arm=title, seed=n, value=value + spread * n, run_id=f"{title}{n}") for n in range(2)]
        bank = tuple(ArmRun(arm="b", seed=n, value=2 + spread * n, run_id=f"b{n}") for n in range(3))
        return TriedChange(
            path=Path(f"{title}.md"), title=title, kind="try", verdict=verdict, at="", sentence="", metric="loss",
            higher=False, series=("a",), runs=tuple(runs), baseline="b", baseline_runs=bank, value=value,
            counted_runs=2, is_in_folder=is_in_folder,
        )  # fmt: skip

    for is_in_folder, levels in ((True, 2), (False, 1)):
        tried = [("kept", 1.5, Outcome.KEEP), ("none", 2.0, Outcome.DISCARD), ("last", 1.4, Outcome.KEEP)]
        tries = TriesOverTime([make(*each, is_in_folder=is_in_folder) for each in tried], ["x"] * 3)
        assert len(tries.stretches) == levels and len(set(tries.levels)) == levels
        assert bool(tries.bands) == bool(spread) and tries.lay_out()["marks"][0]["kind"] == "kept"
        assert [each.title for each in tries.beyond] == (["kept", "last"] if spread else [])


def test_a_screen_is_a_square_that_leads_to_its_page_and_its_runs(tmp_path: Path) -> None:
    with warm_runs.start_warm():
        own = repository_of(tmp_path / "own", TRAINER)
        run_in_process.run(setup_trainer.main, "python train.py", cwd=own)
        ideas = [
            f'{name} = {{ flags = "--{name} {value}" }}' for name, value in (("worse", -0.1), ("none", 1), ("other", 1))
        ]
        (own / "ideas.toml").write_text("\n".join(["[ideas]", *ideas, ""]))
        report_of_screen = json.loads(plumbline(own, "screen", "ideas.toml", "--trust", "--json").stdout)
        assert plumbline(own, "try", "-m", "worse", "--", "--worse", "1").returncode == 10
    assert report_of_screen["verdict"] == "keep"
    write_workbench.write_workbench(own, tmp_path / "bench/index.html")
    first = Read(tmp_path / "bench/index.html")
    (mark,) = re.findall(r'<a href="(experiments/[^"]+)"[^>]*class="try kept"><title>(.*?)</a>', first.text, flags=re.S)
    page = Read(tmp_path / "bench" / mark[0])
    assert "screen of 3 ideas: confirmed" in mark[1] and " 1 confirmed" in first.text and " kept." not in first.text
    assert ">confirmed<" in page.text and ">kept<" not in page.text and '<rect class="mark"' in mark[1]
    assert report_of_screen["sentence"].replace("`", "") in " ".join(unescape(page.text).split())
    (interval,) = re.findall(r">([\d.]+ to [\d.]+)<", first.text.partition(mark[0])[2].partition('id="tried"')[2])
    low, high = map(float, interval.split(" to "))
    said = [float(end) for end in re.findall(r"interval ([\d.]+) to ([\d.]+);", report_of_screen["sentence"])[0]]
    assert said == pytest.approx([low, high], abs=6e-4)
    runs = {link for link in page.links if link.startswith("../runs/")}
    lines = (own / ".plumbline/runs.jsonl").read_text().splitlines()
    assert 0 < len(runs) <= len(lines)
    made = page.text.partition('id="runs"')[2].partition("</section>")[0]
    arms = set(re.findall(r'<td class="[^"]*wide[^"]*"[^>]*>(.*?)</td>', made))
    ideas = {idea for arm in arms for idea in arm.split(" + ")}
    assert {"worse", "none", "other", "baseline"} == ideas and len(arms) > 4, arms
    groups = json.loads(Read(tmp_path / "bench/compare.html").text.partition('id="overlay">')[2].partition("<")[0])
    assert {group["word"] for group in groups["groups"]} == {"", "screened", "discarded"}  # the last: the try
    assert all(f"../{mark[0]}" in Read(tmp_path / "bench/experiments" / run).links for run in runs)
    assert runs <= {f"../{link}" for link in Read(tmp_path / "bench/runs.html").links}


def test_the_band_of_luck_is_a_stair_over_a_try_that_crashed() -> None:
    band = [LuckBand(1, 2.0, 1.9), LuckBand(4, 1.95, 1.8), LuckBand(5, 1.9, 1.7)]
    points = [tuple(map(float, point.split())) for point in re.split("[ML]", _draw_band(band, float, float)[:-1])[1:]]
    assert all(x == next_x or y == next_y for (x, y), (next_x, next_y) in pairwise(points))
    assert (3.5, 1.9) in points and (3.5, 2.0) in points and (0.5, 2.0) in points and (5.5, 1.7) in points


def test_runs_of_a_projects_tries_have_their_curves(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    folder = Path("work/paper/runs/transfer/base")
    ids = {
        name: json.loads((folder / name / "outcome.json").read_text())["run_id"]
        for name in ("softpick/s42", "baseline/s43", "baseline/s44")
    }
    own, *others = [ArmRun(arm=name, seed=int(name[-2:]), value=2.0, run_id=key) for name, key in ids.items()]
    gone = ArmRun(arm="softpick", seed=7, value=2.0, run_id="f" * 12)
    change = TriedChange(
        path=Path("softpick.md"), title="softpick", kind="try", verdict=Outcome.KEEP, at="", sentence="", metric="loss",
        higher=False, series=("a",), runs=(own, gone), baseline="baseline", baseline_runs=tuple(others),
    )  # fmt: skip
    results = ResultsOnDisk(project=planned("paper", "transfer"))
    runs = gather_study_runs(results, [change])
    assert {run.page for run in runs.values()} == {f"runs/transfer.base.{name.replace('/', '.')}.html" for name in ids}
    bench = Workbench(title="paper", changes=[change], runs=runs)
    (validation, training) = bench.show_runs(0).charts
    assert (validation.quantity, training.quantity) == ("validation loss", "training loss")
    assert len(validation.curves) == 1 and len(validation.baseline_curves) == 2
    assert bench.build_comparison().content["count"] == 3


class TestBrowser:
    """What a script adds, in a headless Chromium."""

    @pytest.fixture(autouse=True)
    def quiet(self, chromium: Browser, pages: Path) -> Iterator[None]:
        yield
        assert chromium.complaints == []
        assert [url for url in chromium.requests if not url.startswith(("data:", "about:", pages.as_uri()))] == []

    @pytest.mark.parametrize("width", [1280, 390])
    def test_no_page_is_wider_than_the_window(
        self, chromium: Browser, pages: Path, read: dict[str, Read], width: int
    ) -> None:
        chromium.look(width=width)
        for name in read:
            chromium.open(pages / name)
            assert chromium.run("document.documentElement.scrollWidth") <= width, name

    def test_what_decides_of_a_table_is_in_a_phones_window(
        self, chromium: Browser, pages: Path, tmp_path: Path
    ) -> None:
        row = {"study": "one", "id": "a_row.with_a_name.of_many.parts", "verdict": "within rounding"}
        row |= {
            "printed": "123.456",
            "recomputed": "123.4561234567",
            "quantity": HOSTILE,
            "source": "Table 1",
            "finding": "",
        }
        (tmp_path / "audit.csv").write_text(write_rows([row, row.values()]))
        write_workbench.write_collected(tmp_path, tmp_path / "report/index.html")
        assert not list_foreign(tmp_path / "report")
        audit = next((tmp_path / "report/audits").iterdir())
        for page, heads in (
            (pages / "index.html", ["what was tried", "verdict", "gain", "interval"]),
            (audit, ["row", "verdict", "printed", "recomputed"]),
        ):
            chromium.look(width=390)
            chromium.open(page)
            chromium.requests.clear()  # the audit lies elsewhere
            right = "getBoundingClientRect().right"
            within = f"filter(head => head.{right} <= document.querySelector('.box').{right} + 1)"
            script = f"[...document.querySelectorAll('.data thead th')].{within}.map(head => head.textContent.trim())"
            assert chromium.run(script)[:4] == heads
        assert ">study<" not in audit.read_text(), "a column of one word"
        assert ">123.45612<" in audit.read_text(), "the digits that tell it from what is printed"

    def test_any_runs_are_laid_over_each_other_zoomed_and_kept(self, chromium: Browser, pages: Path) -> None:
        chromium.look()
        chromium.open(pages / "compare.html")
        lines, boxes = "document.querySelectorAll('.drawings path.line.c0').length", "form.overlay > ul > li > input"
        chromium.run(f"document.querySelectorAll('{boxes}').forEach(box => box.checked || box.click())")
        runs = chromium.run("document.querySelectorAll('form.overlay li li input:checked').length")
        drawn = "document.querySelectorAll('.drawings svg:first-of-type path.line:not(.one)').length"
        assert chromium.run(drawn) == runs > 3 and chromium.run(lines) > 0
        assert chromium.run("new URLSearchParams(location.hash.slice(1)).get('show').split(',').length") == runs
        ticks = "[...document.querySelectorAll('.drawings text.x:not(.axis)')].map(one => one.textContent).join()"
        whole = chromium.run(ticks)
        chromium.run("document.querySelector('.drawings [aria-label=\"Zoom in\"]').click()")
        assert chromium.run(ticks) != whole
        chromium.run(
            "[...document.querySelectorAll('.drawings button')].find(one => one.textContent === 'All steps').click()"
        )
        assert chromium.run(ticks) == whole
        picture = chromium.run("Chart.standalone(document.querySelector('.drawings svg'))")
        assert picture.startswith("<svg") and "stroke:rgb(" in picture and "http://www.w3.org/2000/svg" in picture
        rows = [[text, f"'{text}", -1.5, None, 'a,"b"'] for text in (*FORMULAS, *NO_FORMULAS, *MARKUP)]
        assert chromium.run(f"Chart.csv({json.dumps(rows)})") == write_rows(rows)

    @pytest.mark.parametrize("kind", ["index.html", "experiments/worse", "runs/", "compare.html"])
    def test_every_figure_is_kept_by_its_buttons(
        self, chromium: Browser, pages: Path, read: dict[str, Read], kind: str
    ) -> None:
        chromium.look()
        chromium.open(pages / next(name for name in read if name.startswith(kind)))
        chromium.run(KEEP_BLOBS)
        figures = chromium.run("document.querySelectorAll('figure:has(> .tools)').length")
        for ending in ("SVG", "PNG", "CSV"):
            buttons = "[...document.querySelectorAll('figure > .tools button')]"
            clicked = f"{buttons}.filter(one => one.textContent === '{ending}').map(one => one.click()).length"
            assert chromium.run(clicked) == figures > 0
        limit = time.monotonic() + 10
        while chromium.run("blobs.length") < 3 * figures and time.monotonic() < limit:
            time.sleep(0.05)  # a picture is drawn as PNG when it has loaded
        types = Counter(chromium.run("blobs.map(one => one.type)"))
        assert types == dict.fromkeys(("image/svg+xml", "image/png", "text/csv"), figures)

    def test_kept_numbers_of_tries_are_those_of_the_table(
        self, chromium: Browser, pages: Path, read: dict[str, Read]
    ) -> None:
        chromium.look()
        chromium.open(pages / "index.html")
        chromium.run(KEEP_BLOBS)
        chromium.run("[...document.querySelectorAll('.tools button')].find(one => one.textContent === 'CSV').click()")
        rows = list(csv.DictReader(io.StringIO(chromium.run("blobs[0].text()"))))
        intervals = re.findall(r">([^<>]+ to [^<>]+)</td>", read["index.html"].text.partition('id="tried"')[2])
        assert [row["interval"] for row in rows if row["interval"]] == intervals != []
        assert {row["verdict"] for row in rows} == {"kept", "discarded", "crashed"}

    def test_nothing_of_a_name_runs(self, chromium: Browser, pages: Path, read: dict[str, Read]) -> None:
        check_in_browser(chromium, *(pages / name for name in read), *pages.rglob("*.svg"))
