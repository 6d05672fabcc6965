"""Takes the picture of README and of the site's first page from a kept record, for light pages and for dark ones.

python docs/_site/pictures.py      # writes docs/_assets/method_differences.svg and method_differences_dark.svg
"""

from __future__ import annotations

import re
from pathlib import Path

from plumbline.bundle import archive
from plumbline.project.paths import BUNDLE

ROOT = Path(__file__).resolve().parents[2]
#: The record, and its picture in the archive.
RECORD, PICTURE = ROOT / "records" / "evening-38f80c4", "results/evening/transfer/method_differences.svg"
#: Where the pictures are kept.
ASSETS = ROOT / "docs" / "_assets"
#: Colours of the figures' style -> those of the same meaning on a dark page.
DARK = {
    "#ffffff": "#0d1117",
    "#000000": "#e6edf3",
    "#dddddd": "#30363d",
    "#6b6b6b": "#9da7b3",
    "#0072b2": "#56b4e9",
    "#e69f00": "#e69f00",
}


def light() -> bytes:
    """The picture as the record has it."""
    return archive.read_file(RECORD / BUNDLE, PICTURE)


def dark(picture: bytes) -> bytes:
    """The same picture for a dark page.

    Raises:
        KeyError: it has a colour that `DARK` does not know.
    """
    text = re.sub(r"#[0-9a-f]{6}\b", lambda match: DARK[match[0]], picture.decode())
    # What matplotlib fills without saying so is black.
    return text.replace('<g id="figure_1">', f'<g id="figure_1" fill="{DARK["#000000"]}">', 1).encode()


def main() -> None:
    """Write both."""
    picture = light()
    (ASSETS / "method_differences.svg").write_bytes(picture)
    (ASSETS / "method_differences_dark.svg").write_bytes(dark(picture))


if __name__ == "__main__":
    main()
