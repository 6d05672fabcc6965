"""Checks that nothing of anybody's data became a part of a page or picture: by its elements, as a parser reads them."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

from tests.report.headless_browser import Browser

#: The elements of all pages, and of pictures.
_ELEMENTS = """
a abbr article aside b blockquote body br button circle cite code dd desc details div dl dt em figcaption figure footer
form g h1 h2 h3 h4 h5 h6 head header hr html i img input label legend li link main meta nav noscript ol option p path
pre rect section select small span strong style summary svg table tbody td text th thead title tr u ul wbr
"""
_SVG_ELEMENTS = """
svg title desc style rect path text tspan circle line g defs use clipPath image
metadata RDF Work type creator Agent format
"""
ELEMENTS, SVG_ELEMENTS = frozenset(_ELEMENTS.split()), frozenset(_SVG_ELEMENTS.split())
#: What a policy must forbid where it does not say more, and what lets in scripts of others.
FORBIDDEN = ("default-src 'none'", "base-uri 'none'", "form-action 'none'")
LOOSE = ("'unsafe-inline'", "'unsafe-eval'", "'unsafe-hashes'", "http:", "https:", "*", "data:", "blob:")


class PageParser(HTMLParser):
    """Reads a page as a browser does, and collects what is wrong with it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.faults: list[str] = []
        self.policies: list[str] = []
        self.inside = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.inside = tag
        if tag not in ELEMENTS and tag != "script":
            self.faults.append(f"an element <{tag}>")
        self.faults += [f"an attribute {name} of <{tag}>" for name in values if re.match("on|srcdoc|hostile", name)]
        if "hostile" in values.get("style", ""):
            self.faults.append(f"a style of <{tag}>")
        if tag == "meta" and "http-equiv" in values:
            self.policies.append(values.get("content", ""))
            if values["http-equiv"] != "Content-Security-Policy":
                self.faults.append(f"a meta element {values['http-equiv']}")
        elif tag in ("script", "style", "link", "img", "body") and not self.policies:
            self.faults.append(f"<{tag}> stands before the policy")
        if tag == "script" and "src" not in values and values.get("type") != "application/json":
            self.faults.append("a script in the page")
        for name in ("src", "srcset", "data", "action", "formaction", "poster"):
            if re.match(r"\s*(?!data:image)([a-z]+:|//)", values.get(name, ""), re.I):
                self.faults.append(f"{name} of <{tag}> is {values[name]:.60}")
        for name in ("href", "xlink:href"):
            scheme = re.match(r"[\s\0-\x1f]*([\w+.-]+):", values.get(name, ""))
            if scheme and scheme[1].lower() not in (("data",) if tag == "link" else ("http", "https")):
                self.faults.append(f"{name} of <{tag}> is {values[name]:.60}")

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_comment(self, data: str) -> None:
        self.faults.append(f"a comment {data:.40}")

    def handle_data(self, data: str) -> None:
        if self.inside == "style" and "hostile" in data and re.search(r"@import|url\(|\}\*\{", data):
            self.faults.append(f"a style {data[-80:]}")
        if self.inside == "script" and data.strip():
            json.loads(data)
            if set("<>&\u2028\u2029") & set(data):
                self.faults.append("JSON that may end its element")


def check_page(path: Path) -> None:
    """Fail if data became a part of a page, or its policy would let it."""
    text = path.read_text(encoding="utf-8")
    parser = PageParser(text)
    assert parser.faults == [], (path, parser.faults)
    assert len(parser.policies) == 1, path
    rules = [rule.strip() for rule in parser.policies[0].split(";")]
    assert set(FORBIDDEN) <= set(rules), (path, rules)
    for rule in rules:
        if rule.split()[0] in ("script-src", "script-src-elem", "script-src-attr", "object-src", "frame-src"):
            assert not set(rule.split()[1:]) & set(LOOSE), (path, rule)
    assert not re.search("[\u2028\u2029\u202e\x1b]", text), path


def check_picture(path: Path) -> None:
    """Fail if data became a part of a picture, which has no policy where it is opened alone."""
    text = path.read_text(encoding="utf-8")
    assert "<!ENTITY" not in text and "<?xml-stylesheet" not in text, path
    for element in ElementTree.fromstring(text).iter():
        tag = str(element.tag).rpartition("}")[2]
        assert tag in SVG_ELEMENTS, (path, tag)
        for name, value in element.attrib.items():
            own = name.rpartition("}")[2]
            assert not own.lower().startswith("on"), (path, tag, own)
            assert own != "href" or value.startswith(("#", "data:image/png")), (path, tag, value)
            assert own != "style" or "hostile" not in value, (path, tag, value)
        assert tag != "style" or "hostile" not in (element.text or ""), path


def check_in_browser(chromium: Browser, *paths: Path) -> None:
    """Open files as pages of their own, and fail if something in them runs or asks for something."""
    for path in paths:
        before = len(chromium.requests)
        chromium.open(path)
        chromium.run("document.querySelectorAll('*').forEach(each => each.dispatchEvent(new Event('mouseover')))")
        assert chromium.run("typeof hostile") == "undefined", path
        requests = chromium.requests[before:]
        assert [url for url in requests if "hostile.png" in url or not url.startswith(("file:", "data:"))] == [], path
