"""A bundle of what needs no run: packed, made again, compared; and what is refused."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from scipy import stats

from plumbline.bundle import __main__ as verb
from plumbline.bundle import archive, description, rebuild, records, ro_crate
from plumbline.core import fingerprint_file
from plumbline.core.errors import PlumblineError
from plumbline.core.files import sha256_file
from plumbline.project import Project, load
from plumbline.results import __main__ as results
from plumbline.results import interpretations
from plumbline.specs import code_hash
from plumbline.specs.yaml_files import ROOT, load_config
from tests.bundle.test_description import commit_folder


def load_project(root: Path) -> Project:
    return load(load_config() | {"preset": "smoke", "studies": ["transfer"], "work": "/scratch/somebody"}, root)


def words(*args: str, out: Path, fingerprint: str) -> list[str]:
    options = ["--preset", "smoke", "--documents-source", "corpus", "--fingerprint", fingerprint]
    return ["verb", *args, *options, "--out", str(out)]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with the products of the transfer study that no run is needed for, made by their verbs."""
    folder = tmp_path_factory.mktemp("project")
    for name in ("config", "studies"):
        shutil.copytree(ROOT / name, folder / name)
    project = load_project(folder)
    out = folder / "results/smoke/transfer"
    with pytest.MonkeyPatch.context() as patch:
        fingerprint = project.fingerprints.product("transfer", "table", "table1")
        expected = project.targets.hash_runs("transfer", "table1")
        table = words("table", "transfer", "table1", out=out / "table1.csv", fingerprint=fingerprint)
        work = ["--work", project.paths.work, "--expected-runs-digest", expected]
        patch.setattr(sys, "argv", [*table, *work])
        results.main()
        fingerprint = project.fingerprints.product("transfer", "interpretations")
        page = words("transfer", out=out / "interpretations.md", fingerprint=fingerprint)
        patch.setattr(sys, "argv", [*page, "--items-source", project.evaluation_source])
        interpretations.main()
    return folder


@pytest.fixture(scope="module")
def packed(root: Path) -> Path:
    out = root.parent / "bundle.tar.xz"
    info, notes = verb.pack(load_project(root), out, allow_missing=True)
    assert sorted(map(str, info.products)) == ["interpretations transfer", "table transfer table1"]
    assert "missing, so not packed: audit" in notes
    return out


@pytest.fixture
def bundle(packed: Path, tmp_path: Path) -> Path:
    return shutil.copy(packed, tmp_path / "bundle.tar.xz")


def edit_bundle(bundle: Path, files: dict[str, tuple[str, str]] | None = None, **changes: Any) -> Path:
    """The bundle as it would be if it said otherwise of itself, or had other files (name -> before, after)."""
    folder = bundle.parent / "edited"
    archive.unpack(bundle, folder, {})
    for name, (before, after) in (files or {}).items():
        path = folder / name
        path.touch()
        path.write_text(path.read_text().replace(before, after) if before else after)
    info = description.parse_description((folder / description.NAME).read_bytes(), "here")
    contents: dict[str, bytes | Path] = {
        path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()
    }
    contents[description.NAME] = msgspec.json.encode(msgspec.structs.replace(info, **changes))
    about = ro_crate.CrateMetadata(name="edited", description="edited", date="1970-01-01")
    archive.write(bundle, contents, about)
    return bundle


def test_products_come_out_equal_elsewhere(bundle: Path, tmp_path: Path) -> None:
    """Runs lay on a scratch disk that is not there any more: products go on naming it."""
    result = rebuild.rebuild_bundle(bundle, tmp_path / "out", jobs=2)
    assert result.whole and len(result.verdicts) == 8, rebuild.format_result(result, tmp_path / "out")
    with open(tmp_path / "out" / rebuild.LIST) as lines:
        listed = list(csv.DictReader(lines))
    assert all(row["verdict"] == "equal" and row["sha256_bundled"] == row["sha256_rebuilt"] for row in listed)
    assert (
        '"work": "/scratch/somebody/smoke"'
        in (tmp_path / "out/results/smoke/transfer/table1.provenance.json").read_text()
    )
    assert not any(path.suffix in (".safetensors", ".bin") for path in (tmp_path / "out").rglob("*"))


