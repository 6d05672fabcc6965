"""The documentation as a site: it builds with every link and anchor whole, takes nothing from elsewhere, and searches
from a disk."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from mkdocs.exceptions import PluginError

from tests.report import headless_browser

#: Words of the field -> where one of the answers stands.
SEARCHES = {
    "ledger": r"/statistics\.html\?h=ledger#the-ledger",
    "wandb": r"#watch-runs-in-a-tracker",
    "exit code": r"/command\.html.*#exit-codes",
    "lower is better": r"/(verdict|own-trainer|glossary)\.html",
    "multiple comparisons": r"/glossary\.html",
}


@pytest.fixture(scope="module")
def site(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site."""
    folder = tmp_path_factory.mktemp("docs") / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    process = subprocess.run(command, cwd=repository, env=environment, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr[-3000:]
    return folder


@pytest.fixture
def hooks(repository: Path) -> ModuleType:
    """What mkdocs is helped with."""
    spec = importlib.util.spec_from_file_location("hooks", repository / "docs/_site/hooks.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_has_a_first_page_every_page_and_the_docstrings(site: Path, repository: Path) -> None:
    docs = repository / "docs"
    for page in docs.rglob("*.md"):
        assert (site / page.relative_to(docs).with_suffix(".html")).is_file(), page.name
    assert "Three questions" in (site / "index.html").read_text()
    assert "noise floor" in (site / "python.html").read_text()


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        loaded = re.findall(r"<(?:script|link|img)[^>]*(?:src|href)=\"((?:https?:)?//[^\"]+)\"", page.read_text())
        assert loaded == [], page


def test_it_searches_from_a_disk_and_asks_nobody(site: Path) -> None:
    """A browser runs no worker for a page that was opened as a file; docs/_assets/iframe-worker.js stands in for it."""
    program = headless_browser.find_browser()
    if program is None:
        pytest.skip("no Chromium is installed")
    browser = headless_browser.Browser(program)
    try:
        for words, place in SEARCHES.items():
            browser.open(site / "quick.html", f"?q={words}")
            links = browser.run(
                "new Promise((done) => { const look = setInterval(() => {"
                " const links = [...document.querySelectorAll('.md-search-result__link')].map((one) => one.href);"
                " if (links.length) { clearInterval(look); done(links); } }, 50);"
                " setTimeout(() => done([]), 20000); })"
            )
            assert any(re.search(place, link) for link in links), (words, links)
        browser.open(site / "tutorial.html")
        copied = browser.run(
            "[...document.querySelectorAll('div.highlight code')].map((code) => {"
            " code.setAttribute('data-md-copying', ''); return code.innerText.trim(); })"
        )
        # As the site's copy button asks: commands alone, without prompt and output.
        assert copied[:2] == ["make setup && source .venv/bin/activate", "make quick METHOD=softpick"]
        browser.open(site / "targets.html")
        assert browser.run("document.querySelector('img[src$=\"rules.svg\"]').naturalWidth") > 0, "seen as a picture"
        for width in (390, 1280):
            browser.look(width=width)
            for name in ("index", "tutorial", "targets", "verdict"):
                browser.open(site / f"{name}.html")
                assert browser.run("document.documentElement.scrollWidth") <= width, (name, width)
        own = (site.resolve().as_uri(), "data:", "about:")
        assert [url for url in browser.requests if not url.startswith(own)] == []
        assert browser.complaints == []
    finally:
        browser.close()


def test_links_between_pages_of_the_repository_hold_on_the_site(site: Path) -> None:
    """Strict building checks what mkdocs knows; this checks what is there."""
    for page in site.rglob("*.html"):
        for link in re.findall(r"href=\"([^\"#:]+)(?:#[^\"]*)?\"", page.read_text()):
            if page.name != "404.html":
                assert (page.parent / link).exists(), (page.relative_to(site), link)


@pytest.mark.parametrize("path", ["gone.md", "../config/gone.yaml", "../../outside.md", "../src"])
def test_a_link_that_leads_nowhere_ends_the_build(hooks: ModuleType, path: str) -> None:
    page = SimpleNamespace(file=SimpleNamespace(src_uri="quick.md"))
    with pytest.raises(PluginError, match=r"docs/quick\.md links"):
        hooks.on_page_markdown(f"See [this]({path}).", page)
    whole = "[all](../config/config.yaml), [rules](../CONTRIBUTING.md#rules), [a site](https://example.org/../gone.md)"
    assert hooks.on_page_markdown(whole, page) == (
        "[all](source/config/config.yaml), [rules](contributing.md#rules), [a site](https://example.org/../gone.md)"
    )
