"""Studies are found by their folders and imported by path, each project's own; what is wrong with one is reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.core.errors import PlumblineError
from plumbline.specs import code_hash, installed_packages, study_folders, study_parts
from plumbline.specs.yaml_files import studies
from tests.forget_caches import forget


def write_files(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / "studies/own" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_each_project_has_its_own_code_of_one_name(tmp_path: Path) -> None:
    """And what was imported first is the same module when its project has its turn again."""
    table = "from ..shared import NAME\n\n\ndef name():\n    return NAME\n"
    roots = [
        write_files(tmp_path / name, {"study.yaml": "", "shared.py": f"NAME = {name!r}\n", "tables/name.py": table})
        for name in ("one", "two")
    ]
    functions = [study_parts.function("own", "tables", "name", root) for root in (*roots, *roots)]
    assert [function() for function in functions] == ["one", "two", "one", "two"]
    assert functions[0] is functions[2] and functions[1] is functions[3]


def test_a_folder_that_holds_no_study_is_told_and_stops_nothing(tmp_path: Path) -> None:
    write_files(tmp_path, {"notes.md": "", "studie.yaml": ""})
    assert "own" not in studies(tmp_path)
    [warning] = study_folders.list_non_studies(tmp_path)
    assert warning.startswith(f"{tmp_path}/studies/own ") and "no study.yaml and no published" in warning
    assert warning.endswith("did you mean 'study.yaml'?")


def test_pythons_cache_of_another_branch_is_no_study(tmp_path: Path) -> None:
    write_files(tmp_path, {"__pycache__/tables.cpython-311.pyc": ""})
    assert "own" not in study_folders.folders(tmp_path) and not study_folders.list_non_studies(tmp_path)


def test_code_that_fails_is_told_with_its_file(tmp_path: Path) -> None:
    root = write_files(tmp_path, {"study.yaml": "", "audit.py": "import nothing_of_this_name\n"})
    with pytest.raises(PlumblineError, match=r"'own' .*own/audit.py\): ModuleNotFound"):
        study_parts.part("own", "audit", root)


def test_code_that_is_no_python_is_told_with_its_file_and_line(tmp_path: Path) -> None:
    """When it is planned, and when another module imports it."""
    files = {"study.yaml": "", "tables/name.py": "def name():\n    return\n", "tables/other.py": "\n\ndef (\n"}
    root = write_files(tmp_path, files | {"audit.py": "from .tables import other\n"})
    with pytest.raises(PlumblineError, match=r"own/tables/other.py:3 is not Python: invalid syntax$"):
        study_parts.file("own", "tables", "other", root)
    with pytest.raises(PlumblineError, match=r"own/tables/other.py:3 is not Python: invalid syntax$"):
        code_hash.product_files(root / "studies/own/audit.py")
    with pytest.raises(PlumblineError, match=r"cannot be imported \(.*own/tables/other.py:3\): SyntaxError"):
        study_parts.part("own", "audit", root)


def test_what_is_misspelt_and_so_read_by_nobody_is_named(tmp_path: Path) -> None:
    files = {"study.yaml": "", "findngs.yaml": "", "tabels/name.py": "", "claim.py": "", "published/clams.yaml": ""}
    root = write_files(tmp_path, files | {"shared.py": "", "findings_of_others.yaml": "", "published/table1.csv": ""})
    place = root / "studies/own"
    assert study_folders.misspelt(place) == [
        f"nothing reads {place}/claim.py; did you mean 'claims'?",
        f"nothing reads {place}/findngs.yaml; did you mean 'findings.yaml'?",
        f"nothing reads {place}/published/clams.yaml; did you mean 'published/claims.yaml'?",
        f"nothing reads {place}/tabels; did you mean 'tables'?",
    ]
    with pytest.raises(PlumblineError, match=r"'own'.*no tables.*'tables'"):
        study_parts.file("own", "tables", "name", root)


@pytest.mark.parametrize("line", ["from ....other import x", "from plumbline.studies.other import x"])
def test_import_of_another_study_is_refused_when_it_is_planned(tmp_path: Path, line: str) -> None:
    root = write_files(tmp_path, {"study.yaml": "", "tables/name.py": f"def name():\n    {line}\n"})
    with pytest.raises(PlumblineError, match=r"copy what another (one|study) has"):
        code_hash.product_files(study_parts.file("own", "tables", "name", root))


def test_a_package_brings_a_study_and_is_told_what_it_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site"

    def bring(package: str, *files: str) -> None:
        for name in (f"{package}/__init__.py", *files, f"{package}.dist-info/METADATA"):
            (site / name).parent.mkdir(parents=True, exist_ok=True)
            (site / name).write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n" * name.endswith("DATA"))
        (site / f"{package}.dist-info/entry_points.txt").write_text(f"[plumbline.studies]\nwide = {package}\n")
        forget(installed_packages)

    bring("wide_is_fast")
    monkeypatch.syspath_prepend(site)
    with pytest.raises(PlumblineError, match=r"'wide'.*wide_is_fast.*no study.yaml"):
        studies(tmp_path)
    bring("wide_is_fast", "wide_is_fast/study.yaml")
    assert study_folders.folder("wide", tmp_path) == site / "wide_is_fast"
    bring("wide_too", "wide_too/study.yaml")
    with pytest.raises(PlumblineError, match=r"provide.*'wide' \(\S+ and \S+\);.*uninstall"):
        studies(tmp_path)
    monkeypatch.undo()
    forget(installed_packages)
