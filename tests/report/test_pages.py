"""The pages of a report, without a browser: links, what they say where things went wrong, and what they never hold."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import parse_qsl, unquote

import pytest

from plumbline.audit.audit_rows import COLUMNS
from plumbline.core import fingerprint_file
from plumbline.core.csv_text import write_rows
from plumbline.core.files import swap_paths
from plumbline.project import load
from plumbline.report import report_site, run_comparison, write_report
from plumbline.report.page_frame import PresetWarning
from plumbline.report.workbench import drawn_curves
from plumbline.specs import study_config
from plumbline.specs.yaml_files import ROOT, load_config, studies
from tests.hostile_texts import HOSTILE
from tests.report.broken_projects import planned
from tests.report.headless_browser import Browser
from tests.report.page_checks import check_in_browser, check_page


class Read(HTMLParser):
    """Links, loads and ids of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.scripts: list[str | None] = []
        self.text = path.read_text(encoding="utf-8")
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.links += [value for name in ("href", "src") if (value := values.get(name))]
        self.ids += [value] if (value := values.get("id")) else []
        self.scripts += [values.get("src")] if tag == "script" else []


@pytest.fixture(scope="module")
def read(pages: Path) -> dict[str, Read]:
    return {path.relative_to(pages).as_posix(): Read(path) for path in sorted(pages.rglob("*.html"))}


def test_every_link_leads_somewhere_within_folder_or_to_paper(pages: Path, read: dict[str, Read]) -> None:
    assert len(read) > 100, "a page for each run"
    papers = {paper.link for paper in map(study_config.paper_of, studies()) if paper and paper.link}
    assert papers & set(read["studies/query_free.html"].links)
    for name, page in read.items():
        assert len(set(page.ids)) == len(page.ids), name
        for link in page.links:
            if link == "data:," or link in papers or link.startswith("http://hostile.invalid/"):  # a text may link
                continue
            path, _, fragment = unquote(link).partition("#")
            target = (pages / name).parent / path if path else pages / name
            assert target.resolve().is_relative_to(pages) and target.is_file(), (name, link)
            if target.name == "compare.html" and "=" in fragment:  # which two are compared
                data = comparison(read[target.resolve().relative_to(pages).as_posix()])
                chosen = dict(parse_qsl(fragment))
                scale = next(entry for entry in data["scales"] if entry["name"] == chosen["scale"])
                assert chosen["b"].partition("/")[0] in [entry["name"] for entry in scale["methods"]], (name, link)
            elif fragment:
                assert fragment in read[target.resolve().relative_to(pages).as_posix()].ids, (name, link)


def comparison(page: Read) -> dict:
    """What a page that compares runs holds of them."""
    return json.loads(page.text.partition('<script type="application/json" id="comparison">')[2].partition("<")[0])


def test_nothing_of_a_result_becomes_a_part_of_a_page(pages: Path, read: dict[str, Read]) -> None:
    for name, page in read.items():
        own = ["../" * name.count("/") + "report.js"]
        drawn = ("chart.js", "compare.js") if name.endswith("/compare.html") else ()
        own += [own[0].replace("report.js", script) for script in drawn] + ([None] if drawn else [])
        assert page.scripts == own, name
        check_page(pages / name)
    assert "url(" not in (pages / "report.css").read_text() and "http" not in (pages / "report.js").read_text()
    assert json.loads(drawn_curves.embed_json({"label": HOSTILE})) == {"label": HOSTILE}
    assert not set("<>&") & set(drawn_curves.embed_json({"label": HOSTILE}))
    log = read["runs/transfer.base.qknorm.s44.html"].text
    assert "step 1\nstep 2\n&lt;/title&gt;&lt;/textarea&gt;&lt;/pre&gt;&lt;/script&gt;&lt;script&gt;" in log
    assert "&lt;script&gt;" in read["verdicts/mine.html"].text
    assert "&lt;script&gt;" in read["studies/transfer/interpretations.html"].text


def test_nothing_of_a_result_runs_in_a_browser(pages: Path, read: dict[str, Read], chromium: Browser) -> None:
    others = [name for name in read if name.count("/") < 2 and not name.startswith("runs/")]
    others += [
        "runs/transfer.base.qknorm.s44.html",
        "studies/transfer/tables.html",
        "studies/transfer/interpretations.html",
    ]
    check_in_browser(chromium, *(pages / name for name in others))


