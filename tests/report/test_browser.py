"""The report in a headless Chromium: it sorts, searches, shows the runs of a cell, fits a phone, asks nobody."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.verdict.picture import DecisionPicture, PicturedArm, PicturedGain
from tests.report.headless_browser import Browser

PAGES = ("index", "studies/transfer", "studies/query_free", "claims", "audit", "plan", "verdicts", "verdicts/mine")
PAGES += ("runs", "runs/transfer.base.qknorm.s44", "studies/transfer/tables", "studies/transfer/figures")
PAGES += ("studies/transfer/interpretations", "studies/transfer/runs", "studies/transfer/compare")
TABLES = "studies/transfer/tables.html"
COLUMN = "[...document.querySelectorAll('#table-table2 tbody tr')].map(row => row.cells[2])"
HEAD = "document.querySelector('#table-table2 thead th:nth-child(3)')"


@pytest.fixture(autouse=True)
def _quiet(chromium: Browser, pages: Path):
    """No page complains, and none loads what is not in the report's folder."""
    yield
    assert chromium.complaints == []
    own = ("data:", "about:", pages.resolve().as_uri())
    assert [url for url in chromium.requests if not url.startswith(own)] == []


@pytest.mark.parametrize("width", [1280, 390])
def test_no_page_is_wider_than_the_window(chromium: Browser, pages: Path, width: int) -> None:
    chromium.look(width=width)
    for name in PAGES:
        chromium.open(pages / f"{name}.html")
        assert chromium.run("document.documentElement.scrollWidth") <= width, name
    chromium.open(pages / TABLES)
    box = "document.querySelector('#table-table2 .box')"
    chromium.run("document.querySelector('#table-table2 .tools button').click()")
    assert chromium.run(f"{box}.scrollWidth > {box}.clientWidth"), "a wide table scrolls in its own box"
    chromium.run(f"{box}.scrollLeft = 200")
    left = "document.querySelector('#table-table2 tbody th').getBoundingClientRect().left"
    assert chromium.run(f"{left} - {box}.getBoundingClientRect().left") == 0, "and its first column stays"


def test_a_table_is_sorted_by_a_click_and_by_the_keyboard(chromium: Browser, pages: Path) -> None:
    chromium.look()
    chromium.open(pages / TABLES)
    chromium.run(f"{HEAD}.querySelector('button').click()")
    assert chromium.run(f"{HEAD}.getAttribute('aria-sort')") == "ascending"
    values = chromium.run(f"{COLUMN}.map(cell => cell.dataset.sort ?? null)")
    numbers = [float(value) for value in values if value is not None]
    assert len(numbers) > 4 and numbers == sorted(numbers)
    assert values[len(numbers) :] == [None] * (len(values) - len(numbers)), "what has no number stands last"
    chromium.run(f"{HEAD}.querySelector('button').focus()")
    chromium.press("Enter")
    assert chromium.run(f"{HEAD}.getAttribute('aria-sort')") == "descending"
    again = chromium.run(f"{COLUMN}.map(cell => cell.dataset.sort ?? null)")
    assert [float(value) for value in again[: len(numbers)]] == sorted(numbers, reverse=True) and again[-1] is None


def test_a_row_away_from_its_group_names_it(chromium: Browser, pages: Path) -> None:
    chromium.look()
    script = "[...document.querySelectorAll('#table-table4 tbody tr')].filter(row => !row.hidden).map(row => {"
    script += "const said = row.cells[0].querySelector('.again'); return !said || said.offsetWidth > 1 ?"
    script += " row.cells[0].textContent.trim() : ''})"
    chromium.open(pages / TABLES)
    assert chromium.run(script) == ["first", "", "", "second", ""]
    for query, expected in (("norms", ["first", "second"]), ("", ["first", "", "", "second", ""])):
        chromium.run(
            "{const input = document.querySelector('#table-table4 input');"
            f"input.value = '{query}'; input.dispatchEvent(new Event('input'))}}"
        )
        assert chromium.run(script) == expected
    chromium.run("document.querySelector('#table-table4 thead th:nth-child(3) button').click()")
    assert chromium.run(script) == ["first", "second", "first", "second", "first"]
    chromium.look(width=390)
    chromium.open(pages / TABLES)
    assert "" not in chromium.run(script), "on a phone little else of a row is there"