def test_two_bundles_of_one_state_are_one(root: Path, bundle: Path, tmp_path: Path) -> None:
    verb.pack(load_project(root), tmp_path / "again.tar.xz", allow_missing=True)
    assert (tmp_path / "again.tar.xz").read_bytes() == bundle.read_bytes()


def run_rebuild(bundle: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[int, list[dict[str, str]]]:
    monkeypatch.setattr(sys, "argv", ["plumbline rebuild", str(bundle), "--into", str(out)])
    code = rebuild.main()
    with open(out / rebuild.LIST) as lines:
        return code, list(csv.DictReader(lines))


def test_a_target_whose_files_are_not_in_the_bundle_is_told(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive.unpack(bundle, tmp_path / "edited", {})
    whole = {path.relative_to(tmp_path / "edited").as_posix(): path for path in (tmp_path / "edited").rglob("*.*")}
    about = ro_crate.CrateMetadata(name="edited", description="edited", date="1970-01-01")
    for number, (dropped, equal) in enumerate((("results/", 0), ("results/smoke/transfer/table1.", 2))):
        archive.write(bundle, {name: path for name, path in whole.items() if not name.startswith(dropped)}, about)
        code, rows = run_rebuild(bundle, tmp_path / f"out{number}", monkeypatch)
        lacking = [row for row in rows if row["verdict"] == "not in the bundle"]
        assert code == 1 and len(rows) == 8 and len(rows) - len(lacking) == equal, rows
        assert all(row["file"].startswith(dropped) and not row["sha256_bundled"] for row in lacking)


def test_a_bundle_without_targets_is_not_equal(bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive.unpack(bundle, tmp_path / "none", {})
    shutil.rmtree(tmp_path / "none/results")
    info = json.loads((tmp_path / "none" / description.NAME).read_text()) | {"products": []}
    (tmp_path / "none" / description.NAME).write_text(json.dumps(info))
    files = {path.relative_to(tmp_path / "none").as_posix(): path for path in (tmp_path / "none").rglob("*.*")}
    archive.write(bundle, files, ro_crate.CrateMetadata(name="none", description="none", date="1970-01-01"))
    assert run_rebuild(bundle, tmp_path / "out", monkeypatch) == (16, [])


def test_code_of_studies_is_not_packed(bundle: Path, tmp_path: Path) -> None:
    archive.unpack(bundle, tmp_path / "unpacked", {})
    files = [path for path in (tmp_path / "unpacked/studies").rglob("*") if path.is_file()]
    assert files and not [path for path in files if path.suffix == ".py"]
    edit_bundle(bundle, {"studies/transfer/claims.pyc": ("", "code")})
    with pytest.raises(PlumblineError, match=r"studies/transfer/claims.pyc is code"):
        rebuild.rebuild_bundle(bundle, tmp_path / "out")
    assert not list((tmp_path / "out").iterdir())


def test_another_commit_is_named(bundle: Path, tmp_path: Path) -> None:
    """What counts is what a product is made of: its code and configuration, and its runs."""
    info = description.parse_description(archive.read_file(bundle, description.NAME), "here")
    table = next(each for each in info.products if each.kind == "table")
    other = [msgspec.structs.replace(table, fingerprint="of another commit")]
    edit_bundle(bundle, products=other, commit="1234abcd" * 5, edited=False)
    with pytest.raises(PlumblineError, match=r"commit 1234abcd.*1 targets \(table transfer table1\).*--at-commit"):
        rebuild.rebuild_bundle(bundle, tmp_path / "out")
    assert not list((tmp_path / "out").iterdir())
    with pytest.raises(PlumblineError, match="commit 1234abcd"):
        rebuild.rebuild_bundle(bundle, tmp_path / "out", at_commit=True)


def test_other_packages_are_named(bundle: Path, tmp_path: Path) -> None:
    info = description.parse_description(archive.read_file(bundle, description.NAME), "here")
    edit_bundle(bundle, versions=info.versions | {"numpy": "1.0", "plumbline-lm": "9"})
    with pytest.raises(PlumblineError, match=r"here numpy \d[\d.]+; pip install numpy==1.0 .*--any-versions"):
        rebuild.rebuild_bundle(bundle, tmp_path / "out")


@pytest.mark.parametrize("other", [description.FORMAT - 1, description.FORMAT + 1])
def test_another_format_is_refused(bundle: Path, tmp_path: Path, other: int, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = "1234abcd" * 5
    edit_bundle(bundle, format=other, commit=commit, edited=False)
    monkeypatch.chdir(bundle.parent)
    with pytest.raises(PlumblineError) as refused:
        rebuild.rebuild_bundle(Path(bundle.name), tmp_path / "out", at_commit=True)
    message = str(refused.value)
    assert f"Plumbline reads format {description.FORMAT}" in message
    assert f"../plumbline-1234abc {commit} && cd ../plumbline-1234abc && make setup" in message
    assert f".venv/bin/plumbline rebuild {bundle} --into rebuilt" in message
    with pytest.raises(PlumblineError, match=r"this version of Plumbline reads format .*git worktree add"):
        records.keep_bundle(tmp_path / "kept", bundle, "Of another version.")


def test_an_early_state_of_this_format(packed: Path) -> None:
    info = json.loads(archive.read_file(packed, description.NAME)) | {"commit": "1234abcd" * 5, "edited": False}
    del info["openblas"]
    with pytest.raises(PlumblineError) as refused:
        description.parse_description(json.dumps(info).encode(), "here")
    message = str(refused.value)
    assert f"claims format {description.FORMAT}" in message and "`openblas`" in message
    assert "early version of Plumbline" in message
    assert f"git worktree add ../plumbline-1234abc {info['commit']} && " in message and "no bundle" not in message


@pytest.mark.parametrize("answers", ["json.load(sys.stdin)", "print('{}')", "pathlib.Path(words['answer']).touch()"])
def test_a_commit_answers_badly(bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: str) -> None:
    package = tmp_path / "repository/src/plumbline"
    (package / "bundle").mkdir(parents=True)
    (package / "__init__.py").touch()
    read = "words = json.loads(pathlib.Path(sys.argv[1]).read_text())"
    (package / "bundle/remake.py").write_text(f"import json, pathlib, sys\n{read}\n{answers}\n")
    commit = commit_folder(tmp_path / "repository")
    edit_bundle(bundle, commit=commit, edited=False)
    monkeypatch.setattr(code_hash, "PACKAGE", package)
    with pytest.raises(PlumblineError, match=rf"may not match this .*git worktree add \S+ {commit} && "):
        rebuild.rebuild_bundle(bundle, tmp_path / "out", at_commit=True)


@pytest.mark.parametrize("refused", [False, True], ids=["no src", "a path that leaves"])
def test_a_commit_that_git_cannot_write_is_named(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: bool
) -> None:
    repository = tmp_path / "repository"
    repository.mkdir()
    (repository / "notes.md").write_text("none of ours")
    commit = commit_folder(repository)
    git = ["git", "-C", str(repository), "-c", "user.name=t", "-c", "user.email=t@t"]

    def run_git(*args: str, read: bytes) -> str:
        return subprocess.run([*git, *args], input=read, capture_output=True, check=True).stdout.decode().strip()

    if refused:
        blob = run_git("hash-object", "-w", "--stdin", read=b"1")
        entry = b"100644 .git\0" + bytes.fromhex(blob)
        within = run_git("hash-object", "-w", "-t", "tree", "--literally", "--stdin", read=entry)
        whole = run_git("mktree", read=f"040000 tree {within}\tsrc\n".encode())
        commit = run_git("commit-tree", whole, "-m", "two", read=b"")
    edit_bundle(bundle, commit=commit, edited=False)
    monkeypatch.setattr(code_hash, "PACKAGE", repository / "src/plumbline")
    with pytest.raises(PlumblineError, match=rf"src of commit {commit} .*(invalid path|valid object)"):
        rebuild.rebuild_bundle(bundle, tmp_path / "out", at_commit=True)


def test_products_by_the_package_of_the_commit(bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever its modules are called, whatever the checkout has become since, and whatever somebody's git is set to. A
    link is written as a file, all else as the commit's bytes, and nothing of it is left in the repository."""
    repository = tmp_path / "repository"
    package = repository / "src/plumbline"
    (package / "bundle").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "renamed.py").symlink_to("/etc/hostname")
    (package / "lines.py").write_bytes(b"1\n2\n")
    (package / "bundle/remake.py").write_text(
        "import json, pathlib, shutil, sys\n"
        "request = json.loads(pathlib.Path(sys.argv[1]).read_text())\n"
        "package = pathlib.Path(__file__).parents[1]\n"
        "shutil.copytree('bundled', 'results')\n"
        "failed = {'link': 'followed'} if (package / 'renamed.py').is_symlink() else {}\n"
        "failed |= {} if (package / 'lines.py').read_bytes() == b'1\\n2\\n' else {'lines': 'other bytes'}\n"
        "answer = {'package': str(package), 'other': [], 'failed': failed}\n"
        "pathlib.Path(request['answer']).write_text(json.dumps(answer))\n"
    )
    commit = commit_folder(repository)
    shutil.rmtree(package / "bundle")
    for setting in ("core.splitIndex", "core.autocrlf"):
        subprocess.run(["git", "-C", str(repository), "config", setting, "true"], check=True)
    before = sorted((repository / ".git").iterdir())
    edit_bundle(bundle, commit=commit, edited=False)
    monkeypatch.setattr(code_hash, "PACKAGE", package)
    result = rebuild.rebuild_bundle(bundle, tmp_path / "out", at_commit=True)
    assert result.whole and result.verdicts and not result.failed
    assert sorted((repository / ".git").iterdir()) == before


def test_an_installed_package_in_a_clone(bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = tmp_path / "repository"
    (repository / "src/plumbline/bundle").mkdir(parents=True)
    (repository / "src/plumbline/bundle/remake.py").write_text("raise SystemExit(0)")
    (repository / "src/plumbline/__init__.py").touch()
    commit = commit_folder(repository)
    edit_bundle(bundle, commit=commit, edited=False)
    monkeypatch.setattr(code_hash, "PACKAGE", tmp_path / "lib/python3.11/site-packages/plumbline")
    for where, reason in ((tmp_path, "is in no repository"), (repository / "src", "is none of Plumbline's")):
        monkeypatch.chdir(where)
        with pytest.raises(PlumblineError, match=rf"{commit}.* {reason}; repeat the command"):
            rebuild.rebuild_bundle(bundle, tmp_path / "out", at_commit=True)
    (repository / "pyproject.toml").write_text('[project]\nname = "plumbline-lm"\n')
    with pytest.raises(PlumblineError, match=f"not match .*worktree add .* {commit}"):
        rebuild.rebuild_bundle(bundle, tmp_path / "out", at_commit=True)
    shutil.rmtree(tmp_path / "edited")
    edit_bundle(bundle, commit="12" * 20, edited=False)
    with pytest.raises(PlumblineError, match=r"commit 1212.*git fetch"):
        rebuild.rebuild_bundle(bundle, tmp_path / "out", at_commit=True)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("results", "results/../.."),
        ("results", "/tmp"),
        ("commit", "--output=/tmp/x"),
        ("path", "../outside"),
        ("path", "/tmp/outside"),
        ("work", "../outside"),
        ("work", "/tmp/outside"),
        ("work", "a/../../b"),
    ],
)
def test_a_bundle_cannot_have_products_written_elsewhere(packed: Path, place: str, value: str) -> None:
    info = json.loads(archive.read_file(packed, description.NAME))
    within = {"work": info["configuration"], "path": info["products"][0]}.get(place, info)
    within[place] = value
    with pytest.raises(PlumblineError, match="what is in it"):
        description.parse_description(json.dumps(info).encode(), "here")


HOSTILE = {
    "an unknown study": lambda said: said["products"][0].update(study="tranfer"),
    "an unknown kind": lambda said: said["products"][0].update(kind="tabel"),
    "a table of no name": lambda said: said["products"][0].update(target=""),
    "a NUL": lambda said: said.update(openblas="Haswell\0"),
    "a name without end": lambda said: said.update(openblas="x" * 200_000),
    "a folder as a preset": lambda said: said["configuration"].update(preset="../x"),
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_what_no_bundle_says_is_refused_before_it_is_unpacked(packed: Path, change: Callable[[Any], None]) -> None:
    info = json.loads(archive.read_file(packed, description.NAME))
    change(info)
    with pytest.raises(PlumblineError, match="as that format"):
        description.parse_description(json.dumps(info).encode(), "here")


def test_a_missing_target_leaves_nothing(bundle: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A traceback, and eight entries were left."""
    info = description.parse_description(archive.read_file(bundle, description.NAME), "here")
    tables = [msgspec.structs.replace(each, target="table\u202e1") for each in info.products if each.target]
    edit_bundle(bundle, products=tables)
    message = r"^rebuilding the targets: studies/transfer/study.yaml: targets: no table 'table\\u202e1'; did "
    with pytest.raises(PlumblineError, match=message):
        rebuild.rebuild_bundle(bundle, tmp_path / "out", jobs=2)
    assert capfd.readouterr().err == "", "once, however many processes said it"
    assert not list((tmp_path / "out").iterdir())


def test_what_comes_out_otherwise_is_told_of(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is printed was changed in the bundle, its crate with it; a product that cannot be made is missing; another
    commit is allowed; and products are made with the linear algebra that the bundle names."""
    coretypes, original = list[str | None](), subprocess.Popen

    def start_process(command: list[str], **options: Any) -> Any:
        if description.REMAKE in command:
            coretypes.append(options["env"].get("OPENBLAS_CORETYPE"))
            del options["env"]["OPENBLAS_CORETYPE"]  # this processor may lack what that one's kernels need
        return original(command, **options)

    monkeypatch.setattr(subprocess, "Popen", start_process)
    info = description.parse_description(archive.read_file(bundle, description.NAME), "here")
    of_another = [msgspec.structs.replace(each, fingerprint="of another commit") for each in info.products]
    name = "results/smoke/transfer/"
    edits = {"studies/transfer/published/table1.csv": ("qk_norm,soft", "qk_norm,hard"), f"{name}fig9.png": ("", "none")}
    edit_bundle(bundle, edits, products=of_another, commit="1234abcd" * 5, edited=False, openblas="Haswell")
    words = ["plumbline rebuild", str(bundle), "--into", str(tmp_path / "out"), "--any-commit"]
    monkeypatch.setattr("sys.argv", words)
    assert rebuild.main() == 1 and coretypes == ["Haswell"]
    out = capsys.readouterr().out
    assert f"different: {name}table1.csv\n" in out and "bundle was made with" in out
    with open(tmp_path / "out" / rebuild.LIST) as lines:
        verdicts = {row["file"]: row["verdict"] for row in csv.DictReader(lines)}
    assert verdicts[f"{name}fig9.png"] == "missing" and verdicts[f"{name}interpretations.md"] == "equal", verdicts


@pytest.mark.parametrize(
    ("kernels", "flags", "lacking"),
    [
        ("SkylakeX", "fma avx avx2", "avx512f"),
        ("SkylakeX", "fma avx avx2 avx512f", ""),
        ("Haswell", "fma avx avx2", ""),
        ("Zen", "sse4_2 avx", "avx2"),
        ("Nehalem", "sse4_2", ""),
    ],
)
def test_kernels_that_the_processor_lacks(kernels: str, flags: str, lacking: str, tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text(f"processor\t: 0\nflags\t\t: fpu {flags}\nbugs\t\t:\n")
    assert rebuild.find_missing_instructions(kernels, tmp_path / "cpuinfo") == lacking


def test_what_is_missing_or_says_nothing_is_named(root: Path, tmp_path: Path) -> None:
    with pytest.raises(PlumblineError, match=r"targets .*snakemake bundle.*--allow-missing"):
        verb.pack(load_project(root), tmp_path / "bundle.tar.xz")
    copy = tmp_path / "project"
    shutil.copytree(root, copy)
    (copy / "results").rename(copy / "elsewhere")
    with pytest.raises(PlumblineError, match=r"targets .*snakemake bundle.*none is there"):
        verb.pack(load_project(copy), tmp_path / "bundle.tar.xz", allow_missing=True)
    (copy / "elsewhere").rename(copy / "results")
    fingerprint_file.sidecar_path(copy / "results/smoke/transfer/interpretations.md").write_text("{}")
    with pytest.raises(PlumblineError, match="fingerprint of interpretations transfer"):
        verb.pack(load_project(copy), tmp_path / "bundle.tar.xz", allow_missing=True)
    fingerprint_file.write(copy / "results/smoke/transfer/interpretations.md", "0" * 16)
    with pytest.raises(PlumblineError, match=r"interpretations transfer .*snakemake bundle"):
        verb.pack(load_project(copy), tmp_path / "bundle.tar.xz", allow_missing=True)


def test_a_manifest_is_packed_without_the_process_that_wrote_it(root: Path, tmp_path: Path) -> None:
    project = load(load_config() | {"preset": "smoke", "studies": ["transfer"], "work": str(tmp_path)}, root)
    run = project.run("transfer", "base", "softpick", 42)
    path = Path(project.paths.run(run, "manifest.json"))
    path.parent.mkdir(parents=True)
    bare = {"host": "box", "step": 0, "time": "2026-01-01T00:00:00Z"}
    start = bare | {"machine": "box/a boot/pid:[1]", "pid": 5, "process_started": "7"}
    facts = {"run_id": run.spec.run_id, "spec": run.spec.to_dict()}
    path.write_text(json.dumps(facts | {"starts": [start, start]}))
    verb.pack(project, tmp_path / "bundle.tar.xz", allow_missing=True)
    packed = archive.read_file(tmp_path / "bundle.tar.xz", f"work/{path.relative_to(tmp_path)}")
    assert json.loads(packed) == facts | {"starts": [bare, bare]}
    of_another = project.run("transfer", "base", "ssmax", 42)
    path.write_text(json.dumps({"run_id": of_another.spec.run_id, "spec": of_another.spec.to_dict()}))
    with pytest.raises(PlumblineError, match=rf"that of run {of_another.key}, .* in the place of {run.key}"):
        verb.pack(project, tmp_path / "swapped.tar.xz", allow_missing=True)
    outcome = path.with_name("outcome.json")
    outcome.write_text("{}")
    hashes = {"files": {outcome.name: {"sha256": sha256_file(outcome)}}}
    path.write_text(json.dumps(facts | hashes))
    verb.pack(project, tmp_path / "bundle.tar.xz", allow_missing=True)
    outcome.write_text('{"validation_loss": 1}')
    with pytest.raises(PlumblineError, match=r"outcome\.json was changed: .*manifest\.json says"):
        verb.pack(project, tmp_path / "edited.tar.xz", allow_missing=True)
    assert not (tmp_path / "swapped.tar.xz").exists() and not (tmp_path / "edited.tar.xz").exists()


def test_code_of_an_earlier_commit_warns_of_no_lost_precision() -> None:
    """Its Welch's test was scipy's, which warns of seeds that are equal; whoever rebuilds can do nothing about it."""
    equal = [0.3] * 3, [0.3] * 2
    with pytest.warns(RuntimeWarning, match="Precision loss"):
        stats.ttest_ind(*equal)
    code = f"from scipy import stats; stats.ttest_ind(*{equal})"
    environment = os.environ | rebuild.WITHOUT_OLD_WARNINGS
    process = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert process.returncode == 0 and "Precision loss" not in process.stderr
