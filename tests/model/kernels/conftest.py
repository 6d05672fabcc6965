"""Triton's interpreter for these tests: kernels run on the CPU, tile by tile.

Whether a kernel is interpreted is decided for good when its file is imported, for Triton's own library too. So all of
them are imported here, when tests are collected, and the variable is taken away again: processes that other tests start
are none of its business. Where there is a CUDA device the same tests run on it, compiled, in blocks as they are chosen;
those that look into the interpreter are skipped then.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Iterator
from types import ModuleType

import pytest
import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
KERNELS = ("bounded", "softpick", "softpick_original", "sigmoid", "selective")


def import_interpreted() -> dict[str, ModuleType]:
    """The kernels' modules by name; none without Triton."""
    if importlib.util.find_spec("triton") is None:
        return {}
    os.environ["TRITON_INTERPRET"] = "1" if DEVICE == "cpu" else "0"
    try:
        return {name: importlib.import_module(f"plumbline.model.kernels.{name}") for name in KERNELS}
    finally:
        del os.environ["TRITON_INTERPRET"]


MODULES = import_interpreted()


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, ModuleType]]:
    """All kernels, interpreted in small blocks with a table that lets the CPU take them; or on the device."""
    from plumbline.model.kernels import selection, tiles

    if not MODULES:
        pytest.skip("Triton is not installed")
    if DEVICE == "cuda":
        yield MODULES
        return
    assert tiles.INTERPRETED, "Triton was imported, uninterpreted, before these tests were collected"
    # Triton loads more of itself at the first launch, and looks again.
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    for module in MODULES.values():
        monkeypatch.setattr(module, "blocks_for", lambda kernel, q_BHTW: tiles.BlockSizes(held=32, walked=16))
    here = selection.KernelSupport(types=frozenset(selection.TABLE["softpick"].types or ()), module="here", plain=True)
    for name in KERNELS:
        monkeypatch.setitem(selection.TABLE, name, here)
    yield MODULES
