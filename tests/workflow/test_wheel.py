"""The wheel does without the repository: installed where nothing else of it can be imported, it writes a project."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from plumbline import __version__
from plumbline.cli import ls
from plumbline.core import package_data
from tests.workflow.project_copy import CACHES, PIP_ELSEWHERE, jobs_by_rule

pytestmark = pytest.mark.workflow

#: What a build reads beside what travels.
BUILD = ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "CHANGELOG.md", "LICENSE", "src", "envs")
_BUILD = "import sys, setuptools.build_meta as backend; print(backend.build_{}(sys.argv[1]))"


def _run(*command: str | Path, cwd: Path, **environment: str) -> str:
    own = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    process = subprocess.run(
        [str(word) for word in command], cwd=cwd, env=own | environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600,
    )  # fmt: skip
    assert process.returncode == 0, process.stdout[-4000:]
    return process.stdout


@pytest.fixture(scope="module")
def wheel(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from a source distribution, which is built from a tree without git."""
    folder = tmp_path_factory.mktemp("build")
    tree = folder / "tree"
    for path in (*package_data.list_files(repository), *map(Path, BUILD)):
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        if (repository / path).is_dir():
            shutil.copytree(repository / path, tree / path, ignore=CACHES, dirs_exist_ok=True)
        else:
            shutil.copyfile(repository / path, tree / path)
    archive = folder / _run(sys.executable, "-c", _BUILD.format("sdist"), folder, cwd=tree).split()[-1]
    shutil.unpack_archive(archive, folder / "unpacked")
    (source,) = (folder / "unpacked").iterdir()
    return folder / _run(sys.executable, "-c", _BUILD.format("wheel"), folder, cwd=source).split()[-1]


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that has the wheel, and the dependencies of this one."""
    home = tmp_path_factory.mktemp("elsewhere")
    folder = home / "environment"
    _run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=home)
    python = folder / "bin" / "python"
    (packages,) = folder.glob("lib/python*/site-packages")
    # A .pth file of a folder that a .pth file names is not read: what is installed editable there cannot be imported.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    _pip(python, "install", "--no-deps", "--no-index", "--no-compile", wheel)
    return python


def test_a_wheel_carries_the_bill_of_materials_of_its_locks(wheel: Path, repository: Path, tmp_path: Path) -> None:
    _run(sys.executable, repository / "envs/write_sbom.py", "sbom.json", cwd=tmp_path)
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if ".dist-info/sboms/" in name]
        assert archive.read(name) == (tmp_path / "sbom.json").read_bytes()


def _pip(python: Path, *arguments: str | Path) -> str:
    """What this environment's pip does in another one."""
    return _run(python, PIP_ELSEWHERE, "--quiet", "--disable-pip-version-check", *arguments, cwd=python.parent)


