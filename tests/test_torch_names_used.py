"""An older torch, as a GPU machine may bring, has everything that is used of torch."""

from __future__ import annotations

import ast
import zipfile
from pathlib import Path

from tests.torch_names_used import LISTED, NEWER, Wheel, used, used_in


def test_torch_2_11_has_what_is_used() -> None:
    names, listed = used(), set(LISTED.read_text(encoding="utf-8").split())
    again = "the command that makes the list anew stands in tests/torch_names_used.py"
    fresh, stale = sorted(names - listed - NEWER.keys()), sorted((listed | NEWER.keys()) - names)
    assert not fresh, f"look whether torch 2.11 has {', '.join(fresh)}; {again}"
    assert not stale, f"no longer used: {', '.join(stale)}; {again}"


def test_names_and_keywords_are_found_under_aliases() -> None:
    text = """
import torch.distributed as dist
from torch.nn import functional as F

def gathered(x):
    dist.all_reduce(x, op=dist.ReduceOp.MAX)
    torch.compile(x)  # of this file's own
    return F.pad(x.new(device=1), (0, 1), value=0.0)
"""
    expected = "torch.distributed torch.distributed.all_reduce torch.distributed.all_reduce(op=) torch.nn.functional "
    expected += "torch.distributed.ReduceOp torch.distributed.ReduceOp.MAX torch.nn.functional.pad "
    expected += "torch.nn.functional.pad(value=)"
    assert set(used_in(ast.parse(text))) == set(expected.split())


def test_what_a_wheel_has_is_read_from_its_sources(tmp_path: Path) -> None:
    files = {
        "__init__.py": "from . import nn as nn\nif yes():\n    from torch._C import *\nfrom torch.lazy import late\n",
        "_C/__init__.pyi": "def zeros(size, *, dtype): ...\nbfloat16: dtype\n",
        "lazy.py": "from torch._C._built import late\n",
        "nn/__init__.py": "class Pad:\n    def __init__(self, value): ...\n    def forward(self, of): ...\n",
        "nn/loose.py": "def any(**options): ...\nmade = _described(_C.made, 'made(left, *, out=None)')\n",
        "props.py": "class _Props:\n    @property\n    def filled(self): ...\nmodules[__name__].__class__ = _Props\n",
    }
    with zipfile.ZipFile(tmp_path / "torch.whl", "w") as archive:
        for name, text in files.items():
            archive.writestr(f"torch/{name}", text)
    wheel = Wheel(tmp_path / "torch.whl")
    there = "torch.zeros torch.zeros(dtype=) torch.bfloat16 torch.late torch.nn.Pad(value=) torch.nn.Pad.forward "
    there += "torch.nn.loose.any(what=) torch.nn.loose.made(out=) torch.props.filled torch.ops.mine.product"
    lacking = "torch.ones torch.zeros(device=) torch.nn.Pad(of=) torch.nn.Pad.other torch.nn.loose.made(inplace=) "
    lacking += "torch.props.emptied torch.nn.value"
    assert [name for name in there.split() if not wheel.has(name)] == []
    assert [name for name in lacking.split() if wheel.has(name)] == []
