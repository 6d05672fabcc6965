"""The wheel does without the repository: installed where nothing else of it can be imported, it writes a project."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

from plumbline import __version__
from plumbline.cli import ls
from plumbline.core import package_data
from tests.workflow.project import CACHES, jobs_by_rule

pytestmark = pytest.mark.workflow

#: What a build reads beside what travels.
BUILD = ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "CHANGELOG.md", "LICENSE", "src")
_BUILD = "import sys, setuptools.build_meta as backend; print(backend.build_{}(sys.argv[1]))"


def _run(*command: str | Path, cwd: Path, **environment: str) -> str:
    own = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, env=own | environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def wheel(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from a source distribution, which is built from a tree without git."""
    folder = tmp_path_factory.mktemp("build")
    tree = folder / "tree"
    for path in (*package_data.files(repository), *map(Path, BUILD)):
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        if (repository / path).is_dir():
            shutil.copytree(repository / path, tree / path, ignore=CACHES)
        else:
            shutil.copyfile(repository / path, tree / path)
    archive = folder / _run(sys.executable, "-c", _BUILD.format("sdist"), folder, cwd=tree).split()[-1]
    shutil.unpack_archive(archive, folder / "unpacked")
    (source,) = (folder / "unpacked").iterdir()
    return folder / _run(sys.executable, "-c", _BUILD.format("wheel"), folder, cwd=source).split()[-1]


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Runs a Python command in an environment that has the wheel, and the dependencies of this one."""
    home = tmp_path_factory.mktemp("elsewhere")
    environment = home / "environment"
    _run(sys.executable, "-m", "venv", "--without-pip", environment, cwd=home)
    python = environment / "bin" / "python"
    (packages,) = environment.glob("lib/python*/site-packages")
    # A .pth file of a folder that a .pth file names is not read: what is installed editable there cannot be imported.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index"]
    _run(*pip, "--no-compile", "--disable-pip-version-check", wheel, cwd=home)

    def run(*words: str, cwd: Path = home) -> str:
        return _run(python, *words, cwd=cwd, OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1", HOME=str(home))

    return run


def test_a_wheel_writes_a_project_and_plans_it(installed: Callable[..., str], repository: Path, tmp_path: Path) -> None:
    asked = "import json, plumbline.runtime.provenance as p; print(json.dumps([p.__file__, p.code(), p.lock_sha256()]))"
    file, code, lock = json.loads(installed("-c", asked))
    assert not Path(file).is_relative_to(repository)
    said = {"code_from": f"plumbline-lm {__version__}, a wheel", "git_commit": None, "git_dirty": None}
    assert code == said and lock is not None
    runs = json.loads(installed("-m", "plumbline", "ls", "runs", "--study", "transfer", "--json"))
    assert runs == ls.rows("runs", "transfer", "demo"), "a wheel's runs are those of the repository, by their ids too"

    project = tmp_path / "project"
    assert "snakemake -n results/table2.csv" in installed("-m", "plumbline", "init", str(project))
    assert {path.as_posix() for path in package_data.files(project)} == {
        path.as_posix() for path in package_data.files(repository)
    }
    done = installed("-m", "snakemake", "-n", "results/table2.csv", cwd=project)
    planned = jobs_by_rule(done)
    assert (planned["pretrain"], planned["evaluate"], planned["table"], sum(planned.values())) == (26, 26, 1, 66)
