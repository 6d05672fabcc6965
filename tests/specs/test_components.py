"""Reading components and their options without importing them."""

from __future__ import annotations

import inspect
import subprocess
import sys
import typing

import pytest

from plumbline.core.errors import PlumblineError
from plumbline.specs import components
from plumbline.specs.components import KINDS, available, complete, load, options
from tests.forget_caches import forget


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty package of components in place of the real one."""
    for name in KINDS.values():
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setattr(components, "PACKAGE", tmp_path)
    forget(components)
    yield tmp_path
    forget(components)


def write(folder, slot: str, name: str, arguments: str, mark: str = "@component") -> None:
    path = folder / KINDS[slot] / f"{name}.py"
    path.write_text(f"{mark}\nclass Mine:\n    def __init__(self, model, {arguments}) -> None:\n        pass\n")


@pytest.mark.parametrize("slot", KINDS)
def test_every_file_of_a_slot_is_a_component(slot):
    names = available(slot)
    assert names
    assert not any(name.startswith("_") for name in names)
    for name in names:
        assert complete(slot, {"name": name}, slot)["name"] == name


@pytest.mark.parametrize(("slot", "name"), [(kind, name) for kind in KINDS for name in available(kind)])
def test_what_is_read_is_what_is_there(slot, name):
    """The options read from the source are the keyword-only arguments, with their defaults."""
    marked = load(slot, name)
    function = marked.__init__ if isinstance(marked, type) else marked
    real: dict[str, inspect.Parameter] = {}
    hints: dict[str, typing.Any] = {}
    while True:
        parameters = inspect.signature(function).parameters
        real = {key: item for key, item in parameters.items() if item.kind is item.KEYWORD_ONLY} | real
        hints = typing.get_type_hints(function) | hints
        if function is object.__init__ or all(item.kind is not item.VAR_KEYWORD for item in parameters.values()):
            break
        marked = marked.__base__
        function = marked.__init__
    read = options(slot, name)
    assert read.keys() == real.keys()
    for key, option in read.items():
        assert option.default == real[key].default
        assert option.check(option.default, key) == option.default
        if option.choices:
            assert option.choices == typing.get_args(hints[key])
        else:
            assert option.kind == hints[key].__name__


def test_others_are_those_of_the_base_class(folder):
    """Its own default stands; a base class that cannot be read is reported."""
    place = folder / KINDS["intervention"]
    inits = "def __init__(self, *, {}) -> None:\n        pass\n"
    (place / "_base.py").write_text(f"class Base:\n    {inits.format('first: int = 1, second: int = 2')}")
    mine = "@component\nclass Mine(Base):\n    " + inits.format("second: int = 3, **others")
    (place / "mine.py").write_text(f"from _base import Base\n{mine}")
    (place / "lost.py").write_text(mine)
    filled = {"name": "mine", "first": 1, "second": 3}
    assert complete("intervention", {"name": "mine"}, "interventions[0]") == filled
    with pytest.raises(PlumblineError, match=r"lost\.py:3: \*\*others.*needs"):
        options("intervention", "lost")


def test_defaults_are_filled_in():
    assert complete("residual", {"name": "layer_scale"}, "model.residual") == {
        "name": "layer_scale",
        "vectors": 1,
        "initial": 1e-4,
    }
    assert complete("residual", {"name": "layer_scale", "vectors": 2}, "model.residual")["vectors"] == 2
    assert complete("ffn", {"name": "swiglu"}, "model.ffn") == {"name": "swiglu", "bias": False}


def test_whole_numbers_become_floats():
    filled = complete("positions", {"name": "rotary", "base": 500}, "model.positions")
    assert filled["base"] == 500.0
    assert isinstance(filled["base"], float)


@pytest.mark.parametrize(
    ("slot", "raw", "message"),
    [
        ("ffn", {"name": "swigllu"}, "component 'swigllu'; did you mean 'swiglu'"),
        ("ffn", {"name": "xyz"}, r"no component 'xyz' \(there are \['geglu', 'gelu', 'relu_squared', 'swiglu'\]\)"),
        ("ffn", {"nam": "geglu"}, r"'name'.*'nam'.*\['geglu'"),
        ("ffn", "swigllu", r"'name'.*'swiglu'.*\['geglu'"),
        ("ffn", {}, r"model\.ffn: 'name' is missing \(one of \['geglu'"),
        ("ffn", {"name": "geglu", "gellu": "erf"}, "'geglu'.*no option 'gellu'.*'gelu'"),
        ("ffn", {"name": "geglu", "gelu": "exact"}, r"model\.ffn\.gelu: 'exact' is none of \['erf', 'tanh'\]"),
        ("ffn", {"name": "relu_squared", "width_ratio": "wide"}, r"model\.ffn\.width_ratio: 'wide' is not float"),
        ("ffn", {"name": "relu_squared", "width_ratio": True}, r"True is not float"),
        ("residual", {"name": "layer_scale", "vectors": 3}, r"model\.residual\.vectors: 3 is none of \[1, 2\]"),
        ("residual", {"name": "layer_scale", "vectors": True}, r"True is none of \[1, 2\]"),
        ("residual", {"name": "layer_scale", "vectors": 1.0}, r"1\.0 is none of \[1, 2\]"),
        ("residual", {"name": "hyper_connections", "streams": 2.5}, r"model\.residual\.streams: 2\.5 is not int"),
        ("residual", {"name": "hyper_connections", "streams": True}, r"True is not int"),
        ("projections", {"name": "grouped_query", "bias": 1}, r"model\.projections\.bias: 1 is not bool"),
        ("optimizer", {"name": "adamw", "beta3": 0.5}, "no option 'beta3'"),
        ("schedule", {"name": "cosin"}, "component 'cosin'; did you mean 'cosine'"),
        ("schedule", {"name": "constant", "floor": 0.1}, "'constant' .* 'floor'"),
        ("intervention", {"name": "non"}, "component 'non'; did you mean 'none'"),
    ],
)
def test_mistakes(slot, raw, message):
    with pytest.raises(PlumblineError, match=message):
        complete(slot, raw, f"model.{slot}")


def test_mistakes_name_where_they_are():
    with pytest.raises(PlumblineError, match=r"^transfer/base/mine: model\.ffn: .*'geglu'"):
        complete("ffn", {"name": "geglu", "zzz": 1}, "transfer/base/mine: model.ffn")


def test_a_new_file_is_a_new_component(folder):
    write(folder, "ffn", "mine", '*, gain: float = 2.0, kind: Literal["a", "b"] = "b", deep: bool = False, n: int = -1')
    assert available("ffn").keys() == {"mine"}
    assert complete("ffn", {"name": "mine", "gain": 3}, "model.ffn") == {
        "name": "mine", "gain": 3.0, "kind": "b", "deep": False, "n": -1,
    }  # fmt: skip


def test_helpers_are_no_components(folder):
    write(folder, "ffn", "_helper", "*, gain: float = 2.0")
    (folder / "model" / "ffn" / "__init__.py").write_text("")
    assert available("ffn") == {}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("*, gain=2.0", r"mine\.py:3: option 'gain' .*annotation"),
        ("*, gain: float", "option 'gain'.*annotation"),
        ("*, gain: float = 2 * HALF", "option 'gain': its default must"),
        ("*, gain: list = []", r"'gain'.*Literal\[\.\.\.\], not list"),
    ],
)
def test_options_out_of_form(folder, arguments, message):
    write(folder, "ffn", "mine", arguments)
    with pytest.raises(PlumblineError, match=message):
        complete("ffn", {"name": "mine"}, "model.ffn")


def test_a_file_without_a_component(folder):
    write(folder, "ffn", "mine", "*, gain: float = 1.0", mark="@other")
    with pytest.raises(PlumblineError, match=r"mine\.py .*one .*@component, not 0"):
        complete("ffn", {"name": "mine"}, "model.ffn")


def test_no_torch():
    """Planning thousands of runs takes seconds because nothing of this imports torch."""
    code = (
        "import sys\n"
        "from plumbline.specs.components import KINDS, available, options\n"
        "from plumbline.specs import spec, study_config\n"
        "[options(kind, name) for kind in KINDS for name in available(kind)]\n"
        "print(sorted({'torch', 'transformers'} & set(sys.modules)))\n"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "[]"
