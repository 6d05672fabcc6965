"""Makes the finished workbench of these pages: a night of tries by `examples/loop`, in which nothing is trained.

python docs/_site/night.py          # draws its progress (docs/_assets/night.svg, night_dark.svg) and its first page
                                    # (workbench.svg, workbench_dark.svg) from the kept night
python docs/_site/night.py again    # first plays another night (minutes) and keeps it, in docs/_site/night.tar.xz

Of the night is kept what `plumbline report` reads, so that the pages, which `make docs` builds, are the same bytes
every time.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import textwrap
from html import escape, unescape
from pathlib import Path

from plumbline.report.workbench.write_workbench import write_workbench

ROOT = Path(__file__).resolve().parents[2]
LOOP = ROOT / "examples" / "loop"
KEPT = ROOT / "docs" / "_site" / "night.tar.xz"
#: Idea -> what it takes off val_bpb, or how it ends; where neither is said it does nothing.
IDEAS: dict[str, float | str] = {
    "warmup 200 steps": 0,
    "weight decay 0.2": 0,
    "beta2 0.95": 0,
    "learning rate x0.7": 0.02,
    "sequence length 8k": "RuntimeError('CUDA out of memory')",
    "clip at 0.5": 0,
    "init std 0.01": 0,
    "learning rate x2": -0.03,
    "rotary base 50k": 0,
    "label smoothing 0.01": 0,
    "warmdown 40 %": 0.03,
    "momentum 0.85": 0,
    "dropout 0.05": -0.02,
    "RMSNorm eps 1e-6": 0,
    "z-loss 1e-4": 0,
    "EMA of weights": 0,
    "logit soft cap 30": 0.025,
    "layer scale 1e-4": 0,
    "head in float16": "ZeroDivisionError('float division by zero')",
    "beta1 0.8": 0,
    "shuffle documents anew": 0,
    "batch size 48": 0.02,
    "tie embeddings": 0,
    "longer warmdown 60 %": 0,
    "weight decay to zero": 0,
    "norm of queries and keys": 0.025,
    "rotary base 200k": 0,
    "squared ReLU": 0.01,
    "beta2 0.99": 0,
    "gradient noise": -0.02,
    "value embeddings": 0.03,
    "init head at zero": 0,
    "warmup 50 steps": 0,
    "batch size 96": "RuntimeError('CUDA out of memory')",
    "sandwich norm": 0,
    "bias in projections": 0,
    "Nesterov off": 0,
    "skip from first layer": 0.02,
    "window of 256 tokens": -0.03,
    "heads of 64": 0,
    "clip at 2.0": 0,
    "cosine for linear": 0,
    "SwiGLU, same size": 0,
    "epsilon 1e-10": 0,
    "embedding x3 rate": 0.02,
    "label noise 1 %": -0.02,
    "parallel blocks": 0,
    "sinks in attention": 0,
    "float8 matrices": "TypeError('no kernel for float8')",
    "half the value heads": 0,
    "weight decay 0.05": 0,
    "gate on each head": 0.03,
    "warmdown to 5 %": 0,
    "one norm less a block": 0,
    "dropout 0.02": 0,
    "pad vocabulary to 128": 0,
    "scale scores by 0.12": 0,
    "momentum 0.97": 0,
    "stochastic depth": -0.02,
    "seed of the shuffle": 0,
}
SETTINGS = """\
[run]
command = "python3 train.py {flags}"
seed = "inject"
[metric]
pattern = '^val_bpb:\\s*(\\S+)'
direction = "lower"
"""
#: What the names of pictures end with -> their colours.
COLOURS = {
    "": {
        "paper": "#ffffff",
        "ink": "#1c1f23",
        "soft": "#565d66",
        "line": "#d9d8d2",
        "kept": "#1c7a3a",
        "crash": "#a8321a",
    },
    "_dark": {
        "paper": "#0d1117",
        "ink": "#e6edf3",
        "soft": "#9da7b3",
        "line": "#30363d",
        "kept": "#6fcf8d",
        "crash": "#ff9a7d",
    },
}
STYLE = (
    "svg{background:$paper}text{font:12px system-ui,sans-serif;fill:$soft}.x{text-anchor:middle}.y{text-anchor:end}"
    ".grid{stroke:$line}.base{stroke:$soft}.band{fill:$soft;opacity:.2}.line{fill:none}"
    ".level{stroke:$kept;stroke-width:2.2}.best{stroke:$soft;stroke-dasharray:3 2.5}"
    ".mark{fill:$paper;stroke:$soft;stroke-width:1.3}.kept .mark{fill:$kept;stroke:$kept}.crashed .mark{stroke:$crash}"
    ".name{font-size:11px;font-weight:600;fill:$ink;paint-order:stroke;stroke:$paper;stroke-width:3px}.said{font-size:14px;fill:$ink}"
)
KEY = (
    '<g class="kept"><circle class="mark" cx="58" cy="-56" r="5"/></g><text class="said" x="70" y="-51">kept</text>'
    '<circle class="mark" cx="128" cy="-56" r="4"/><text class="said" x="140" y="-51">not kept</text>'
    '<g class="crashed"><path class="mark" d="M226 -60l8 8m0-8l-8 8"/></g>'
    '<text class="said" x="242" y="-51">crashed</text>'
    '<path class="band" d="M320 -63h26v14h-26z"/><text class="said" x="354" y="-51">what luck alone gives</text>'
    '<path class="line level" d="M52 -31h26"/><text class="said" x="86" y="-26">what is kept</text>'
    '<path class="line best" d="M320 -31h26"/><text class="said" x="354" y="-26">best so far, which greedy keeps</text>'
    '<text x="8" y="-2">val_bpb, lower is better</text>'
)
#: Where the data of the progress begins, and the width of a letter of a name.
LEFT, LETTER = 52, 7.4
#: Tries that the picture of the first page lists, and where their columns are.
NEWEST, COLUMNS = 6, (20, 200, 370, 520, 600, 660)


def play(folder: Path) -> None:
    """Try every idea in a new folder, as a loop does that is a program."""
    shutil.copy(LOOP / "train.py", folder)
    folder.joinpath("plumbline.toml").write_text(SETTINGS, encoding="utf-8")
    names = {"GIT_AUTHOR_NAME": "loop", "GIT_AUTHOR_EMAIL": "loop@example.org"}
    names |= {key.replace("AUTHOR", "COMMITTER"): value for key, value in names.items()}
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    environment = os.environ | names | {"PATH": path, "XDG_STATE_HOME": str(folder.parent / "state")}

    def call(*command: str) -> int:
        return subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL).returncode

    for command in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "start"]):
        call("git", *command)
    for name, effect in IDEAS.items():
        trainer = folder / "train.py"
        before, changes, after = re.split(r"CHANGES = \[(.*)\].*", trainer.read_text(encoding="utf-8"))
        changes += f"{effect}, " if isinstance(effect, float) else ""
        text = f"{before}CHANGES = [{changes}]  # {name}{after}"
        if isinstance(effect, str):
            text = text.replace('print("---")', f"raise {effect}")
        trainer.write_text(text, encoding="utf-8")
        code = call(str(LOOP / "decide.sh"), name, "--trust")
        print(f"{name}: {code}", flush=True)
        if code not in (0, 10, 11, 12):
            call("git", "restore", "--staged", "--worktree", ".")


def keep(folder: Path) -> None:
    """Pack what the pages are made from."""
    own = folder / ".plumbline"
    names = ["plumbline.toml", ".plumbline/decisions.jsonl", ".plumbline/runs.jsonl"]
    for below in ("pages/*", "runs/*.result.json", "logs/*/*.log"):
        names += [path.relative_to(folder).as_posix() for path in sorted(own.glob(below))]
    with tarfile.open(KEPT, "w:xz", preset=9) as archive:
        for name in names:
            content = folder.joinpath(name).read_bytes().replace(os.fsencode(folder), b"/night")
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))


def build(out: Path) -> None:
    """Write the workbench of the kept night, the same bytes every time, without what makes it 3 MB: the numbers behind
    its pages, the pictures of what was not kept, and the pages of runs that ended well, whose links lead to Compare.
    """
    with tempfile.TemporaryDirectory() as place, tarfile.open(KEPT) as archive:
        folder = Path(place, "a night of tries")
        for entry in archive:
            path = folder / entry.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(archive.extractfile(entry).read())
        write_workbench(folder, out / "index.html")
    tries: dict[str, str] = {}
    for page in out.glob("runs/*.html"):
        text = page.read_text(encoding="utf-8")
        if '<h1 class="run"><span class="badge good">' in text:
            tries[page.stem] = re.search(r'href="\.\./(experiments/[^"]*)"', text)[1]
            page.unlink()
    for page in out.rglob("*.html"):
        text = re.sub(r'<a href="[^"]*">(?:md|json)</a>', "", page.read_text(encoding="utf-8"))
        if page.parent.name == "experiments" and '<p class="by"><span class="badge good">' not in text:
            text = re.sub(r'<figure class="picture".*?</figure>|<a href="[^"]*">svg</a>', "", text)
            text = text.replace('<p class="along">Files: </p>', "")
            out.joinpath("files", "experiment", f"{page.stem}.svg").unlink(missing_ok=True)
        page.write_text(_change_links(text, tries, page.name == "compare.html"), encoding="utf-8")
    for path in out.glob("files/*/*"):
        if path.suffix != ".svg":
            path.unlink()


def _change_links(text: str, tries: dict[str, str], on_compare: bool) -> str:
    """Lead from a run without a page to Compare, and from there to the page of the change that it was made for."""

    def change(match: re.Match[str]) -> str:
        root, run = match.groups()
        if run not in tries:
            return match[0]
        return tries[run] if on_compare else f"{root}compare.html#show={run}"

    return re.sub(r"((?:\.\./)?)runs/(\w+)\.html", change, text)


def draw(page: str, colours: dict[str, str]) -> str:
    """The progress of a workbench's first page as a picture of its own, with its key above it."""
    (drawn,) = re.findall(
        r'<svg class="curve progress" viewBox="0 0 640 300" role="group" (.*?)</svg>', page, re.DOTALL
    )
    drawn = re.sub(r'<title>.*?</title>|<circle class="aim"[^>]*>', "", drawn)
    drawn = re.sub(r'<a href="[^"]*" tabindex="-1"', "<g", drawn).replace("</a>", "</g>")
    drawn = re.sub(r'cx="([\d.]+)" cy="([\d.]+)" r="4.2"/>\s*<text class="name"[^>]*>([^<]*)', _place_name, drawn)
    style = re.sub(r"\$(\w+)", lambda match: colours[match[1]], STYLE)
    head = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 -70 640 370" role="img"'
    return f"{head} {drawn}<style>{style}</style>{KEY}</svg>\n"


