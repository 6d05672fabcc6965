"""Every description of the environment (lock, Dockerfile, conda, Makefile, README) states the same."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from collections.abc import Iterable
from importlib import metadata
from importlib.metadata import packages_distributions
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from plumbline import __version__
from plumbline.core.pipeline_packages import MODULES
from plumbline.operate.preflight.environment import PYTHON
from tests.workflow.project_copy import PIP_ELSEWHERE

#: What comes along with a CUDA build of the pinned torch; a CPU build has none of it.
OF_CUDA = ("nvidia-", "cuda-")


@pytest.fixture(scope="module")
def project(repository: Path) -> dict[str, Any]:
    return tomllib.loads((repository / "pyproject.toml").read_text())


def read_lock(path: Path) -> dict[str, tuple[Version, list[str]]]:
    """Version and hashes of each pin; every line is a comment, a pin without a local version, or a hash of it."""
    pins: dict[str, tuple[Version, list[str]]] = {}
    name = ""
    for line in path.read_text().splitlines():
        if not line.startswith("#"):
            match = re.fullmatch(
                r"([a-z0-9-]+)==([^\s+]+)|--hash=sha256:([0-9a-f]{64})", line.removesuffix("\\").strip()
            )
            assert match, line
            if match[3]:
                pins[name][1].append(match[3])
            else:
                name = match[1]
                pins[name] = (Version(match[2]), [])
    return pins


@pytest.fixture(scope="module")
def lock(repository: Path) -> dict[str, Version]:
    return {name: version for name, (version, _) in read_lock(repository / "requirements.lock").items()}


def test_every_file_that_set_up_may_install_has_its_hash_in_lock(repository: Path) -> None:
    locks = [read_lock(repository / name) for name in ("requirements.lock", "requirements-cuda.lock")]
    assert all(hashes for pins in locks for _, hashes in pins.values())
    assert locks[0].keys().isdisjoint(locks[1])
    assert all(name.startswith(OF_CUDA) for name in locks[1])
    # what the pinned torch states about its own CUDA build, where it does (a CPU wheel names none of it)
    needed = [Requirement(line) for line in metadata.requires("torch") or []]
    assert {need.name for need in needed if need.name.startswith(OF_CUDA)} <= locks[1].keys()


def write_wheel(folder: Path, name: str = "plumb_bob", version: str = "1.0") -> str:
    """A wheel of nothing, and its SHA-256."""
    about = f"{name}-{version}.dist-info"
    files = {
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/RECORD": "",
    }
    folder.mkdir(exist_ok=True, parents=True)
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for name, text in files.items():
            wheel.writestr(name, text)
    return hashlib.sha256(path.read_bytes()).hexdigest()


def install(
    repository: Path, folder: Path, lock: str, cuda_lock: str = "", index: str = "--no-index"
) -> subprocess.CompletedProcess[str]:
    """The script over these locks, into an environment of the folder; pip knows its wheels, and those of an index."""
    (folder / "requirements.lock").write_text(lock)
    (folder / "requirements-cuda.lock").write_text(cuda_lock)
    venv.create(folder / "there")
    shell = f"""
        [ "$3" = check ] && exec test ! -e lacking
        shift 2
        exec there/bin/python {PIP_ELSEWHERE} "$@"
    """
    (folder / "python").write_text(f"#!/bin/sh\n{shell}\n")
    (folder / "python").chmod(0o755)
    arguments = ["sh", str(repository / "envs/install_locks.sh"), "./python", index, "--find-links", "wheels"]
    return subprocess.run(arguments, cwd=folder, capture_output=True, text=True)


def list_installed(folder: Path) -> list[str]:
    return sorted(path.name.removesuffix(".dist-info") for path in folder.glob("there/lib/*/site-packages/*.dist-info"))


def test_set_up_takes_only_files_whose_hash_is_locked(repository: Path, tmp_path: Path) -> None:
    right = write_wheel(tmp_path / "wheels")
    for lock, expected in (
        (f"plumb-bob==1.0 --hash=sha256:{'0' * 64}\n", "DO NOT MATCH THE HASHES"),
        ("plumb-bob==1.0\n", "missing from some requirements"),
        (f"plumb-bob==1.0 --hash=sha256:{right}\n", ""),
    ):
        process = install(repository, tmp_path, lock)
        assert (process.returncode == 0) == (expected == ""), process.stderr
        assert expected.lower() in process.stderr.lower()
    shutil.rmtree(tmp_path / "there")
    with open(tmp_path / "wheels/plumb_bob-1.0-py3-none-any.whl", "ab") as wheel:
        wheel.write(b"\0")
    process = install(repository, tmp_path, f"plumb-bob==1.0 --hash=sha256:{right}\n")
    assert process.returncode != 0 and "DO NOT MATCH THE HASHES" in process.stderr and list_installed(tmp_path) == []


#: Which `pip install` need no hash: of the project itself, of what writes a lock, of another Triton, of the gate.
WITHOUT_HASHES = ("--editable", "plumbline-lm", "uv $(", "triton==$(TRITON)", '"$here/../.."')


def test_every_other_installation_demands_hashes(repository: Path) -> None:
    paths = [repository / name for name in ("Makefile", ".ci/run", "envs/Dockerfile", "actions/gate/gate.sh")]
    paths += (repository / "envs").glob("*.sh")
    lines = [line for path in paths for line in path.read_text().splitlines() if re.search("pip (install|wheel)", line)]
    free = [line for line in lines if "--require-hashes" not in line]
    assert len(lines) - len(free) >= 6
    for line in free:
        assert any(word in line for word in WITHOUT_HASHES), line


def test_torchs_wheel_of_this_machine_goes_before_the_indexs(repository: Path, tmp_path: Path) -> None:
    """Though the index tells its file's hash beforehand."""
    of_index = write_wheel(tmp_path / "index/torch", "torch")
    page = f'<!DOCTYPE html><html><body><a href="torch-1.0-py3-none-any.whl#sha256={of_index}">torch</a></body></html>'
    (tmp_path / "index/torch/index.html").write_text(page)
    index = f"--index-url={(tmp_path / 'index').as_uri()}"
    lock = f"torch==1.0 \\\n    --hash=sha256:{of_index}"
    of_machine = write_wheel(tmp_path / "wheels", "torch", "1.0+cpu")
    process = install(repository, tmp_path, f"{lock} \\\n    --hash=sha256:{of_machine}\n", index=index)
    assert process.returncode == 0, process.stderr
    assert list_installed(tmp_path) == ["torch-1.0+cpu"]
    shutil.rmtree(tmp_path / "index")
    again = install(repository, tmp_path, (tmp_path / "requirements.lock").read_text(), index="--no-index")
    assert again.returncode == 0, "what is installed needs no index"
    shutil.rmtree(tmp_path / "there")
    process = install(repository, tmp_path, f"{lock}\n", index=index)
    assert process.returncode != 0 and "match the hashes" in process.stderr.lower(), "and no other one in its place"