def row(page: Read, label: str) -> list[str]:
    """The cells of the row of table 2 that a label names, as HTML."""
    table = page.text.partition('id="table-table2"')[2]
    match = re.search(rf"<tr>\s*<th[^>]*>(?:<a[^>]*>)?{re.escape(label)}.*?</tr>", table, flags=re.S)
    assert match, label
    return re.findall(r"<t[hd].*?</t[hd]>", match[0], flags=re.S)


def test_a_claim_that_fails_and_a_run_that_diverged_are_said(read: dict[str, Read]) -> None:
    claims, study = read["claims.html"].text, read["studies/transfer/tables.html"]
    assert '<span class="badge bad">not reproduced</span>' in claims and "Not judged yet" in claims
    assert re.search(
        r"1 <span class=\"state diverged\">diverged</span>, \d+ <span class=\"state not-run\">",
        read["studies/transfer.html"].text,
    )
    assert any('<span class="badge bad">diverged 1</span>' in cell for cell in row(study, "QK-Norm"))
    assert any('<span class="badge none">missing</span>' in cell for cell in row(study, "HybridNorm"))
    page = read["runs/transfer.base.qknorm.s44.html"].text
    assert "diverged: gradient norm" in page and 'class="ended"' in page and "Loss over" in page
    assert ">not recorded<" in page, "memory, by a trainer that did not count it"
    assert "beside its packages<" in read["runs/transfer.base.softpick.s42.html"].text
    page = read["runs/transfer.base.hybrid_norm.s42.html"].text
    assert "not run" in page and "snakemake work/paper/runs/transfer/base/hybrid_norm/s42/outcome.json" in page


def test_a_cell_is_marked_by_its_noise_and_opens_its_runs(read: dict[str, Read]) -> None:
    study = read["studies/transfer/tables.html"]
    score = row(study, "Softpick")[1]
    assert '<span class="below printed">(0.4922)</span>' in score
    assert 'class="num beyond"' in score and 'title="beyond noise' in score
    assert 'href="../../runs/transfer.base.softpick.s42.html"' in score
    assert 'class="num within"' in row(study, "Baseline")[1] and "✓" in row(study, "Baseline")[1]
    (to_a_list,) = re.findall(r'href="(#runs-\d+)"', row(study, "Softpick")[2])
    entry = study.text.partition(f'id="{to_a_list[1:]}"')[2].partition("</details>")[0]
    assert entry.count("softpick.s42") == 1 and entry.count("baseline.s4") == 3
    assert "the printed number: " in study.text, "a legend with counts"
    categories = study.text.partition('id="table-table1"')[2].partition("</table>")[0]
    assert categories.count('<td class="within">') >= 20 and "unknown" not in categories, "computed, and as printed"


def test_study_of_which_nothing_is_made_says_what_would_make_it(read: dict[str, Read]) -> None:
    text = read["studies/query_free.html"].text
    assert "Not made yet" in text and "table table2" in text
    assert "snakemake all --config preset=paper &#39;studies=[query_free]&#39;" in text
    assert "There is none yet" in read["audit.html"].text


def test_the_list_of_verdicts_says_each(pages: Path, read: dict[str, Read]) -> None:
    assert '<a href="verdicts/mine.html">Verdict on mine</a>: mine is not decided.' in read["verdicts.html"].text
    for where in ("verdicts.html", "index.html"):
        assert '<a href="experiments/softpick.html">softpick</a>: softpick is kept.' in read[where].text
    page = read["verdicts/mine.html"].text
    assert page.index('<p class="lead">mine is not decided.') < page.index("<img") and page.count("is not decided") == 1
    (source,) = re.findall(r'<img src="([^"]+)"', page)
    assert (pages / "verdicts" / source).read_text().startswith("<svg") and "a picture" not in page


def test_first_page_says_what_was_found_of_each_paper(read: dict[str, Read]) -> None:
    first, *others = re.findall(r'<article class="paper">.*?</article>', read["index.html"].text, flags=re.S)
    assert "Most Transformer Modifications" in first and not others, "what is there, in full"
    (unmade,) = re.findall(r'<p class="unmade">.*?</p>', read["index.html"].text, flags=re.S)
    assert 'href="studies/query_free.html"' in unmade and "studies=[query_free]" in unmade, "what is not, in a line"
    table = read["studies/transfer/tables.html"].text.partition('id="table-table2"')[2].partition("</section>")[0]
    sentences = re.findall(r'class="(?:above|beneath)">(.*?)<', table)
    assert any(sentence in first for sentence in sentences), "in the words of the first table that says what it found"
    assert 'href="studies/transfer/tables.html#table-table2"' in first
    (picture,) = re.findall(r'<img src="([^"]+)"', first)
    assert picture == "files/transfer/fig2.svg" and "Losses" in first, "with the title that the README gives it"
    assert re.search(r'<li>“[^”]+” <span class="badge \w+">', first) and re.search(r"\d+ not reproduced", first)


