"""Guards of `plumbline.toml`: what cannot be judged is refused before a run, and a broken one costs no fresh runs."""

from __future__ import annotations

import json
from pathlib import Path

from tests.operate.experiments.trainer_folder import banked, change, plumbline


def test_a_guard_withholds_a_keep(folder: Path) -> None:
    change(folder)
    toml, before = folder / "plumbline.toml", banked(folder)
    text = toml.read_text()
    toml.write_text(f'{text}[guard]\nmemory_bytes = "<= 1.05x"\n')
    process = plumbline(folder, "try", "-m", "better")
    assert process.returncode == 13 and "peak memory is guarded" in process.stdout + process.stderr
    assert banked(folder) == before and not list((folder / ".plumbline/pages").glob("*"))
    toml.write_text(f'{text}[guard]\nseconds = ">= 1000x"\n')  # a limit that no machine keeps
    report = json.loads(plumbline(folder, "try", "-m", "better", "--json").stdout)
    assert (report["verdict"], report["exit_code"], report["fresh"]) == ("discard", 10, [])
    assert report["comparability"]["guards"]["answer"] == "told"
    assert "`better` improves `val_loss` by 0." in report["sentence"]
    assert report["sentence"].endswith("and at least 1000 times is required.")
    assert len(banked(folder)) == len(before) + 2
    toml.write_text(f'{text}[guard]\nseconds = ">= 0.001x"\n')
    process = plumbline(folder, "try", "-m", "better")
    assert process.returncode == 1 and "by another rule" in process.stderr, "no limit is moved later"