def test_head_of_numbers_breaks_its_lines_and_its_numbers_do_not(chromium: Browser, pages: Path) -> None:
    chromium.look()
    chromium.open(pages / TABLES)
    style = "getComputedStyle(document.querySelector('#table-table4 {} :nth-child(3)')).whiteSpace"
    assert [chromium.run(style.format(part)) for part in ("thead", "tbody tr")] == ["normal", "nowrap"]


def test_rows_are_found_by_their_words(chromium: Browser, pages: Path) -> None:
    chromium.open(pages / "claims.html")
    script = "[...document.querySelectorAll('#claims-transfer tbody tr')].filter(row => !row.hidden).length"
    whole = chromium.run(script)
    chromium.run(
        "{const input = document.querySelector('#claims-transfer input'); input.value = 'NOT reproduced';"
        "input.dispatchEvent(new Event('input'))}"
    )
    hits = chromium.run(script)
    assert 0 < hits < whole
    assert chromium.run("document.querySelector('#claims-transfer [role=status]').textContent") == (
        f"{hits} of {whole} rows"
    )


def test_a_number_shows_its_runs_when_addressed(chromium: Browser, pages: Path) -> None:
    chromium.open(pages / TABLES)
    chromium.run("document.querySelector('#table-table2 td a[href^=\"#runs-\"]').click()")
    assert chromium.run("document.querySelector('dialog').open")
    assert chromium.run("document.querySelector('dialog ul a').href").startswith((pages / "runs").as_uri())
    chromium.run("document.querySelector('dialog button').click()")
    # It is taken out when it has closed, which the browser tells the page in its own time.
    assert chromium.run(
        "new Promise(done => { const wait = () => document.querySelector('dialog') ? setTimeout(wait, 10) : done(true);"
        " wait(); })"
    )
    chromium.open(pages / TABLES, "#runs-1")
    # Opened by a script that the page runs when it is there.
    assert chromium.run(
        "new Promise(done => { const wait = () => document.querySelector('#runs-1 details').open ? done(true) :"
        " setTimeout(wait, 10); wait(); })"
    )


def test_light_and_dark_are_both_readable(chromium: Browser, pages: Path) -> None:
    """The contrast of text with what is behind it, as WCAG computes it, is at least 4.5 everywhere."""
    script = """(() => {
      const paint = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
      const rgb = (colour) => { paint.clearRect(0, 0, 1, 1); paint.fillStyle = colour; paint.fillRect(0, 0, 1, 1);
        return [...paint.getImageData(0, 0, 1, 1).data]; };
      const light = (c) => { const [r, g, b] = c.slice(0, 3).map((v) => (v /= 255) <= 0.04045 ? v / 12.92 :
        ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
      const behind = (at) => { for (; at; at = at.parentElement) { const c = rgb(getComputedStyle(at).backgroundColor);
        if (c[3] === 255) return c; } return [255, 255, 255]; };
      let worst = [99, ''];
      for (const at of document.querySelectorAll('p, a, td, th, small, .badge, .mark, dt, dd, summary, li')) {
        const [a, b] = [light(rgb(getComputedStyle(at).color)), light(behind(at))];
        const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (at.textContent.trim() && ratio < worst[0]) worst = [ratio, at.outerHTML.slice(0, 120)];
      }
      return worst; })()"""
    backgrounds = set()
    for dark in (False, True):
        chromium.look(dark=dark)
        for name in ("index", "studies/transfer/tables", "studies/transfer/compare", "claims"):
            chromium.open(pages / f"{name}.html")
            ratio, where = chromium.run(script)
            assert ratio >= 4.5, (dark, name, where)
        backgrounds.add(chromium.run("getComputedStyle(document.documentElement).backgroundColor"))
        chromium.open(pages / "studies/transfer/figures.html")
        turned = chromium.run("getComputedStyle(document.querySelector('.figure img')).filter")
        assert ("invert" in turned) == dark, "figures are drawn on white"
    assert len(backgrounds) == 2


def test_what_is_folded_is_open_on_paper_and_folded_again_after(chromium: Browser, pages: Path, tmp_path: Path) -> None:
    chromium.look()
    chromium.open(pages / TABLES)
    folded = "document.querySelectorAll('details:not([open]):not(.raw)').length"
    before = chromium.run(folded)
    chromium.run(f"addEventListener('beforeprint', () => {{ window.left = {folded} }})")
    chromium.pdf(tmp_path / "page.pdf")
    assert before > 0 and chromium.run("window.left") == 0 and chromium.run(folded) == before


