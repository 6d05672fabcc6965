"""Copies the files that pages link to. Others may have written them: opened alone, none runs a script or loads
anything.
"""

from __future__ import annotations

import re
import shutil
from html import escape
from pathlib import Path
from xml.parsers import expat

#: What is put before the first byte of a page that does not begin as Plumbline's do, and so holds for all of it.
_POLICY = (
    '<!doctype html><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
    "base-uri 'none'; form-action 'none'; img-src data:; style-src 'unsafe-inline'\">\n"
)
#: How those begin: nothing that runs or loads stands before their policy.
_OWN = re.compile(
    rb"""<!doctype html>\s*<html lang="en">\s*<head>\s*<meta charset="utf-8">\s*"""
    rb"""(?:<title>[^<]*</title>\s*|<meta name="[^"<>]*" content="[^"<>]*">\s*)*"""
    rb"""<meta http-equiv="Content-Security-Policy" content="default-src 'none'; base-uri 'none'; form-action 'none'"""
    rb"""(?:; (?:img-src|style-src)(?: 'self'| file:| data:| 'unsafe-inline')+)*">"""
)
#: The elements of Plumbline's pictures, and of the facts that matplotlib writes into one.
_ELEMENTS = {
    *("svg", "title", "desc", "style", "rect", "path", "text", "tspan", "circle", "line", "g", "defs", "use"),
    *("clipPath", "image", "metadata", "RDF", "Work", "date", "type", "creator", "Agent", "format"),
}
#: What a style or an attribute of theirs never has, but for one that is a text: what loads, or an escape that may.
_LOADS = re.compile(r"@(?!media\b)|\\|url\(\s*+['\"]?+(?!#)|image-set|src\(", re.IGNORECASE)
_TEXTS = ("aria-label", "class", "id")
_REFUSED = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 60" width="640" height="60">'
    '<text x="10" y="35" font-family="sans-serif">Not copied: {}</text></svg>\n'
)


def copy_file(source: Path, target: Path, back: str = "") -> None:
    """Copy a file for a report: a page under a policy, and for a picture that may do more than be seen a note on it.

    `back`: HTML that leads back to the report, which a page of Plumbline begins with; others' stay as they are.
    """
    if target.suffix == ".html":
        page = source.read_bytes()
        linked_page = page.replace(b"<body>", b"<body>" + back.encode(), 1)
        target.write_bytes(linked_page if _OWN.match(page) else _POLICY.encode() + page)
    elif target.suffix == ".svg" and (fault := find_fault(source.read_bytes())):
        target.write_text(_REFUSED.format(escape(f"{source.name} {fault}")), encoding="utf-8")
    else:
        shutil.copyfile(source, target)


def find_fault(picture: bytes) -> str:
    """Find what a picture has that those of Plumbline have not, and that may run or load something; empty if nothing.

    A picture that is opened alone has no policy.
    """
    faults: list[str] = []
    styles: list[str] = []

    def read_element(name: str, attributes: dict[str, str]) -> None:
        element = name.rpartition("\n")[2]
        if element not in _ELEMENTS:
            faults.append(f"has an element {element:.40}")
        parser.CharacterDataHandler = styles.append if element == "style" else None
        for full_name, value in attributes.items():
            attribute = full_name.rpartition("\n")[2]
            loads = attribute not in _TEXTS and bool(_LOADS.search(value))
            if attribute == "href":
                loads = not value.startswith(("#", "data:image/png"))
            if loads or attribute.lower().startswith("on") or attribute == "base":
                faults.append(f"has an attribute {attribute:.40} that may load or run something")

    def read_declaration(version: str, encoding: str | None, standalone: int) -> None:
        if (encoding or "utf-8").lower() != "utf-8":
            faults.append(f"is written in {encoding:.40}")

    parser = expat.ParserCreate("utf-8", "\n")
    parser.StartElementHandler, parser.XmlDeclHandler = read_element, read_declaration
    parser.ProcessingInstructionHandler = lambda target, data: faults.append(f"has an instruction {target:.40}")
    parser.EntityDeclHandler = lambda name, *details: faults.append(f"declares {name:.40}")
    parser.AttlistDeclHandler = lambda element, *details: faults.append(f"declares attributes of {element:.40}")
    try:
        parser.Parse(picture, True)
    except expat.ExpatError as error:
        faults.append(f"is not well-formed ({error})")
    if _LOADS.search("".join(styles)):
        faults.append("has a style that loads something")
    return faults[0] if faults else ""
