"""An installed package brings a component through the entry point group `plumbline.components`; a broken one is in
nobody's way but of those who choose what it brings."""

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from plumbline.core.errors import PlumblineError
from plumbline.specs import code_hash, components, installed_packages, study_config
from plumbline.specs.components import available, code_class, complete, load
from plumbline.specs.yaml_files import ROOT
from tests.forget_caches import forget

COMPONENT = '''
"""Softmax over logits that are divided by a temperature."""

from typing import Literal

from plumbline.specs.components import component
from plumbline.model.mixers.softmax import Softmax


@component
class Tempered(Softmax):
    """Softmax, tempered."""

    def __init__(self, model, *arguments, temperature: float = 2.0, kind: Literal["hot", "cold"] = "hot"):
        super().__init__(model, *arguments)
        self.temperature = temperature
'''
USE = """
import sys
from plumbline.specs.components import complete
chosen = complete("mixer", {"name": "tempered", "temperature": 3}, "model.mixer")
assert chosen == {"name": "tempered", "temperature": 3.0, "kind": "hot"}, chosen
assert "torch" not in sys.modules and "tempering" not in sys.modules
import torch
from tests.model_specs import small
from plumbline.model.decoder import create
model = create(small(mixer=chosen), 0, torch.device("cpu"))
mixers = [module for module in model.modules() if type(module).__name__ == "Tempered"]
assert {mixer.temperature for mixer in mixers} == {3.0}
assert torch.isfinite(model(torch.arange(32)[None])).all()
print(len(mixers))
"""


def install(folder: Path, entry: str) -> dict[str, str]:
    """A package as an installer leaves it; returns what makes it importable."""
    (folder / "tempering.py").write_text(COMPONENT)
    information = folder / "tempering-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: tempering\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(f"[plumbline.components]\n{entry} = tempering\n")
    return {"PYTHONPATH": f"{folder}:{ROOT / 'src'}:{ROOT}", "OMP_NUM_THREADS": "1"}


def test_it_is_configured_without_import(tmp_path: Path) -> None:
    environment = install(tmp_path, "mixers.tempered")
    process = subprocess.run([sys.executable, "-c", USE], env=environment, capture_output=True, text=True)
    assert process.stdout == "4\n", process.stderr


#: A component that takes the rest of its package in two ways.
MIXER = """
from plumbline.specs.components import component
from theirs.deep import FACTOR
from . import sibling
from .sibling import OTHER


@component
class Theirs:
    def __init__(self, model, layer, *, n: int = 3):
        self.n = n * FACTOR * OTHER
"""
PACKAGE = {"theirs/__init__.py": "", "theirs/deep.py": "FACTOR = 2\n", "theirs/sibling.py": "OTHER = 5\n"}
ENTRY = {"mixers.theirs": "theirs.mixer"}


