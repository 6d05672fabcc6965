"""Pages and pictures that others wrote, and that a report of a folder offers: none runs or loads anything."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from plumbline.audit.audit_rows import COLUMNS
from plumbline.core.csv_text import write_rows
from plumbline.report import __main__ as report
from plumbline.report.copied_files import copy_file, find_fault
from plumbline.report.report_site import list_foreign
from plumbline.report.workbench.write_workbench import write_collected
from tests import run_in_process
from tests.report.headless_browser import Browser
from tests.report.page_checks import FORBIDDEN, PageParser, check_in_browser, check_picture

RUNS = "<script>hostile=1</script><img src=data: onerror=hostile=1><body onload=hostile=1>"
POLICY = f'<meta http-equiv="Content-Security-Policy" content="{"; ".join(FORBIDDEN)}">'
OWN = '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>a</title>' + POLICY
PAGES = {
    "no policy": f"<!doctype html><html><head></head>{RUNS}",
    "a policy too late": f"{RUNS}{POLICY}",
    "a policy in a comment": f"<!doctype html><html lang='en'><head><!--{POLICY}-->{RUNS}",
    "a policy in a title": f"{OWN.replace(POLICY, '')}<title>{POLICY}</title>{RUNS}",
    "a loose policy": OWN.replace("form-action 'none'", "form-action 'none'; script-src 'unsafe-inline'") + RUNS,
    "its own": OWN + RUNS,
}
SVG = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:x="http://www.w3.org/1999/xlink">'
PICTURES = {
    "script": f"{SVG}<script>hostile=1</script></svg>",
    "onload": SVG.replace(">", " onload='hostile=1'>") + "</svg>",
    "foreignObject": f"{SVG}<foreignObject/></svg>",
    "a": f'{SVG}<a x:href="javascript:hostile=1"><text>a</text></a></svg>',
    "image/href": f'{SVG}<image x:href="http://hostile.invalid/x.png"/></svg>',
    "style": f"{SVG}<style>@import 'http://hostile.invalid/x';</style></svg>",
    "path/fill": f'{SVG}<path fill="url( http://hostile.invalid/x)"/></svg>',
    "escape": f'{SVG}<path style="fill:u\\72l(http://hostile.invalid/x)"/></svg>',
    "entity": f'<!DOCTYPE svg [<!ENTITY a "b">]>{SVG}<text>&a;</text></svg>',
    "xml-stylesheet": f'<?xml-stylesheet href="http://hostile.invalid/x"?>{SVG}</svg>',
    "encoding": f'<?xml version="1.0" encoding="gbk"?>{SVG}</svg>',
    "no picture": RUNS,
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of a folder in which somebody else's audits lie, each with a page that would run something."""
    folder = tmp_path_factory.mktemp("foreign")
    for name, page in PAGES.items():
        audit = folder / name
        audit.mkdir()
        (audit / "audit.csv").write_text(f"{','.join(COLUMNS)}\n")
        (audit / "audit.html").write_text(page)
    process = run_in_process.run(report.main, folder, cwd=folder)
    assert process.returncode == 0, process.stderr
    return folder / "report/files/audits"


def test_a_page_runs_and_loads_nothing(pages: Path, chromium: Browser) -> None:
    check_in_browser(chromium, *sorted(pages.glob("*.html")))


def test_the_policy_of_a_page_stands_before_all_of_it(pages: Path) -> None:
    copies = sorted(pages.glob("*.html"))
    assert len(copies) == len(PAGES)
    for copy in copies:
        text = copy.read_text()
        begin = PageParser(re.split("<script|<!--", text)[0])
        assert begin.policies and set(FORBIDDEN) <= set(begin.policies[0].split("; ")), copy
        assert not begin.faults, copy
    assert PAGES["its own"] in [copy.read_text() for copy in copies], "what is safe stays as it is"


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_that_may_do_more_than_be_seen_is_a_note_that_says_so(tmp_path: Path, name: str) -> None:
    source, copy = tmp_path / "<b>.svg", tmp_path / "copy.svg"
    source.write_text(PICTURES[name])
    copy_file(source, copy)
    check_picture(copy)
    assert "hostile" not in copy.read_text() and "&lt;b&gt;.svg" in copy.read_text()
    assert name.rpartition("/")[2] in copy.read_text() or name in (
        "path/fill",
        "escape",
        "entity",
        "encoding",
        "no picture",
    )


def test_pictures_of_plumbline_are_copied(repository: Path) -> None:
    pictures = [path for path in (repository / "docs/_assets").glob("*.svg") if path.name != "rules.svg"]
    assert pictures
    for picture in pictures:
        assert not find_fault(picture.read_bytes()), picture
    label = SVG.replace(">", ' aria-label="a@b \\ url(x)">')
    assert not find_fault(f"<?xml version='1.0' encoding='UTF-8'?>{label}<path clip-path='url(#a)'/></svg>".encode())


def test_a_copied_page_of_ours_leads_back_and_a_foreign_one_stays(tmp_path: Path) -> None:
    foreign = "<html><body>a paper of others"
    for name, page in (("ours", f"{OWN}</head><body>{RUNS}"), ("theirs", foreign)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "audit.csv").write_text(write_rows([COLUMNS, ["a"] * len(COLUMNS)]))
        (tmp_path / name / "audit.html").write_text(page)
    write_collected(tmp_path, tmp_path / "report/index.html")
    assert not list_foreign(tmp_path / "report"), "it may be written again"
    ours, theirs = sorted((tmp_path / "report/files/audits").glob("*.html"))
    (link,) = re.findall(r'<body><nav><a href="([^"]+)">', ours.read_text())
    assert "as printed" in (ours.parent / link).read_text() and (ours.parent / link).parent.name == "audits"
    assert theirs.read_text().endswith(f">\n{foreign}")
