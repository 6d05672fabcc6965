"""What docs/night.md states: its commands run, and its agent's ideas end as the page says."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from benchmarks.try_by_exit_codes import set_up


def test_a_night_goes_as_the_page_says(repository: Path, tmp_path: Path) -> None:
    page = (repository / "docs/night.md").read_text(encoding="utf-8")
    (tmp_path / "examples").symlink_to(repository / "examples")
    environment = set_up(tmp_path / "another")
    (agent,) = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    evening, run_agent, morning = re.findall(r"```console\n(.*?)```", page, re.DOTALL)
    script = "\n".join([evening, f"cat > agent.sh <<'END'\n{agent}END", run_agent, morning]).replace("\n$ ", "\n")
    command = ["sh", "-c", script.removeprefix("$ ")]
    process = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert process.returncode in (0, 10, 11), process.stderr[-3000:]
    folder = tmp_path / "night"
    rows = [line.split("\t")[3:5] for line in (folder / "results.tsv").read_text().splitlines()[1:]]
    ideas = re.findall(r"^(\S+) (.*)$", agent.partition("IDEAS\n")[2], re.MULTILINE)
    assert [words for _, words in rows[1:]] == [words for _, words in ideas]
    for (status, _), (gain, _) in zip(rows[1:], ideas, strict=True):
        assert status in (("crash",) if "/" in gain else ("keep", "discard") if gain > "0" else ("discard",)), rows
    kept = subprocess.run(["git", "log", "--format=%s"], cwd=folder, capture_output=True, text=True).stdout.split("\n")
    assert [words for status, words in rows[1:] if status == "keep"] == kept[-3::-1] and len(kept) > 2
    assert (folder / ".plumbline/report/index.html").is_file()
