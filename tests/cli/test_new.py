"""What `plumbline new` writes works as it is written; what is there, or is not a name, is refused with the remedy."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from plumbline.cli import init, new
from plumbline.core.errors import PlumblineError
from plumbline.specs.components import SLOTS

RUFF = Path(sys.executable).with_name("ruff")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project as a wheel writes it."""
    root = tmp_path_factory.mktemp("new") / "project"
    init.write(root)
    return root


@pytest.fixture
def project(written: Path, tmp_path: Path) -> Path:
    """Such a project, which a test may change."""
    return Path(shutil.copytree(written, tmp_path / "project", symlinks=True))


def python(project: Path, *args: str, packages: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a Python command in a project, with packages in addition to those of this interpreter."""
    path = os.pathsep.join(map(str, filter(None, (packages, os.environ.get("PYTHONPATH")))))
    environment = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, *args]
    return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, timeout=300)


def install_package(package: Path, folder: Path) -> Path:
    """What an installer makes of a package: its modules, and what its pyproject.toml declares."""
    meta = tomllib.loads((package / "pyproject.toml").read_text())["project"]
    shutil.copytree(package / "src", folder, dirs_exist_ok=True)
    information = folder / f"{meta['name'].replace('-', '_')}-{meta['version']}.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {meta['name']}\nVersion: {meta['version']}\n")
    entries = meta["entry-points"]["plumbline.components"]
    lines = "".join(f"{name} = {module}\n" for name, module in entries.items())
    (information / "entry_points.txt").write_text(f"[plumbline.components]\n{lines}")
    return folder


def passes_ruff(project: Path, repository: Path, *paths: str) -> None:
    """By the rules of the repository, which a clone's files are held to."""
    for args in (["check"], ["format", "--check"]):
        command = [str(RUFF), *args, "--no-cache", "--config", str(repository / "pyproject.toml"), *paths]
        process = subprocess.run(command, cwd=project, capture_output=True, text=True)
        assert process.returncode == 0, process.stdout + process.stderr


def test_a_leak_in_a_new_method_is_found_before_it_is_trained(project: Path, tmp_path: Path) -> None:
    """The checks before training are made of a study's method as of a file's. (As it is written it can be tried:
    tests/workflow/test_wheel.py.)"""
    process = python(project, "-m", "plumbline", "new", "method", "fresh", "--slot", "ffn")
    assert process.returncode == 0, process.stderr
    assert "wrote my/fresh/src/fresh/ffn.py" in process.stdout
    assert "plumbline try fresh --study fresh --dry-run" in process.stdout
    packages = install_package(project / "my/fresh", tmp_path / "packages")
    component = packages / "fresh/ffn.py"
    text = component.read_text()
    assert text.count("        return ") == 1
    component.write_text(text.replace("        return ", "        return x_BTF.mean(1, keepdim=True) + "))
    tried = ("-m", "plumbline", "try", "fresh", "--study", "fresh", "--preset", "smoke", "-n")
    process = python(project, *tried, packages=packages)
    assert process.returncode == 13 and "fresh: causality: " in process.stderr + process.stdout, (
        process.stdout + process.stderr
    )


@pytest.mark.parametrize("slots", [("mixer",), pytest.param(SLOTS, marks=pytest.mark.slow)], ids=["one", "every"])
def test_a_method_of_every_slot_passes_its_own_tests(
    project: Path, repository: Path, tmp_path: Path, slots: tuple[str, ...]
) -> None:
    names = {slot: f"fresh_{slot}" for slot in slots}
    for slot, name in names.items():
        new.write(new.render_method(name, slot, project), project)
        packages = install_package(project / "my" / name, tmp_path / "packages")
    passes_ruff(project, repository, "my")
    tests = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib", "my")
    process = python(project, *tests, packages=packages)
    assert process.returncode == 0 and f"{8 * len(slots)} passed" in process.stdout, process.stdout[-3000:]


def test_a_new_study_is_of_the_repositorys_style(project: Path, repository: Path) -> None:
    """It is planned, audited and passes its own tests in tests/workflow/test_wheel.py."""
    new.write(new.render_study("normed_heads", project), project)
    passes_ruff(project, repository, "studies/normed_heads")


def test_a_method_of_a_clone_is_one_file_of_the_package(repository: Path) -> None:
    texts = new.render_method("quite_new", "ffn", repository, built_in=True)
    assert {path.as_posix() for path in texts} == {
        "src/plumbline/model/ffn/quite_new.py",
        "tests/model/test_quite_new.py",
        "studies/quite_new/study.yaml",
    }
    for path, text in texts.items():
        if path.suffix == ".py":
            ast.parse(text)


def test_what_is_written_out_here_is_in_project_of_wheel_only(project: Path) -> None:
    process = python(project, "-m", "plumbline", "new", "method", "quite_new", "--built-in")
    assert process.returncode == 2 and "--built-in" in process.stderr and "leave it out" in process.stderr
    process = python(project / "config", "-m", "plumbline", "new", "study", "quite_new")
    assert process.returncode == 1 and "is no project" in process.stderr and "plumbline init FOLDER" in process.stderr


@pytest.mark.parametrize(
    ("name", "slot", "message"),
    [
        ("softpick", "mixer", r"NAME: 'softpick' .*transfer.*`plumbline try softp"),
        ("transfer", "mixer", r"NAME: 'transfer' .*study.*`plumbline ls methods --study tra"),
        ("swiglu", "ffn", r"NAME: 'swiglu' .*slot ffn.*`model: {ffn: {nam"),
        ("demo", "mixer", r"NAME: 'demo' .*preset.*`--preset demo`"),
        ("report", "mixer", r"NAME: 'report' .*results/.*'my_report'"),
        ("second_hardware", "mixer", r"NAME: 'second_hardware' .*arm of transfer"),
        ("json", "mixer", "'json'.*'my_json'"),
        ("mixer", "mixer", "'mixer'.*'my_mixer'"),
        ("My-Method", "mixer", "'My-Method' cannot be.*'my_method'"),
        ("class", "mixer", r"NAME: 'class' cannot .* did you mean 'my_class'\?"),
        ("a" * 31, "mixer", "method: .* at most 30"),
        ("../out", "mixer", r"did you mean 'out'\?"),
        ("", "mixer", r"NAME: '' cannot be the name"),
        ("fresh", "mixr", "--slot.*no slot 'mixr'.*'mixer'"),
        ("fresh", "optimizer", "--slot: 'optimizer'.*no slot.*src/plumbline/train/optimizers"),
    ],
)
def test_a_name_that_is_none_or_taken(name: str, slot: str, message: str, repository: Path) -> None:
    with pytest.raises(PlumblineError, match=message):
        new.render_method(name, slot, repository)


def test_the_longest_name_still_fits_the_lines(project: Path, repository: Path) -> None:
    name = "a" * 30
    new.write(new.render_method(name, "mixer", project), project)
    passes_ruff(project, repository, f"my/{name}")


@pytest.mark.parametrize("there", ["my/fresh/README.md", "my/fresh", "my", "studies/fresh/study.yaml"])
def test_nothing_is_written_over(tmp_path: Path, repository: Path, there: str) -> None:
    (tmp_path / there).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / there).write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(PlumblineError, match=rf"{there} is .*choose another name"):
        new.write(new.render_method("fresh", "mixer", repository), tmp_path)
    assert sorted(tmp_path.rglob("*")) == before and (tmp_path / there).read_text() == "mine"


def test_a_link_into_nowhere_is_in_the_way_too(tmp_path: Path, repository: Path) -> None:
    (tmp_path / "studies/fresh").mkdir(parents=True)
    (tmp_path / "studies/fresh/study.yaml").symlink_to(tmp_path / "nowhere.yaml")
    with pytest.raises(PlumblineError, match="ever written over"):
        new.write(new.render_study("fresh", repository), tmp_path)
    assert not (tmp_path / "nowhere.yaml").exists()


def test_what_could_not_be_written_whole_is_not_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {Path("a/b/one.txt"): "1", Path("a/two.txt"): "\udcff"}  # no UTF-8
    with pytest.raises(UnicodeEncodeError):
        new.write(texts, tmp_path)
    assert not list(tmp_path.iterdir())
