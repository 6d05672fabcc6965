"""What a wheel takes of a tree in which other things lie (setup.py)."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path


def test_a_wheel_takes_nothing_of_an_earlier_build(tmp_path: Path, repository: Path) -> None:
    tree, built = tmp_path / "tree", tmp_path / "built"
    package = tree / "src/plumbline"
    for path, text in {
        "__init__.py": "",
        "core/__init__.py": "",
        "../../config/a.yaml": "",
        "../../Snakefile": "",
    }.items():
        (package / path).parent.mkdir(parents=True, exist_ok=True)
        (package / path).write_text(text)
    shutil.copyfile(repository / "src/plumbline/core/package_data.py", package / "core/package_data.py")
    shutil.copyfile(repository / "setup.py", tree / "setup.py")
    git = ["git", "-C", str(tree), "-c", "user.name=t", "-c", "user.email=t@t"]
    for args in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "one"]):
        subprocess.run([*git, *args], check=True)
    (tree / "config/token.txt").write_text("a secret")
    (built / "plumbline").mkdir(parents=True)
    (built / "plumbline/gone.py").write_text("of an earlier build")
    command = [sys.executable, "setup.py", "-q", "build_py", "--build-lib", str(built)]
    subprocess.run(command, cwd=tree, check=True, capture_output=True)
    there = {path.relative_to(built / "plumbline").as_posix() for path in (built / "plumbline").rglob("*.*")}
    carried = {"_project/config/a.yaml", "_project/built.json"}
    assert there == {"__init__.py", "core/__init__.py", "core/package_data.py"} | carried
    assert (built / "plumbline/_project/Snakefile").is_file()
    facts = json.loads((built / "plumbline/_project/built.json").read_text())
    assert len(facts["git_commit"]) == 40 and facts["git_dirty"] is True, "what lies in config may change a run"