@pytest.fixture(scope="module")
def installed(environment: Path) -> Callable[..., str]:
    """Runs a Python command in that environment."""
    home = environment.parents[2]

    def run(*arguments: str, cwd: Path = home) -> str:
        return _run(environment, *arguments, cwd=cwd, OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1", HOME=str(home))

    return run


@pytest.fixture(scope="module")
def project(installed: Callable[..., str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project that the wheel has written."""
    project = tmp_path_factory.mktemp("written") / "project"
    assert "snakemake -n results/table2.csv" in installed("-m", "plumbline", "init", str(project))
    return project


def test_a_wheel_writes_a_project_and_plans_it(installed: Callable[..., str], repository: Path, project: Path) -> None:
    script = (
        "import json, plumbline.core.provenance as p; "
        "print(json.dumps([p.__file__, p.describe_code(), p.lock_sha256()]))"
    )
    file, code, lock = json.loads(installed("-c", script))
    assert not Path(file).is_relative_to(repository)
    provenance = {"code_from": f"plumbline-lm {__version__}, a wheel", "git_commit": None, "git_dirty": None}
    assert code == provenance and lock is not None
    runs = json.loads(installed("-m", "plumbline", "ls", "runs", "--study", "transfer", "--json"))
    assert runs == ls.list_rows("runs", "transfer", "demo"), (
        "a wheel's runs are those of the repository, by their ids too"
    )

    assert {path.as_posix() for path in package_data.list_files(project)} == {
        path.as_posix() for path in package_data.list_files(repository)
    }
    process = installed("-m", "snakemake", "-n", "results/table2.csv", cwd=project)
    planned = jobs_by_rule(process)
    assert (planned["pretrain"], planned["evaluate"], planned["table"], sum(planned.values())) == (29, 29, 1, 72)


#: Carries out command lines of `plumbline` one after another, so that packages are imported once.
_VERBS = """
import sys
from plumbline.cli import main
for verb in {verbs!r}:
    sys.argv = ["plumbline", *verb]
    try:
        code = main()
    except SystemExit as end:
        code = end.code
    print("{mark}", flush=True)
    if code:
        raise SystemExit(code)
"""


def _carry_out(installed: Callable[..., str], project: Path, *verbs: Sequence[str]) -> list[str]:
    """What each of these command lines of `plumbline` prints in a project."""
    mark = "-- end of a verb --"
    return installed("-c", _VERBS.format(verbs=verbs, mark=mark), cwd=project).split(f"{mark}\n")[:-1]


def test_a_wheel_writes_into_its_project(installed: Callable[..., str], environment: Path, project: Path) -> None:
    study, _ = _carry_out(installed, project, ("new", "study", "normed_heads"), ("new", "method", "cooler"))
    assert "wrote studies/normed_heads/study.yaml" in study
    _pip(environment, "install", "--no-deps", "--no-index", "--no-build-isolation", "--editable", project / "my/cooler")
    try:
        tests = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "studies/normed_heads/tests")
        assert "7 passed" in installed(*tests, cwd=project), "the study's; a method's: tests/cli/test_new.py"
        command = ("try", "cooler", "--study", "cooler", "--preset", "smoke", "--dry-run")
        tried = installed("-m", "plumbline", *command, cwd=project)
        assert tried.startswith("cooler against baseline: ")
    finally:
        _pip(environment, "uninstall", "--yes", "cooler")
        shutil.rmtree(project / "studies/cooler")  # which names a method that is gone: lists warn of it


SIXTH = Path(__file__).with_name("sixth_study") / "studies" / "widths"
#: What a package states that brings the study.
PACKAGE = """
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "wide-is-fast"
version = "0.1.0"

[project.entry-points."plumbline.studies"]
widths = "wide_is_fast"

[tool.setuptools]
packages = ["wide_is_fast"]

[tool.setuptools.package-data]
wide_is_fast = ["**/*"]
"""


def _query_project(installed: Callable[..., str], project: Path) -> dict[str, object]:
    """What a project states about the sixth study: in its list, its audit, and a table without runs."""
    listed, runs, _ = _carry_out(
        installed, project,
        ("ls", "studies", "--json"),
        ("ls", "runs", "--study", "widths", "--preset", "smoke", "--json"),
        ("audit", "--study", "widths", "--out", "audit.csv"),
    )  # fmt: skip
    table = ("-m", "plumbline.results", "table", "widths", "losses", "--preset", "smoke", "--expected-runs", "found")
    installed(*table, "--out", "losses.csv", cwd=project)
    return {
        "paper": {row["study"]: row["paper"] for row in json.loads(listed)}["widths"],
        "runs": json.loads(runs),
        "audit": (project / "audit.csv").read_text(),
        "table": (project / "losses.md").read_text(),
    }


def test_a_sixth_paper_from_the_wheel(
    installed: Callable[..., str], environment: Path, project: Path, tmp_path: Path
) -> None:
    package = tmp_path / "package"
    shutil.copytree(SIXTH, project / "studies/widths", ignore=CACHES)
    listing = _query_project(installed, project)
    assert listing["paper"] == '"Wide Is Fast" (Author and Other)' and 'Study `widths`: "Wide Is' in str(
        listing["table"]
    )
    assert "mismatch" in str(listing["audit"])

    package.mkdir()
    shutil.move(project / "studies/widths", package / "wide_is_fast")
    (package / "wide_is_fast/__init__.py").touch()
    (package / "pyproject.toml").write_text(PACKAGE)
    _pip(environment, "install", "--no-deps", "--no-index", "--no-build-isolation", package)
    try:
        assert _query_project(installed, project) == listing, "wherever it lies"
        targets = ("results/smoke/widths/losses.csv", "results/smoke/widths/claims.csv", "--config", "preset=smoke")
        planned = jobs_by_rule(installed("-m", "snakemake", "-n", *targets, cwd=project))
        assert {"pretrain": 4, "measure": 1, "table": 1, "claims": 1}.items() <= planned.items()
        shutil.copytree(SIXTH, project / "studies/widths", ignore=CACHES)
        with pytest.raises(AssertionError) as both:
            installed("-m", "plumbline", "ls", "studies", cwd=project)
        output = " ".join(str(both.value).split())
        assert "studies 'widths'" in output and "wide-is-fast" in output
        assert str(project / "studies/widths") in output and "site-packages/wide_is_fast" in output
    finally:
        _pip(environment, "uninstall", "--yes", "wide-is-fast")