def draw_all(page: str) -> dict[Path, str]:
    """The progress of a workbench and its first page, each in light colours and in dark ones, by their files."""
    pictures = {"night": draw, "workbench": draw_front}
    return {
        ROOT / "docs" / "_assets" / f"{name}{end}.svg": paint(page, colours)
        for name, paint in pictures.items()
        for end, colours in COLOURS.items()
    }


def draw_front(page: str, colours: dict[str, str]) -> str:
    """The upper part of a workbench's first page as a picture: what was tried last, the progress, the newest tries."""
    (title,) = re.findall(r"<h1>(.*?)</h1>", page)
    ((name, end, sentence),) = re.findall(
        r'Tried last: <a[^>]*>(.*?)</a> <span[^>]*>(.*?)</span>.*?<p class="headline">(.*?)</p>', page, re.DOTALL
    )
    above = [f"Tried last: {name}, {end}", *textwrap.wrap(unescape(sentence), 84)]
    (table,) = re.findall(r'<section class="table" id="tried">(.*?)</section>', page, re.DOTALL)
    lines = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL)]
    rows = [[re.sub(r"<[^>]*>", "", cell) for cell in line[:6]] for line in lines[: 1 + NEWEST]]
    parts = [
        f'<text class="title" x="20" y="36">{title}</text><text class="y" x="660" y="36">Runs&#160; Compare</text>'
    ]
    parts += ['<path class="grid" d="M1 52H679"/>']
    parts += [f'<text class="said" x="20" y="{78 + 18 * at}">{escape(line)}</text>' for at, line in enumerate(above)]
    top = 88 + 18 * len(above)
    progress = draw(page, colours).replace("<svg ", f'<svg x="20" y="{top}" width="640" height="370" ', 1)
    for at, row in enumerate(rows):
        y = top + 400 + 20 * at
        parts.append(f'<path class="{"grid" if at else "base"}" d="M20 {y + 6}H660"/>')
        for cell, x, side in zip(row, COLUMNS, ("", "", *["y"] * 4)):
            parts.append(f'<text class="{side or "left"}{"" if at else " head"}" x="{x}" y="{y}">{cell}</text>')
    height = top + 400 + 20 * len(rows)
    style = (
        ".title{font:600 20px Georgia,serif;fill:$ink}.head{font-weight:600;fill:$ink}.frame{fill:$paper;stroke:$line}"
    )
    style = re.sub(r"\$(\w+)", lambda match: colours[match[1]], style)
    frame = f'<rect class="frame" x=".5" y=".5" width="679" height="{height - 1}" rx="6"/>'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 680 {height}" role="img"'
    return f'{head} aria-label="{title}"><style>{style}</style>{frame}{"".join(parts)}{progress.strip()}</svg>\n'


def _place_name(match: re.Match[str]) -> str:
    """To the left of its mark and below it, where nothing is before a keep; above, where there is no room."""
    x, y, name = float(match[1]), float(match[2]), match[3]
    room = x - 7 - LETTER * len(name) - LEFT
    anchor, left, top = ("end", x - 7, y + 14) if room > 0 else ("start", LEFT + 2, y + 14)
    if room < -12:
        left, top = x + 3, y - 25
    mark = f'cx="{match[1]}" cy="{match[2]}" r="4.2"/>'
    return f'{mark}<text class="name" text-anchor="{anchor}" x="{left:.1f}" y="{top:.1f}">{name}'


def main() -> None:
    """Draw the picture for light pages and for dark ones; with `again`, of another night."""
    with tempfile.TemporaryDirectory() as place:
        if sys.argv[1:] == ["again"]:
            folder = Path(place, "night")
            folder.mkdir()
            play(folder)
            keep(folder)
        build(Path(place, "pages"))
        page = Path(place, "pages", "index.html").read_text(encoding="utf-8")
    for picture, text in draw_all(page).items():
        picture.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