def test_the_page_of_two_runs_holds_their_curves_and_scores(read: dict[str, Read]) -> None:
    data = comparison(read["studies/transfer/compare.html"])
    (base,) = data["scales"]
    methods = {entry["name"]: entry["runs"] for entry in base["methods"]}
    assert data["reference"] == "baseline" and [run["seed"] for run in methods["baseline"]] == ["s42", "s43", "s44"]
    whole = methods["softpick"][0]
    assert len(whole["step"]) == len(whole["loss"]) <= run_comparison.POINTS and len(whole["tasks"]) == 13
    assert [run["state"] for run in methods["qknorm"]] == ["completed", "completed", "diverged"]
    assert "hybrid_norm" not in methods, "not run"
    assert 'href="../studies/transfer/compare.html#scale=base&amp;b=softpick/s42"' in read[
        "runs/transfer.base.softpick.s42.html"
    ].text.replace("&b", "&amp;b")
    assert "-0." in read["studies/transfer/compare.html"].text.partition('id="reached"')[2], "without a script too"


def test_a_rebuilt_folder_expects_its_packed_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("studies").symlink_to(ROOT / "studies")
    whole = dataclasses.replace(planned("demo", "key_norms"), root=tmp_path)
    key = next(iter(whole.runs))
    run = Path(whole.paths.work) / "runs" / key
    run.mkdir(parents=True)
    ended = {"run_id": "of other code", "outcome": "completed", "step": 3, "steps": 3, "validation_loss": 1.0}
    (run / "outcome.json").write_text(json.dumps(ended))
    (run / "manifest.json").write_text(json.dumps({"run_id": "of other code", "wall_seconds": 90.0}))

    def build_pages() -> tuple[str, str, str]:
        write_report.build_report(whole, Path("results/demo/report/index.html"))
        pages = ("index.html", "plan.html", f"runs/{key.replace('/', '.')}.html")
        return tuple(Path("results/demo/report", name).read_text() for name in pages)  # type: ignore[return-value]

    first, plan, page = build_pages()
    assert "configuration's: 1" in first and "with another spec" in page
    assert "What each target costs" in plan
    info = {"format": 2, "commit": "ab" * 20, "products": [], "finished": "2026-11-23T17:49:10Z"}
    Path("plumbline.json").write_text(json.dumps(info))
    first, plan, page = build_pages()
    assert "another spec" not in first + page and '1 <span class="state completed">' in first
    assert "bundle of commit <code>abababa</code>" in first and "ended on 2026-11-23" in first
    assert "What the runs took" in plan and ">1.5<" in plan and "done" not in re.findall(r"<th scope=.*", plan)
    assert "This command runs it" not in page


def test_an_experiment_without_a_picture_is_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = Path("results/demo/experiment/softpick.md")
    source.parent.mkdir(parents=True)
    source.write_text("# softpick\n\nsoftpick is kept.\n")
    write_report.build_report(planned("demo", "key_norms"), Path("results/demo/report/index.html"))
    page = Path("results/demo/report/experiments/softpick.html").read_text()
    assert "softpick is kept." in page and "<img" not in page


def test_the_newest_of_two_tries_is_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = Path("results/demo/experiment")
    folder.mkdir(parents=True)
    for name, verdict, day in (("a-1", "keep", 3), ("b-2", "discard", 5), ("c-3", "undecided", 4)):
        (folder / f"{name}.md").write_text(f"# mine against baseline\n\nIt ended as {verdict}.\n")
        facts = {"verdict": verdict, "at": f"2026-11-0{day}T10:20:30+00:00", "terms": {"claim": verdict == "keep"}}
        (folder / f"{name}.json").write_text(json.dumps(facts))
    write_report.build_report(planned("demo", "key_norms"), Path("results/demo/report/index.html"))
    for where in ("index", "verdicts"):
        text = Path(f"results/demo/report/{where}.html").read_text()
        listed = re.findall(
            r'<li><a href="experiments/(.+?).html">.*?</a> <span.*?>(.*?)</span> <small>(.*?)</small>', text
        )
        assert listed == [
            ("b-2", "discarded", "2026-11-05 10:20 UTC"),
            ("c-3", "not decided", "2026-11-04 10:20 UTC"),
            ("a-1", "kept, claim", "2026-11-03 10:20 UTC"),
        ]
    page = Path("results/demo/report/experiments/a-1.html").read_text()
    assert ">kept, claim</span> <small>2026-11-03 10:20 UTC</small>" in page


