"""A clock that was set back while a workflow ran: what was made before lies in the future."""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from plumbline.operate.preflight import clock


def test_a_file_from_the_future_and_its_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it Snakemake makes the product, finds it older than its input, and removes it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "work/packs").mkdir(parents=True)
    (tmp_path / "work/packs/base.json").touch()
    jobs = [SimpleNamespace(input=["work/packs", "work/packs/base.json", "work/none"])]
    assert clock.list_refusals(jobs) == []
    for path in ("work/packs/base.json", "work/packs"):
        os.utime(path, (time.time() + 3600, time.time() + 3600))
    (refusal,) = clock.list_refusals(jobs)
    assert re.match(r"work/packs \(and 1 more\) is stamped \d.* clock was set back", refusal)
    subprocess.run(refusal[refusal.index("find work ") :], shell=True, check=True)
    assert clock.list_refusals(jobs) == []
    assert os.path.getmtime("work/packs") == os.path.getmtime("work/packs/base.json"), "neither is older"
