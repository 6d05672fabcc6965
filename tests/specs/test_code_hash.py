"""Classes of code: comments and layout do not count, constants do; what a module imports counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.specs import code_hash
from plumbline.specs.components import KINDS, available, code_class
from tests.forget_caches import forget

MIXER = '''
"""A mixer."""
from plumbline.model.mixers._base import Mixer


class Mine(Mixer):
    """Its words."""

    scale = 2.0

    def weights(self, q, k):
        """More words."""
        return self.scale * q  # a comment
'''


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of this name with one mixer, its helper, and a component of another kind that the helper uses."""
    folder = tmp_path / "plumbline"
    (folder / "model/mixers").mkdir(parents=True)
    (folder / "model/mixers/mine.py").write_text(MIXER)
    (folder / "model/mixers/_base.py").write_text(
        "from plumbline.model import shared\nfrom plumbline.evaluate.probes.other import score\n"
        "class Mixer:\n    base = 1\n"
    )
    (folder / "evaluate/probes").mkdir(parents=True)
    (folder / "evaluate/probes/other.py").write_text(
        "LIMIT = 3\n@component\nclass Other:\n    pass\ndef score(): pass\n"
    )
    (folder / "model/shared.py").write_text("VALUE = 1\n")
    monkeypatch.setattr(code_hash, "PACKAGE", folder)
    return folder


def hash_component(package: Path) -> str:
    forget(code_hash)
    return code_hash.tree_hash(code_hash.component_files(package / "model/mixers/mine.py"))


@pytest.mark.parametrize(
    ("file", "before", "after", "same"),
    [
        ("mine.py", "# a comment", "# another comment", True),
        ("mine.py", '"""Its words."""', '"""Other words, in\n    two lines."""', True),
        ("mine.py", "self.scale * q", "(self.scale\n                * q)", True),
        ("mine.py", "scale = 2.0", "scale = 2", False),
        ("mine.py", "scale = 2.0", "scale = 2.5", False),
        ("mine.py", "self.scale * q", "q * self.scale", False),
        ("_base.py", "base = 1", "base = 2", False),
        ("../shared.py", "VALUE = 1", "VALUE = 2", True),
        ("../../evaluate/probes/other.py", "LIMIT = 3", "LIMIT = 4", False),
    ],
)
def test_what_counts(package: Path, file: str, before: str, after: str, same: bool) -> None:
    first = hash_component(package)
    path = package / "model/mixers" / file
    assert before in path.read_text()
    path.write_text(path.read_text().replace(before, after))
    assert (hash_component(package) == first) is same


def test_a_product_is_made_with_everything_it_imports(package: Path) -> None:
    forget(code_hash)
    names = {path.name for path in code_hash.product_files(package / "model/mixers/mine.py")}
    assert names == {"mine.py", "_base.py", "shared.py", "other.py"}


def test_a_recorded_hash_has_the_class_of_those_it_equals(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = hash_component(package)
    path = package / "model/mixers/mine.py"
    monkeypatch.setattr(code_hash, "classes", lambda: {"mixers.mine": {now: "first"}})
    assert code_hash.component_class("mixers.mine", path) == "first"
    assert code_hash.component_class("mixers.other", path) == now
    elsewhere = package.parent / "mine.py"
    elsewhere.write_text(MIXER)
    assert code_hash.component_class("mixers.mine", elsewhere) != "first", "an installed package's goes by its hash"


def test_every_component_has_a_class() -> None:
    classes = {(kind, name): code_class(kind, name) for kind in KINDS for name in available(kind)}
    assert all(len(value) == code_hash.DIGITS for value in classes.values())
    assert len(set(classes.values())) == len(classes), "no two components are the same code"
