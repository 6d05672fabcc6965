"""A report of a world in which things went wrong, made once; and a browser, where there is one."""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.report import broken_projects, headless_browser


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project's folder with its report. Read only."""
    root, here = tmp_path_factory.mktemp("report"), Path.cwd()
    os.chdir(root)
    try:
        broken_projects.report(broken_projects.broken_project(root))
    finally:
        os.chdir(here)
    return root


@pytest.fixture(scope="session")
def pages(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report, carried to another place."""
    moved = tmp_path_factory.mktemp("elsewhere") / "a report"
    (project / "results/paper/report").rename(moved)
    return moved


@pytest.fixture(scope="session")
def shared_chromium() -> Iterator[headless_browser.Browser]:
    """A headless Chromium for all tests.

    PLUMBLINE_REQUIRE_BROWSER=1 makes an error of what is otherwise a reason to skip, and lets Debian's package be
    installed: nobody who just runs the tests finds a browser on their machine afterwards.
    """
    if headless_browser.find_browser() is None and os.environ.get("PLUMBLINE_REQUIRE_BROWSER") == "1":
        _install()
    program = headless_browser.find_browser()
    if program is None:
        pytest.skip("no browser: Chromium is not installed (PLUMBLINE_REQUIRE_BROWSER=1 installs it)")
    opened = headless_browser.Browser(program)
    yield opened
    opened.close()


@pytest.fixture
def chromium(shared_chromium: headless_browser.Browser) -> headless_browser.Browser:
    """The browser, which has heard and asked for nothing yet: another test's pages are not this one's."""
    shared_chromium.complaints.clear()
    shared_chromium.requests.clear()
    return shared_chromium


def _install() -> None:
    """Debian's browser without windows; one apt-get at a time, for the cluster's tests may install SLURM meanwhile."""
    with open("/tmp/plumbline-apt.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for args in (("update",), ("install", "-y", "--no-install-recommends", "chromium-headless-shell")):
            if headless_browser.find_browser() is None:
                environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
                process = subprocess.run(
                    ["apt-get", *args], stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment
                )
                assert process.returncode == 0, process.stderr[-2000:]
