"""What a folder takes along is what its model imports, made flat; what cannot be taken along is refused by name."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

from plumbline.core.errors import PlumblineError
from plumbline.model.export.vendored_source import sources
from tests.model_specs import small
from tests.specs.test_installed_component import PACKAGE, Site, forget, write

MIXER = """# Theirs, and theirs alone.
from plumbline.model.mixers import softmax
from plumbline.model.roles import linear, parameter
from plumbline.specs.components import component
import statistics

from . import sibling
from .sibling import OTHER as five, \\
    SIXTH
from theirs.deep import FACTOR


@component
class Theirs(softmax.Softmax):
    def __init__(self, model, layer):
        from .later import LATE
        super().__init__(model, layer)
        self.n = LATE * FACTOR * five * sibling.OTHER * SIXTH
"""
FILES = PACKAGE | {"theirs/sibling.py": "OTHER, SIXTH = 5, 6\n", "theirs/later.py": "import einops\nLATE = 7\n"}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    yield Site(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] in ("theirs", "alone", "sibling")]:
        del sys.modules[name]
    monkeypatch.undo()
    forget()


def vendor_files(site: Site, mixer: str) -> dict[str, str]:
    site.install("theirs", files=FILES | {"theirs/mixer.py": mixer})
    return sources(small(mixer={"name": "theirs"})).files


def test_component_of_installed_package_goes_along(site: Site) -> None:
    files = vendor_files(site, MIXER)
    own = {name for name in files if name.startswith("theirs")}
    assert own == {"theirs_mixer.py", "theirs_sibling.py", "theirs_deep.py", "theirs_later.py"}
    assert not {name for name in files if "softpick" in name or "geglu" in name}, "no more than the model needs"
    mixer = files["theirs_mixer.py"]
    assert mixer.startswith("# theirs 1.0, theirs/mixer.py, licence: not stated.\n") and MIXER.splitlines()[0] in mixer
    for line in (
        "from . import model_mixers_softmax as softmax",
        "from .model_roles import linear, parameter",
        "from .registry import component",
        "import statistics",
        "from . import theirs_sibling as sibling",
        "from .theirs_sibling import OTHER as five, SIXTH",
        "from .theirs_deep import FACTOR",
        "        from .theirs_later import LATE",
    ):
        assert f"\n{line}\n" in mixer, line
    # transformers looks for files by `from .module import name` alone.
    for name in set(files) - {"modeling_plumbline.py"}:
        assert re.search(rf"^from \.{name.removesuffix('.py')} import \w", files["modeling_plumbline.py"], re.M), name
    result = sources(small(mixer={"name": "theirs"}))
    assert result.requires == ("einops",) and result.packages == ("plumbline", "theirs")
    for name, text in files.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.level:
                assert node.module is None or f"{node.module}.py" in files, (name, ast.unparse(node))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("import plumbline.model.roles", r"mixer\.py:1: `import plumbline\.model\.roles` cannot be carried"),
        ("from plumbline.specs.spec import RunSpec", r"mixer\.py:1: 'RunSpec' of .*specs/spec\.py cannot be exported"),
    ],
)
def test_what_cannot_be_taken_along(site: Site, line: str, message: str) -> None:
    with pytest.raises(PlumblineError, match=message):
        vendor_files(site, f"{line}\n{MIXER}")


def test_modules_beside_a_module_by_itself_go_along(site: Site) -> None:
    mixer = MIXER.replace("from . import sibling\nfrom .sibling", "import sibling, math\nfrom sibling")
    mixer = mixer.replace("from theirs.deep import FACTOR", "FACTOR = 1").replace(".later", "sibling")
    mixer = mixer.replace("import LATE", "import SIXTH as LATE")
    site.install("alone", {"mixers.alone": "alone"}, {"alone.py": mixer, "sibling.py": "OTHER, SIXTH = 5, 6\n"})
    result = sources(small(mixer={"name": "alone"}))
    assert {"alone.py", "sibling.py"} <= set(result.files) and result.packages == ("alone", "plumbline", "sibling")
    assert "\nfrom . import sibling as sibling\nimport math\n" in result.files["alone.py"]
    assert result.files["sibling.py"].startswith("# installed with alone, sibling.py, licence: not stated.\n")


def test_two_files_of_one_flat_name(site: Site) -> None:
    site.install("theirs", files=FILES | {"theirs/mixer.py": MIXER + "\nfrom theirs.a_b import one\n"})
    write(site.folder, {"theirs/a_b.py": "from theirs.a.b import one\n", "theirs/a/b.py": "one = 1\n"})
    (site.folder / "theirs/a/__init__.py").touch()
    with pytest.raises(PlumblineError, match=r"theirs_a_b\.py in a folder; rename"):
        sources(small(mixer={"name": "theirs"}))


def test_two_models_are_never_one_class_in_a_process() -> None:
    """transformers goes by the configuration's file alone where two folders have the same last name."""
    softpick, ssmax = (small(mixer={"name": name}) for name in ("softpick", "ssmax"))
    first, same, other = (sources(spec).files["configuration_plumbline.py"] for spec in (softpick, softpick, ssmax))
    assert first == same != other
