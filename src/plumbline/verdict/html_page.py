"""Turns the Markdown of a verdict's page into one HTML file with its picture inside, to open from disk or to send."""

from __future__ import annotations

import re

from markdown_it import MarkdownIt
from markupsafe import Markup

from plumbline.verdict.picture_parts import fill_template

#: Tags in the text are shown as text.
_READER = MarkdownIt("commonmark", {"html": False}).enable("table")
_IMAGE = re.compile(r"^!\[.*\]\(.*\)$", re.MULTILINE)


def make_html(title: str, markdown: str, picture: str) -> str:
    """Make the file.

    Args:
        title: of the window.
        markdown: the page; its one image is replaced.
        picture: the image as SVG.
    """
    before, _, after = _IMAGE.sub("\0", markdown, count=1).partition("\0")
    parts = [_READER.render(part).replace("<table>", '<div class="box"><table>') for part in (before, after)]
    top, rest = (Markup(part.replace("</table>", "</table></div>")) for part in parts)
    drawn = Markup(picture[picture.index("<svg") :])
    return fill_template("page.html.j2", title=title.replace("`", ""), top=top, picture=drawn, rest=rest)
