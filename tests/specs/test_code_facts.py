"""Facts of source files that a process leaves for the next one: those of their bytes, and no others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

#: Hashes a file's code, and tells how many files were parsed for it.
SCRIPT = """
import ast, sys
from pathlib import Path
parsed, parse = [], ast.parse
ast.parse = lambda *given, **options: parsed.append(1) or parse(*given, **options)
from plumbline.specs import code_facts, code_hash
code_facts.keep_facts_at_exit()
print(code_hash.tree_hash([Path(sys.argv[1])]), len(parsed))
"""


@pytest.mark.parametrize("damaged", [b"{", b'{"reader": 1}', None])
def test_what_one_process_read_the_next_one_need_not(tmp_path: Path, damaged: bytes | None) -> None:
    """As long as the bytes are the same, wherever they lie; a damaged file of facts is written anew."""
    home, source, moved = tmp_path / "home", tmp_path / "source.py", tmp_path / "there" / "source.py"
    source.write_text("VALUE = 1\n")

    def hash_and_parses(path: Path) -> list[str]:
        command = [sys.executable, "-c", SCRIPT, str(path)]
        environment = os.environ | {"XDG_CACHE_HOME": str(home)}
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.split()

    first, parses = hash_and_parses(source)
    assert parses == "1"
    (file,) = home.rglob("*.json")
    if damaged is None:
        other = json.loads(file.read_text())
        facts = {key: ["0" * 64, *rest] for key, (_, *rest) in other["facts"].items()}
        file.write_text(json.dumps({"reader": "another version of the reader", "facts": facts}))
        assert hash_and_parses(source) == [first, "1"]
        moved.parent.mkdir()
        moved.write_bytes(source.read_bytes())
        assert hash_and_parses(moved) == [first, "0"]
        source.write_text("VALUE = 2\n")
        second, parses = hash_and_parses(source)
        assert second != first and parses == "1"
        home.rename(tmp_path / "lost")
        home.touch()  # no folder: nothing can be kept
        assert hash_and_parses(source) == hash_and_parses(source) == [second, "1"]
    else:
        file.write_bytes(damaged)
        assert hash_and_parses(source) == [first, "1"]
        assert hash_and_parses(source) == [first, "0"]
