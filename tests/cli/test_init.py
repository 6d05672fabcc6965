"""What `plumbline init` writes, refuses, and brings up to date."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from plumbline.cli import init
from plumbline.core import package_data
from plumbline.core.errors import PlumblineError
from plumbline.operate.preflight import before_first_job
from plumbline.project import load
from plumbline.specs.yaml_files import load_config


@pytest.fixture
def project(tmp_path: Path) -> Path:
    init.write(tmp_path / "project")
    return tmp_path / "project"


def test_a_project_is_what_travels_and_can_be_planned(project: Path) -> None:
    for path in ("Snakefile", "workflow/rules/pretrain.smk", "results/README.md", ".gitignore", "README.md"):
        assert (project / path).is_file(), path
    assert (project / "slurm" / "config.v9+.yaml").is_file()
    assert sorted(package_data.list_files(project)) == sorted(package_data.list_files(package_data.folder()))
    assert len(load(load_config(project / "config/config.yaml"), project).runs) > 100


@pytest.mark.parametrize("there", ["Snakefile", ".plumbline.json", "a/b"])
def test_nothing_is_overwritten(tmp_path: Path, there: str) -> None:
    (tmp_path / there).parent.mkdir(exist_ok=True)
    (tmp_path / there).write_text("mine")
    (tmp_path / ".git").mkdir()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(PlumblineError, match=rf"is not empty \({there.split('/')[0]}\)"):
        init.write(tmp_path)
    assert sorted(tmp_path.rglob("*")) == before and (tmp_path / there).read_text() == "mine"


def test_what_could_not_be_written_whole_is_not_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(init, "atomic_write_json", full)
    with pytest.raises(OSError, match="No space"):
        init.write(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [".git"]


def test_an_upgrade_replaces_what_was_not_edited(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert init.upgrade(project) == []
    (project / "config/machines.yaml").write_text("mine\n")
    (project / "config/suites/climb12.yaml").write_text("mine\n")
    (project / "docs/disk.md").unlink()
    original = init.list_files()
    newer = original | {"Snakefile": "newer\n", "config/machines.yaml": "newer\n", "docs/disk.md": "newer\n"}
    newer |= {"config/new.yaml": "newer\n"}
    del newer["examples/cosine.yaml"]
    monkeypatch.setattr(init, "list_files", lambda: newer)
    machines = "left config/machines.yaml, which both you and the package changed"
    lines = init.upgrade(project)
    assert [line.partition(":")[0] for line in lines] == [
        "replaced Snakefile", machines, "left out docs/disk.md, which you removed", "added config/new.yaml",
        "left examples/cosine.yaml, which the package no longer has",
    ]  # fmt: skip
    assert (project / "config/machines.yaml").read_text() == (project / "config/suites/climb12.yaml").read_text()
    assert (project / "Snakefile").read_text() == "newer\n" and (project / "examples/cosine.yaml").exists()
    assert [line.partition(":")[0] for line in init.upgrade(project)] == [machines], "until they are one"
    with pytest.raises(PlumblineError, match=r"--upgrade.*not a project.*--upgrade"):
        init.upgrade(project / "nothere")
    (project / ".plumbline.json").write_text("[]")
    with pytest.raises(PlumblineError, match=r"--upgrade: .*\.plumbline\.json .*`plumbline init FOLDER`"):
        init.upgrade(project)


def test_an_upgrade_writes_through_no_link(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = tmp_path / "elsewhere.yaml"
    elsewhere.write_bytes((project / "config/machines.yaml").read_bytes())
    (project / "config/machines.yaml").unlink()
    (project / "config/machines.yaml").symlink_to(elsewhere)  # as it was written, and yet not init's to replace
    (project / "config/new.yaml").symlink_to(tmp_path / "nowhere.yaml")
    (project / "config/folder").write_text("mine")
    (project / "config/taken.yaml").mkdir()
    names = ("config/machines.yaml", "config/new.yaml", "config/folder/deep/new.yaml", "config/taken.yaml")
    newer = init.list_files() | dict.fromkeys(names, "newer\n")
    monkeypatch.setattr(init, "list_files", lambda: newer)
    before = elsewhere.read_bytes()
    lines = init.upgrade(project)
    assert [line.partition(",")[0].partition(":")[0] for line in lines] == [
        "left config/machines.yaml", "left out config/new.yaml", "left out config/folder/deep/new.yaml",
        "left config/taken.yaml",
    ]  # fmt: skip
    assert elsewhere.read_bytes() == before and not (tmp_path / "nowhere.yaml").exists()
    assert (project / "config/folder").read_text() == "mine" and not any((project / "config/taken.yaml").iterdir())
    assert init.upgrade(project) == lines, "until they are out of the way"


def test_a_project_of_another_version_is_told_so(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    planned = load(load_config(project / "config/config.yaml"), project)
    before_first_job.check(planned, [])
    assert "--upgrade" not in capsys.readouterr().err
    (project / ".plumbline.json").write_text('{"version": "0.0.9", "files": {}}')
    before_first_job.check(planned, [])
    assert "written by plumbline-lm 0.0.9, and 0.1.0" in capsys.readouterr().err


def test_a_project_whose_path_has_spaces_and_quotes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command that is printed can be pasted."""
    folder = tmp_path / "a b'c\"d" / "my pro'j"
    folder.parent.mkdir()
    monkeypatch.setattr("sys.argv", ["plumbline init", str(folder)])
    init.main()
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  cd ")]
    process = subprocess.run(["sh", "-c", f"{line} && pwd"], capture_output=True, text=True)
    assert process.stdout == f"{folder}\n", process.stderr


def test_project_whose_path_steers_terminal_is_shown_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["plumbline init", str(tmp_path / "a\x1b[2Jb")])
    init.main()
    assert capsys.readouterr().out.splitlines()[0].startswith(f"{tmp_path}/a\\x1b[2Jb: a project of ")