def test_an_audit_alone_leads_and_what_is_missing_is_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    whole = planned("demo", "key_norms")
    path = Path(whole.paths.results) / "audit.csv"
    path.parent.mkdir(parents=True)
    row = dict.fromkeys(COLUMNS, "") | dict.fromkeys(("recomputed", "recomputed_low", "recomputed_high"), "1")
    rows = [row | {"study": "key_norms", "verdict": verdict} for verdict in ("match", "match", "match", "mismatch")]
    path.write_text(write_rows([rows[0], *(each.values() for each in rows)]))
    fingerprint_file.write(path, "of nothing")
    write_report.build_report(whole, Path("results/demo/report/index.html"))
    first = Path("results/demo/report/index.html").read_text()
    main = first[first.index("<main") : first.index("Across the studies")]
    assert '<article class="paper">' not in main and main.count("not ") == main.count("1 of 4 checks") == 1
    assert main.index("1 of 4 checks") < main.index("Not made yet") and main.count("snakemake") == 1


@pytest.mark.parametrize("damage", [b"", b"half a file"])
def test_a_damaged_run_is_a_page_without_its_curve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: bytes
) -> None:
    monkeypatch.chdir(tmp_path)
    whole = planned("demo", "key_norms")
    (key,) = list(whole.runs)[:1]
    run = Path(whole.paths.work) / "runs" / key
    run.mkdir(parents=True)
    (run / "metrics.parquet").write_bytes(damage)
    outcome = {"run_id": whole.runs[key].spec.run_id, "outcome": "diverged", "step": 3, "reason": "a norm"}
    (run / "outcome.json").write_text(json.dumps(outcome))
    claims = Path(whole.paths.results) / "key_norms/claims.csv"
    claims.parent.mkdir(parents=True)
    claims.write_text("id,verdict,runs,text\nfirst,repro")
    write_report.build_report(whole, Path("results/demo/report/index.html"))
    page = Path(f"results/demo/report/runs/{key.replace('/', '.')}.html").read_text()
    assert "a norm" in page and "metrics.parquet cannot be read" in page
    assert "claims.csv cannot be read" in Path("results/demo/report/claims.html").read_text()


def test_a_demo_says_on_every_page_that_it_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_report.build_report(planned("demo", "key_norms"), Path("results/demo/report/index.html"))
    texts = [path.read_text() for path in Path("results/demo/report").rglob("*.html")]
    assert len(texts) > 8
    for text in texts:
        assert re.search(r"<title>.* \(demo, no reproduction\)", text), "in the title"
        assert '<p class="banner loud" role="note"><strong>demo, no reproduction</strong>' in text
        assert '@top-right { content: "demo, no reproduction" }' in text, "on paper"


def test_the_documents_size_on_other_texts_is_as_loud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_report.build_report(planned("paper", "key_norms", source="packaged"), Path("results/paper/report/index.html"))
    for path in Path("results/paper/report").rglob("*.html"):
        text = path.read_text()
        assert '<p class="banner loud" role="note"><strong>paper, other texts, no reproduction</strong>' in text, path
        assert "another source (key_norms: packaged)" in text
        assert '@top-right { content: "paper, other texts, no reproduction" }' in text, "on paper"
    commands = re.findall(
        r"<code>(snakemake .*?)</code>", Path("results/paper/report/studies/key_norms.html").read_text()
    )
    assert commands and all("data={source: packaged}" in command for command in commands), "else it made other runs"


def test_one_study_on_other_texts_leaves_others_what_they_are() -> None:
    banner = PresetWarning.of("paper", {"transfer": "", "quack": "local"})
    assert banner.loud and "(quack: local)" in banner.sentence and banner.badge == ""
    assert PresetWarning.of("paper", {"quack": "local"}).badge == "other texts"
    assert not PresetWarning.of("paper", {"transfer": ""}).loud and PresetWarning.of("demo", {"transfer": ""}).loud