def test_few_columns_are_shown_first_and_all_on_demand(chromium: Browser, pages: Path) -> None:
    chromium.look(width=390)
    chromium.open(pages / TABLES)
    script = "[...document.querySelectorAll('#table-table2 thead th')].filter(head => head.offsetWidth).length"
    button = "document.querySelector('#table-table2 .tools button')"
    few, label = chromium.run(script), chromium.run(f"{button}.textContent")
    chromium.run(f"{button}.click()")
    whole = chromium.run(script)
    assert 3 < few < whole and label == f"Show all {whole} columns"
    assert chromium.run(f"{button}.textContent") == f"Show the main {few} columns"
    hint = "new Promise(done => setTimeout(() => done(document.querySelector('#table-table2 .hint')?.textContent), 50))"
    assert "scroll" in chromium.run(hint), "and where the others are"


def test_the_list_of_sections_stays_and_follows(chromium: Browser, pages: Path) -> None:
    current = "document.querySelector('.contents [aria-current]').hash"
    top = "document.querySelector('.contents').getBoundingClientRect().top"
    for width in (1280, 390):
        chromium.look(width=width)
        chromium.open(pages / TABLES)
        assert chromium.run(current) != "#table-table4"
        chromium.run("document.querySelector('.contents a[href=\"#table-table4\"]').click()")
        assert chromium.run(f"new Promise(done => setTimeout(() => done({current}), 100))") == "#table-table4"
        assert 0 <= chromium.run(top) < 60, "where the reader is"


def test_any_two_runs_are_drawn_over_each_other(chromium: Browser, pages: Path) -> None:
    chromium.look()
    page, form = pages / "studies/transfer/compare.html", "document.querySelector('form.chosen')"
    titles = "[...document.querySelectorAll('.drawings figcaption')].map(one => one.textContent)"
    chromium.open(page, "#scale=base&b=softpick/s42")
    assert chromium.run(f"{form}.elements.a.value") == "baseline", "the reference, with all of its seeds"
    assert chromium.run(titles) == [
        "Training loss",
        "Validation loss",
        "Gradient norm",
        "Score by task, second less first",
    ]
    assert chromium.run("document.querySelectorAll('.drawings path.band').length") == 3, "the span of its seeds"
    text = chromium.run("document.querySelector('.outcome').textContent")
    assert "over 3 seeds" in text and "Softpick s42" in text and "one run" in text
    assert chromium.run("document.querySelectorAll('.drawings rect.band').length") == 13, "task by task"
    chromium.run(f"{{{form}.elements.b.value = 'qknorm/s44'; {form}.elements.b.dispatchEvent(new Event('change'))}}")
    assert "1 of 1 diverged" in chromium.run("document.querySelector('.outcome').textContent")
    assert chromium.run("document.querySelectorAll('.drawings text.ended').length") > 0
    assert chromium.run("location.hash") == "#scale=base&a=baseline&b=qknorm/s44", "an address to be sent"
    chromium.run(f"{form}.querySelector('button').click()")
    assert chromium.run(f"[{form}.elements.a.value, {form}.elements.b.value]") == ["qknorm/s44", "baseline"]


@pytest.mark.parametrize("name", ["学" * 21, "WARMUP OF THE MOMENTUM", "a rate x0.7 with 60 % warmdown", "短い名前"])
def test_no_text_of_a_phones_picture_is_cut(chromium: Browser, tmp_path: Path, name: str) -> None:
    arms = [
        PicturedArm(name="main", values=[("1", 3.2), ("2", 3.21)], baseline=True, places=[0, 2]),
        PicturedArm(name=name, values=[("1", 3.1)], lost=["diverged", "crashed"], fresh=True, places=[1]),
    ]
    gain = PicturedGain(name=name, middle=0.1, low=0.05, high=0.15)
    picture = DecisionPicture(title="", metric=name, higher=False, arms=arms, gains=[gain], asked=0.02).svg()
    page = tmp_path / "picture.html"
    page.write_text(f'<meta charset="utf-8"><meta name="viewport" content="width=device-width">{picture}')
    chromium.look(width=390)
    chromium.open(page)
    chromium.requests.clear()  # it is no page of the report
    boxes = "[...document.querySelectorAll('text')].map(each => [each.getBBox(), each.textContent])"
    outside = chromium.run(f"{boxes}.filter(([box]) => box.x < 0 || box.x + box.width > 700).map(pair => pair[1])")
    assert outside == [] and chromium.run("getComputedStyle(document.querySelector('.head')).fontSize") == "15px"
