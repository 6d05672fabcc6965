"""Makes the finished pages of the audit: of each paper its tables as printed, and every row with its verdict.

python docs/_site/audits.py     # draws Table 2 of the first paper: docs/_assets/audit.svg, audit_dark.svg
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from plumbline.audit.audit_csv import choose_studies
from plumbline.report.workbench.write_workbench import write_collected

ROOT = Path(__file__).resolve().parents[2]
#: What the names of pictures end with -> colours, of a page and of what the checks of a number come to.
COLOURS = {
    "": {
        "paper": "#fff",
        "ink": "#1c1f23",
        "line": "#d9d8d2",
        "holds": "#dcefdf",
        "contradicts": "#ffc9c9",
        "likely": "#fff0b3",
    },
    "_dark": {
        "paper": "#0d1117",
        "ink": "#e6edf3",
        "line": "#30363d",
        "holds": "#1d4128",
        "contradicts": "#7a1f1f",
        "likely": "#5c4c00",
    },
}
#: Where the columns of the table end, but for the first, which begins at the left edge.
COLUMNS = (20, 290, 370, 450, 540, 660)


def build(out: Path) -> None:
    """Audit each paper by itself, and write the pages of all, without the files behind them: they are 0.4 MB."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "audits")
        for study in choose_studies():
            audit = ["audit", "--study", study, "--out", f"{folder}/{study}/audit/audit.csv"]
            subprocess.run([sys.executable, "-m", "plumbline", *audit], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        write_collected(folder, out / "index.html")
    shutil.rmtree(out / "files")
    for page in out.glob("audits/*.html"):
        text = page.read_text(encoding="utf-8")
        page.write_text(re.sub(r'<p class="along">Files: .*?</p>', "", text), encoding="utf-8")


def draw(page: str, colours: dict[str, str]) -> str:
    """Table 2 of a page of an audit, each number in the colour of its checks, as a picture."""
    section = page.partition('<section id="table-2">')[2].partition("</section>")[0]
    lines = re.findall(r"<tr>(.*?)</tr>", section, re.DOTALL)
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", line, re.DOTALL) for line in lines]
    parts, height = [], 70 + 22 * len(rows)
    for at, (kind, count) in enumerate(
        re.findall(r'class="swatch (\w+)">(.*?)</span>', section.partition("<table")[0])
    ):
        x = 20 + 150 * at
        parts.append(f'<rect class="{kind}" x="{x}" y="20" width="140" height="22" rx="3"/>')
        parts.append(f'<text x="{x + 70}" y="36" text-anchor="middle">{count}</text>')
    for at, row in enumerate(rows):
        y = 70 + 22 * at
        parts.append(f'<path d="M20 {y + 6}H660"/>')
        for cell, x in zip(row, COLUMNS):
            kind, text = re.search(r'class="(holds|contradicts|likely)"', cell), re.sub(r"<[^>]*>", "", cell)
            if kind:
                parts.append(f'<rect class="{kind[1]}" x="{x - 62}" y="{y - 13}" width="66" height="17" rx="3"/>')
            anchor = "start" if x == COLUMNS[0] else "end"
            look = "" if at else "head"
            parts.append(f'<text class="{look}" x="{x}" y="{y}" text-anchor="{anchor}">{text}</text>')
    style = "text{font:12px system-ui,sans-serif;fill:$ink}.head{font-weight:600}path{stroke:$line}.read{fill:none}"
    style += ".frame{fill:$paper;stroke:$line}.holds{fill:$holds}.contradicts{fill:$contradicts}.likely{fill:$likely}"
    style = re.sub(r"\$(\w+)", lambda match: colours[match[1]], style)
    frame = f'<rect class="frame" x=".5" y=".5" width="679" height="{height - 1}" rx="6"/>'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 680 {height}" role="img" aria-label="Table 2">'
    return f"{head}<style>{style}</style>{frame}{''.join(parts)}</svg>\n"


def draw_all(out: Path) -> dict[Path, str]:
    """The pictures of the pages that are below a folder, by their files."""
    (page,) = out.glob("audits/transfer-*.html")
    text = page.read_text(encoding="utf-8")
    return {ROOT / "docs" / "_assets" / f"audit{end}.svg": draw(text, colours) for end, colours in COLOURS.items()}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        build(Path(place, "pages"))
        for picture, text in draw_all(Path(place, "pages")).items():
            picture.write_text(text, encoding="utf-8")