class Site:
    """A folder of installed packages on Python's path, as installers leave it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def install(
        self,
        name: str,
        entries: dict[str, str] | str = ENTRY,
        files: dict[str, str] | None = None,
        project: Path | None = None,
        lines: str = "",
    ) -> None:
        """A distribution; of one with a `project`, which is installed editable, the files are written by the test."""
        write(self.folder, {"theirs/mixer.py": MIXER} | PACKAGE if files is None and project is None else files or {})
        text = entries if isinstance(entries, str) else "".join(f"{key} = {value}\n" for key, value in entries.items())
        information = {"METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"}
        information["entry_points.txt"] = f"[plumbline.components]\n{text}"
        if project is not None:
            information["direct_url.json"] = json.dumps({"url": project.as_uri(), "dir_info": {"editable": True}})
            information["RECORD"] = f"_{name}.pth,,\n"
            write(self.folder, {f"_{name}.pth": lines})
        write(self.folder / f"{name}-1.0.dist-info", information)
        anew()


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def anew() -> None:
    importlib.invalidate_caches()
    forget(installed_packages, components)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    folder = tmp_path / "site packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    before = set(sys.modules)
    yield Site(folder)
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in ("theirs", "named"):
            del sys.modules[name]
    monkeypatch.undo()
    anew()


def complete_mixer(name: str = "theirs") -> dict[str, object]:
    return complete("mixer", {"name": name}, "model.mixer")


def test_planning_runs_nothing_of_its_package_and_training_does(site: Site, capfd: pytest.CaptureFixture[str]) -> None:
    ran = "from pathlib import Path\nPath(__file__).with_name('ran').touch()\nprint('ran')\n"
    ran += "raise OSError('no licence')\n"
    site.install("theirs")
    (site.folder / "theirs/__init__.py").write_text(ran)
    assert complete_mixer() == {"name": "theirs", "n": 3}
    assert available("mixer")["theirs"] == str(site.folder / "theirs/mixer.py")
    assert len(code_class("mixer", "theirs")) == 16
    assert not (site.folder / "theirs/ran").exists() and capfd.readouterr().out == ""
    with pytest.raises(PlumblineError, match=r"distribution theirs .*OSError: no licence; fix or"):
        load("mixer", "theirs")
    assert (site.folder / "theirs/ran").exists()


def test_it_finds_the_rest_of_its_package_when_it_is_loaded(site: Site) -> None:
    site.install("theirs")
    assert load("mixer", "theirs")(None, 0, n=1).n == 10
    assert load("mixer", "theirs") is load("mixer", "theirs"), "made once, not once a layer"


def test_what_is_loaded_is_the_file_that_was_planned_with(site: Site, tmp_path: Path) -> None:
    site.install("theirs")
    write(tmp_path / "nearer", {"theirs/__init__.py": "", "theirs/mixer.py": "another = True"})
    sys.path.insert(0, str(tmp_path / "nearer"))  # monkeypatch puts the path back
    message = r"its module theirs\.mixer is .*site packages.*, but Python imports .*nearer"
    with pytest.raises(PlumblineError, match=message):
        load("mixer", "theirs")


def test_its_code_includes_what_it_imports_of_its_package(site: Site, tmp_path: Path) -> None:
    site.install("theirs")
    first = code_class("mixer", "theirs")

    def hash_changed(file: str, before: str, after: str) -> str:
        """The class of the code of a copy with a change."""
        copy = tmp_path / f"{file} changed"
        shutil.copytree(site.folder / "theirs", copy / "theirs")
        text = (copy / "theirs" / file).read_text()
        assert before in text
        (copy / "theirs" / file).write_text(text.replace(before, after))
        return code_hash.component_class("mixers.theirs", copy / "theirs/mixer.py")

    assert hash_changed("deep.py", "2\n", "2  # a comment\n") == first
    assert hash_changed("sibling.py", "5", "6") != first
    assert hash_changed("mixer.py", "FACTOR * OTHER", "FACTOR") != first


def test_the_code_of_a_module_has_those_it_imports(tmp_path: Path) -> None:
    def of(name: str, **helpers: str) -> str:
        """The class of the code of a module that imports two others."""
        folder = tmp_path / name
        write(folder, {"theirs.py": f"from warmth import DEGREES\n{MIXER}", "other/__init__.py": "", **helpers})
        return code_hash.component_class("mixers.theirs", folder / "theirs.py")

    first = of("first", **{"warmth.py": "import more\nDEGREES = more.DEGREES", "more.py": "DEGREES = 5"})
    again = {"warmth.py": "import more\nDEGREES = more.DEGREES", "more.py": "DEGREES = 5", "unasked.py": "X = 1"}
    assert of("again", **again) == first
    assert of("hotter", **again | {"more.py": "DEGREES = 6"}) != first


@pytest.mark.parametrize(
    ("place", "module", "lines"),
    [
        ("src/theirs/mixer.py", "theirs.mixer", "import _finder; _finder.install()\n"),
        ("theirs/mixer.py", "theirs.mixer", ""),
        ("theirs/mixer/__init__.py", "theirs.mixer", ""),
        ("src/of/many/theirs.py", "of.many.theirs", ""),  # a namespace package: no __init__.py
        ("code/python/theirs.py", "theirs", "# ours\n{project}/code/python\n"),
    ],
)
def test_an_editable_one_is_found_in_its_project(
    site: Site, tmp_path: Path, place: str, module: str, lines: str
) -> None:
    project = tmp_path / "their project"
    write(project, {place: MIXER, "pyproject.toml": "raise SystemExit"})
    site.install("theirs", {"mixers.theirs": module}, project=project, lines=lines.format(project=project))
    assert complete_mixer() == {"name": "theirs", "n": 3}
    assert available("mixer")["theirs"] == str(project / place)


BROKEN = {
    "module": (lambda site: site.install("named", {"mixers.theirs": "named.gone"}),
               r"the installed distribution named points at named\.gone, which cannot be found: .*fix its entry"),
    "folder": (lambda site: site.install("named", {"mixers.theirs": "named"}, {"named/data.txt": ""}),
               r"distribution named points at named, which cannot be found"),
    "project": (lambda site: site.install("named", project=site.folder / "gone"),
                r"distribution named points at theirs\.mixer, which cannot be found: .*gone/src or "),
    "value": (lambda site: site.install("named", {"mixers.theirs": "no module!"}),
              r"distribution named points at 'no module!', which is not a module; fix its entry"),
    "text": (lambda site: site.install("named", "mixers.theirs"),
             r"no component 'theirs'.*; entry_points\.txt of named cannot be read .*; reinstall it"),
    "metadata": (lambda site: (site.install("named", {"mixers.theirs": "gone"}), (
                     site.folder / "named-1.0.dist-info/METADATA").unlink(), anew()),
                 r"distribution without a name in .*site packages points at gone"),
    "direct_url": (lambda site: (site.install("named", project=site.folder), (
                       site.folder / "named-1.0.dist-info/direct_url.json").write_text("{"), anew()),
                   r"distribution named cannot be found: its metadata is broken \(JSONDecodeError.*; reinstall it"),
    "twice": (lambda site: (site.install("theirs"), site.install("named")),
              r"distributions \w+ and \w+ both provide a component 'mixers\.theirs' \(.*\); uninstall one of them"),
    "syntax": (lambda site: site.install("named", files={"theirs/mixer.py": "def"}),
               r"theirs/mixer\.py:1 is not Python: .*\(the component 'mixers\.theirs' of .* named\)"),
    "bytes": (lambda site: (site.install("named"), (site.folder / "theirs/mixer.py").write_bytes(b"\xff\0")),
              r"theirs/mixer\.py is not Python: .*distribution named\)"),
    "nothing": (lambda site: site.install("named", files={"theirs/mixer.py": ""}),
                r"must hold exactly one class or function marked @component, not 0 \(.*distribution named\)"),
    "egg": (lambda site: egg(site),
            r"distribution named is in the archive .*named\.egg/; install it unpacked, as pip does"),
}  # fmt: skip


def egg(site: Site) -> None:
    with zipfile.ZipFile(site.folder / "named.egg", "w") as archive:
        archive.writestr("theirs/mixer.py", MIXER)
        archive.writestr("EGG-INFO/PKG-INFO", "Metadata-Version: 2.1\nName: named\nVersion: 1.0\n")
        archive.writestr("EGG-INFO/entry_points.txt", "[plumbline.components]\nmixers.theirs = theirs.mixer\n")
    sys.path.insert(0, str(site.folder / "named.egg"))
    anew()


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_one_is_told_to_who_chooses_it(site: Site, kind: str) -> None:
    install, message = BROKEN[kind]
    install(site)
    assert study_config.load("key_norms", "smoke").runs
    assert complete_mixer("softmax") == {"name": "softmax"}
    with pytest.raises(PlumblineError, match=rf"(?s){message}"):
        complete_mixer()


def test_a_name_of_a_built_in_is_told(site: Site) -> None:
    site.install("theirs", {"mixers.softpick": "theirs.mixer"})
    assert study_config.load("key_norms", "smoke").runs
    text = r"^model\.mixer\.name: the component 'mixers\.softpick' of the installed distribution theirs has the name of"
    with pytest.raises(PlumblineError, match=text + " a built-in component; .*uninstall theirs"):
        complete_mixer("softpick")
    assert Path(available("mixer")["softpick"]).is_relative_to(components.PACKAGE)


def test_of_one_distribution_twice_on_the_path_the_first_counts(site: Site, tmp_path: Path) -> None:
    site.install("theirs")
    older = Site(tmp_path / "older")
    older.install("theirs")
    sys.path.append(str(older.folder))
    anew()
    assert available("mixer")["theirs"] == str(site.folder / "theirs/mixer.py") and complete_mixer()