def test_sources_are_built_by_the_locked_setuptools(repository: Path, tmp_path: Path) -> None:
    """It is there before what it builds, and no other one is fetched beside it."""
    setuptools = f"setuptools==84.2.1 \\\n    --hash=sha256:{'1' * 64} \\\n    --hash=sha256:{'2' * 64}\n"
    (tmp_path / "requirements.lock").write_text(f"plumb-bob==1.0 --hash=sha256:{'0' * 64}\n{setuptools}")
    (tmp_path / "python").write_text('#!/bin/sh\necho "$@" >>calls\nfor last; do :; done\ncat "$last" >>calls || :\n')
    (tmp_path / "python").chmod(0o755)
    script = ["sh", str(repository / "envs/install_locks.sh"), "./python"]
    subprocess.run(script, cwd=tmp_path, check=True, capture_output=True)
    first, *rest = re.split(r"^(?=-m pip install )", (tmp_path / "calls").read_text(), flags=re.MULTILINE)[1:]
    assert first.endswith(f"setuptools.lock\n{setuptools}")
    assert all("--no-build-isolation --use-pep517" in call for call in (first, *rest)) and len(rest) == 2


def test_locks_are_of_files_too(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.spec_from_file_location("write_locks", repository / "envs/write_locks.py")
    assert spec is not None and spec.loader is not None
    write_locks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(write_locks)
    monkeypatch.chdir(tmp_path)
    shutil.copy(repository / "pyproject.toml", tmp_path)
    installed = "numpy==2.0\ntorch==1.0+cpu\npip==23.0\n"

    def answer(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        lines = installed if "list" in command else "".join(f"{pin} \\\n    --hash=sha256:{'0' * 64}\n" for pin in pins)
        return subprocess.CompletedProcess(command, 0, lines)

    pins = ["numpy==2.0", "torch==1.0"]
    monkeypatch.setattr(write_locks.subprocess, "run", answer)
    of_machine = write_wheel(tmp_path / "wheels", "torch", "1.0+cpu")
    wheel = str(tmp_path / "wheels/torch-1.0+cpu-py3-none-any.whl")
    monkeypatch.setattr(sys, "argv", ["write_locks.py", wheel])
    write_locks.main()
    lock = read_lock(tmp_path / "requirements.lock")
    assert list(lock) == ["numpy", "torch"] and of_machine in lock["torch"][1]
    write_wheel(tmp_path / "wheels", "other")
    monkeypatch.setattr(sys, "argv", ["write_locks.py", str(tmp_path / "wheels/other-1.0-py3-none-any.whl")])
    with pytest.raises(SystemExit, match=r"1\.0, which is not installed"):
        write_locks.main()
    installed = "numpy @ file:///a/b.whl\n"
    with pytest.raises(SystemExit, match="numpy @ file"):
        write_locks.main()


def test_what_a_cuda_build_needs_comes_from_the_second_lock(repository: Path, tmp_path: Path) -> None:
    right = write_wheel(tmp_path / "wheels")
    (tmp_path / "lacking").touch()  # `pip check` misses what torch needs
    process = install(repository, tmp_path, "# none\n", f"plumb-bob==1.0 --hash=sha256:{right}\n")
    assert list_installed(tmp_path) == ["plumb_bob-1.0"]
    assert process.returncode != 0, "it is still missing, and set-up says so"


def test_the_bill_of_materials_has_every_pin_and_the_locks_it_is_of(repository: Path, tmp_path: Path) -> None:
    """The same twice; the library of CycloneDX holds it to the schema, where that is installed."""
    for out in ("a.json", "new/b.json"):
        subprocess.run([sys.executable, repository / "envs/write_sbom.py", out], cwd=tmp_path, check=True)
    text = (tmp_path / "a.json").read_text()
    assert (tmp_path / "new/b.json").read_text() == text
    bill = json.loads(text)
    locks = [read_lock(repository / name) for name in ("requirements.lock", "requirements-cuda.lock")]
    pins = {f"pkg:pypi/{name}@{version}" for lock in locks for name, (version, _) in lock.items()}
    assert {each["purl"] for each in bill["components"]} == pins
    own = bill["metadata"]["component"]
    assert own["purl"] == f"pkg:pypi/plumbline-lm@{__version__}"
    for file in own["components"]:
        content = (repository / file["name"]).read_bytes()
        assert file["hashes"] == [{"alg": "SHA-256", "content": hashlib.sha256(content).hexdigest()}]
    validation = pytest.importorskip("cyclonedx.validation.json")
    version = pytest.importorskip("cyclonedx.schema").SchemaVersion.V1_6
    assert validation.JsonStrictValidator(version).validate_str(text) is None


def with_what_they_need(texts: list[str], lock: dict[str, Version]) -> set[str]:
    """Names of requirements, and of theirs, each satisfied by its pin; as the installed packages state them."""
    waiting = [Requirement(text) for text in texts]
    reached, reached_before = set(), set()
    while waiting:
        needed = waiting.pop()
        name = canonicalize_name(needed.name)
        if name.startswith(OF_CUDA) or (name, *needed.extras) in reached_before:
            continue
        assert name in lock, f"{needed} is not in requirements.lock: run `make lock`"
        assert needed.specifier.contains(lock[name], prereleases=True), f"{needed} is not met by {lock[name]}"
        reached.add(name)
        reached_before.add((name, *needed.extras))
        for line in metadata.requires(name) or []:
            further = Requirement(line)
            if not further.marker or any(further.marker.evaluate({"extra": extra}) for extra in ("", *needed.extras)):
                waiting.append(further)
    return reached


def test_the_lock_is_what_the_project_needs_no_more_and_no_less(project: dict, lock: dict[str, Version]) -> None:
    declared = project["project"]
    extras = [text for extra in ("pipeline", "test") for text in declared["optional-dependencies"][extra]]
    texts = declared["dependencies"] + extras + project["build-system"]["requires"]
    assert set(lock) == with_what_they_need(texts, lock)


def test_every_pin_is_for_the_oldest_python(project: dict, lock: dict[str, Version]) -> None:
    """As pip reads it there: one that wants a later patch of it ends the set-up."""
    oldest = project["project"]["requires-python"].removeprefix(">=")
    needed_versions = {
        name: SpecifierSet(metadata.metadata(name).get("Requires-Python") or "")
        for name, version in lock.items()
        if Version(metadata.version(name)).public == str(version)
    }
    assert {name: str(needed) for name, needed in needed_versions.items() if not needed.contains(oldest)} == {}


def list_imports(files: Iterable[Path]) -> set[str]:
    """Top-level names of the modules that source files import."""
    module_names = set()
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                module_names |= {name.name.partition(".")[0] for name in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                module_names.add(node.module.partition(".")[0])
    return module_names


def test_what_is_imported_comes_with_the_wheel(repository: Path, project: dict, lock: dict[str, Version]) -> None:
    """By the package, and by the harness's `hf` model: what tests need is not there where it is installed.

    What the extra `pipeline` brings is known by its modules' names, so that a verb can say what it lacks.
    """
    declared, extras = project["project"]["dependencies"], project["project"]["optional-dependencies"]
    alone = with_what_they_need(declared, lock)
    optional = {Requirement(text).name for extra in ("gpu", "flash", "tensorboard", "mlflow") for text in extras[extra]}
    there = with_what_they_need(declared + extras["pipeline"], lock) | optional
    owners = {module: {canonicalize_name(name) for name in names} for module, names in packages_distributions().items()}
    owners.pop("plumbline", None)
    harness = Path(find_spec("lm_eval").origin).parent / "models/huggingface.py"
    own = list_imports(repository.glob("src/**/*.py"))
    assert [name for name in sorted(own | list_imports([harness])) if owners.get(name, there).isdisjoint(there)] == []
    brought = {name for name in own if owners.get(name, alone).isdisjoint(alone)}
    assert {name for name in brought if owners.get(name, there).isdisjoint(optional)} <= MODULES


def test_what_runs_here_is_what_is_locked(lock: dict[str, Version]) -> None:
    for name in ("torch", "snakemake", "lm-eval", "datasets", "numpy"):
        assert Version(metadata.version(name)).public == str(lock[name])


def test_python_and_torch_are_the_same_everywhere(repository: Path, project: dict, lock: dict[str, Version]) -> None:
    def find_all(pattern: str, file: str) -> list[str]:
        return re.findall(pattern, (repository / file).read_text(), flags=re.M)

    python = project["project"]["requires-python"].removeprefix(">=")
    series = python.rpartition(".")[0]
    assert ".".join(map(str, PYTHON)) == python
    assert find_all(r"^FROM python:([\d.]+)-slim", "envs/Dockerfile") == [series]
    assert project["tool"]["mypy"]["python_version"] == series
    assert find_all(r"python >=([\d.]+),<3", "envs/plumbline.yaml") == [python]
    assert find_all(r"older than ([\d.]+\d)", "Makefile") == [python]
    pages = [repository / "README.md", *repository.glob("docs/*.md"), *repository.glob("examples/*/pyproject.toml")]
    promise = r"Python ([\d.]+) or newer|requires-python = \">=([\d.]+)\""
    promised_versions = {
        "".join(match_groups) for page in pages for match_groups in re.findall(promise, page.read_text())
    }
    assert promised_versions == {python}
    assert find_all(r"torch==([\d.]+)", "Makefile") == [str(lock["torch"])]
    files = [
        *(file for file in repository.glob("envs/*") if file.is_file()),
        repository / "README.md",
        repository / "Makefile",
    ]
    torch_versions = {
        version for file in files for version in re.findall(r"\btorch[ =]=*(\d[\d.]*\d)", file.read_text())
    }
    assert torch_versions <= {str(lock["torch"])}


def test_a_python_that_is_asked_for_is_the_one_that_is_used(repository: Path, tmp_path: Path) -> None:
    """And no set-up that another one made."""
    python = tmp_path / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    shutil.copyfile(repository / "Makefile", tmp_path / "Makefile")
    for name in ("requirements.lock", "requirements-cuda.lock", "pyproject.toml", ".venv/complete"):
        (tmp_path / name).touch()
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHON", "MAKEFLAGS")}

    def make(*arguments: str) -> tuple[int, str]:
        command = ["make", "setup", *arguments]
        process = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        return process.returncode, process.stdout

    setting = f"PYTHON={sys.executable}"
    for text, refused in (("echo /elsewhere 3.12.1", True), (f'exec {sys.executable} "$@"', False)):
        python.write_text(f"#!/bin/sh\n{text}\n")
        python.chmod(0o755)
        assert make()[0] == 0
        status, output = make(setting)
        assert status == (2 if refused else 0)
        assert (f".venv is not of {sys.executable}; remove it" in output) == refused


@pytest.mark.parametrize("there", [False, True], ids=["fresh", "beside .venv"])
def test_a_python_that_is_not_there_is_not_called_old(repository: Path, tmp_path: Path, there: bool) -> None:
    shutil.copyfile(repository / "Makefile", tmp_path / "Makefile")
    for name in ("requirements.lock", "requirements-cuda.lock", "pyproject.toml", *[".venv"] * there):
        (tmp_path / name).touch()
    command = ["make", "setup", "PYTHON=/nowhere/python3"]
    process = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert process.returncode == 2 and "no /nowhere/python3; set PYTHON=" in process.stdout
    assert "older" not in process.stdout and "is not of" not in process.stdout


def test_continuous_integration_says_that_there_is_no_python(repository: Path, tmp_path: Path) -> None:
    script = tmp_path / "run"
    script.write_text((repository / ".ci/run").read_text().replace("/usr/bin/python3", "/nowhere/python3"))
    process = subprocess.run([shutil.which("bash") or "", script], env={"PATH": ""}, capture_output=True, text=True)
    assert process.returncode == 1 and process.stderr.startswith("error: there is no python3")


@pytest.mark.parametrize("there", [False, True], ids=["no compiler", "a compiler"])
def test_ci_installs_a_compiler_and_demands_it(repository: Path, tmp_path: Path, there: bool) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("dirname", "env", "sh"):
        (tools / name).symlink_to(shutil.which(name) or "")
    (tools / "python3").symlink_to(sys.executable)
    script_by_name = {"apt-get": 'echo "$@" >>"$CALLS"', "make": 'echo "make $PLUMBLINE_REQUIRE_COMPILER" >>"$CALLS"'}
    for name, line in (script_by_name | ({"g++": "exit 0"} if there else {})).items():
        (tools / name).write_text(f"#!/bin/sh\n{line}\n")
        (tools / name).chmod(0o755)
    (tmp_path / "work/.ci").mkdir(parents=True)
    script = tmp_path / "work/.ci/run"
    script.write_text((repository / ".ci/run").read_text().replace("/usr/bin/python3", "/nowhere/python3"))
    calls = tmp_path / "calls"
    environment = {"PATH": str(tools), "CALLS": str(calls)}
    subprocess.run([shutil.which("bash") or "", script], env=environment, capture_output=True, check=True)
    assert calls.read_text().splitlines() == ([] if there else ["update", "install -y g++"]) + ["make 1"]


def test_environments_install_the_lock(repository: Path, project: dict) -> None:
    for file in ("Dockerfile", "plumbline.post-deploy.sh"):
        text = (repository / "envs" / file).read_text()
        assert re.search(r"sh envs/install_locks.sh python\b", text), file
        assert re.search(r"pip install (--no-cache-dir )?--no-deps --no-build-isolation --editable \.$", text, re.M), (
            file
        )
    assert f"--tag plumbline:{project['project']['version']} " in (repository / "envs/Dockerfile").read_text()
    # Snakemake hands conda a copy of this file, so that paths in it would lead nowhere.
    assert "requirements.lock" not in (repository / "envs/plumbline.yaml").read_text()


def test_flash_attn_is_installed_by_one_command(repository: Path, project: dict) -> None:
    """By itself, since an extra would put a built package in the place of a clone's editable one."""
    (package,) = project["project"]["optional-dependencies"]["flash"]
    for file in ("envs/README.md", "pyproject.toml", "src/plumbline/model/kernels/selection.py"):
        text = (repository / file).read_text()
        assert re.findall(r"pip install --no-build-isolation (\S+?)[`),]", text) == [f"'{package}'"], file


def test_every_rule_that_runs_something_names_the_environment(repository: Path) -> None:
    for path in sorted((repository / "workflow/rules").glob("*.smk")):
        for rule in re.split(r"^rule ", path.read_text(), flags=re.M)[1:]:
            if "shell:" in rule:
                assert "../../envs/plumbline.yaml" in rule, f"{path.name}: rule {rule.split(':')[0]}"


def test_what_make_starts_keeps_compiled_modules(repository: Path) -> None:
    """Where an environment forbids it, each of a table's jobs would compile what it imports."""
    command = ["make", "--silent", "--eval", "show: ; @env", "show"]
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    process = subprocess.run(command, cwd=repository, env=environment, capture_output=True, text=True, check=True)
    assert "PATH=" in process.stdout and "PYTHONDONTWRITEBYTECODE" not in process.stdout