def test_a_report_repeats_and_leaves_no_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    out = Path("results/demo/report/index.html")

    def build_pages() -> dict[str, bytes]:
        write_report.build_report(planned("demo", "key_norms"), out)
        return {path.as_posix(): path.read_bytes() for path in out.parent.rglob("*") if path.is_file()}

    first = build_pages()
    (out.parent / "studies/old.html").write_text("a study that is gone")
    assert build_pages() == first and [path.name for path in out.parent.parent.iterdir()] == ["report"]


def test_a_report_with_a_file_of_somebody_else_is_not_replaced(pages: Path, tmp_path: Path) -> None:
    """The tables of a study that was called `report` went with it."""
    assert not report_site.list_foreign(pages)
    folder = tmp_path / "report"
    shutil.copytree(pages, folder)
    (folder / "index.html").unlink()  # as Snakemake does when its job begins
    assert not report_site.list_foreign(folder)
    for name in ("table1.csv", "notes.html"):
        (folder / name).write_text("mine")
    (folder / "mine").mkdir()
    assert report_site.list_foreign(folder) == ["mine", "notes.html", "table1.csv"]


@pytest.mark.parametrize("atomic", [True, False])
def test_a_report_while_another_replaces_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, atomic: bool) -> None:
    new, folder = tmp_path / "made", tmp_path / "report"
    for place in (new, folder):
        place.mkdir()
        (place / "index.html").write_text(place.name)
    if atomic and not swap_paths(new, folder):
        pytest.skip("this file system cannot let folders change places")
    elif not atomic:
        monkeypatch.setattr(report_site, "swap_paths", lambda *_: False)

    def full(first: Path, other: Path) -> None:
        if first == new:
            raise OSError(28, "No space left on device")
        first.rename(other)

    monkeypatch.setattr(report_site.os, "replace", full)
    if atomic:  # they changed places above, and do so again
        report_site.replace_folder(new, folder)
    else:
        with pytest.raises(OSError, match="No space"):
            report_site.replace_folder(new, folder)
    assert (folder / "index.html").read_text() == "report" and (new / "index.html").read_text() == "made"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["made", "report"]


def test_two_first_reports_at_once_leave_one(tmp_path: Path) -> None:
    out = tmp_path / "report/index.html"

    def write(folder: Path) -> int:
        folder.mkdir(exist_ok=True)
        (folder / "index.html").write_text("whole")
        return 1

    def meet(first: Path, other: Path) -> None:
        """Another process is first, between the look and the rename."""
        if not other.exists():
            write(other)
        rename(first, other)

    rename = os.rename
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report_site.os, "replace", meet)
        assert report_site.replace_report(out, write) == 1
    assert out.read_text() == "whole" and [path.name for path in tmp_path.iterdir()] == ["report"]


def test_changed_files_are_named_and_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    whole = planned("demo", "key_norms")
    (key,) = list(whole.runs)[:1]
    run = Path(whole.paths.work) / "runs" / key
    run.mkdir(parents=True)
    outcome = {"run_id": whole.runs[key].spec.run_id, "outcome": "completed", "step": 3, "validation_loss": 1.0}
    (run / "outcome.json").write_text(json.dumps(outcome))
    (run / "manifest.json").write_text(json.dumps({"files": {"outcome.json": {"sha256": "0" * 64}}}))
    claims = Path(whole.paths.results) / "key_norms/claims.csv"
    claims.parent.mkdir(parents=True)
    head = "id,verdict,runs,text,published,reproduced,why,kind,source\n"
    claims.write_text(f"{head}first,not reproduced,,says,,,,,\n")
    fingerprint_file.write(claims, "made")
    claims.write_text(f"{head}first,reproduced,,says,,,,,\n")
    write_report.build_report(whole, Path("results/demo/report/index.html"))
    page = Path(f"results/demo/report/runs/{key.replace('/', '.')}.html").read_text()
    assert "outcome.json is not the" in page
    assert "1.0000" not in Path("results/demo/report/runs.html").read_text()
    assert "claims.csv cannot be read" in Path("results/demo/report/claims.html").read_text()


def test_a_file_of_the_users_own_is_a_study_of_its_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.yaml").write_text("extends: transfer\nmethods:\n  softpick: {}\n")
    options = {"preset": "demo", "studies": ["key_norms"], "mine": str(tmp_path / "own.yaml")}
    write_report.build_report(load(load_config() | options), Path("results/demo/report/index.html"))
    page = Path("results/demo/report/studies/own.html").read_text()
    assert "which extends <code>transfer</code>" in page and "From the study's README" not in page
    assert "transfer.base.softpick.s42.html" in Path("results/demo/report/studies/own/runs.html").read_text()
