"""Takes the pictures of README and of pages from a kept record, or draws those that no run is behind, for light pages
and for dark ones.

python docs/_site/pictures.py      # writes docs/_assets/<name>.svg and <name>_dark.svg of each
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from plumbline.bundle import archive
from plumbline.project.paths import BUNDLE

ROOT = Path(__file__).resolve().parents[2]
#: The record, its pictures, and the one that came later and is drawn from printed numbers alone.
RECORD = ROOT / "records" / "evening-38f80c4"
KEPT, DRAWN = ("method_differences", "protocol_power"), ("protocol_thresholds",)
#: Where the pictures are kept.
ASSETS = ROOT / "docs" / "_assets"
#: Colours of the figures' style -> those of the same meaning on a dark page.
DARK = {
    "#ffffff": "#0d1117",
    "#000000": "#e6edf3",
    "#dddddd": "#30363d",
    "#6b6b6b": "#9da7b3",
    "#0072b2": "#56b4e9",
    "#d55e00": "#f0883e",
    "#e69f00": "#e69f00",
}


def light(name: str) -> bytes:
    """A picture as the record has it, or as its target is drawn."""
    if name in KEPT:
        return archive.read_file(RECORD / BUNDLE, f"results/evening/transfer/{name}.svg")
    with tempfile.TemporaryDirectory() as folder:
        figure = ["figure", "transfer", name, "--preset", "evening", "--out", f"{folder}/{name}.png"]
        subprocess.run([sys.executable, "-m", "plumbline", *figure], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        return Path(folder, f"{name}.svg").read_bytes()


def dark(picture: bytes) -> bytes:
    """The same picture for a dark page.

    Raises:
        KeyError: it has a colour that `DARK` does not know.
    """
    text = re.sub(r"#[0-9a-f]{6}\b", lambda match: DARK[match[0]], picture.decode())
    # What matplotlib fills without saying so is black.
    return text.replace('<g id="figure_1">', f'<g id="figure_1" fill="{DARK["#000000"]}">', 1).encode()


def main() -> None:
    """Write both of each."""
    for name in (*KEPT, *DRAWN):
        picture = light(name)
        (ASSETS / f"{name}.svg").write_bytes(picture)
        (ASSETS / f"{name}_dark.svg").write_bytes(dark(picture))


if __name__ == "__main__":
    main()
