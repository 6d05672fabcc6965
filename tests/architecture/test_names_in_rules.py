"""What the Snakefile and the rules take of the package is there, also what only a run that trains would come to."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from types import ModuleType

from tests.architecture import rooms


def list_missing_names(text: str) -> list[str]:
    """List what a text imports, and takes of imported modules, that is not there."""
    missing = []
    for package, names in rooms.imports_of_rules(text):
        for name, alias in names.items():
            value = getattr(import_module(package), name, None) or import_module(f"{package}.{name}")
            if isinstance(value, ModuleType):
                attributes = sorted(set(re.findall(rf"(?<![\w.\"'/]){alias}\.(\w+)", text)))
                missing += [f"{alias}.{each}" for each in attributes if not hasattr(value, each)]
    return missing


def test_what_rules_take_of_the_package_is_there(repository: Path) -> None:
    texts = [path.read_text(encoding="utf-8") for path in sorted((repository / "workflow/rules").glob("*.smk"))]
    text = "\n".join([(repository / "Snakefile").read_text(encoding="utf-8"), *texts])
    assert list_missing_names(text) == [] and "snakemake_internals.include_other_processes" in text
    gone = text.replace("include_other_processes", "count_other_processes")
    assert set(list_missing_names(gone)) == {"snakemake_internals.count_other_processes"}
