"""Gives this process a CUDA device that is not there, for fake tensors. It has to come before torch is imported."""

from __future__ import annotations

import ctypes
import importlib.util
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from plumbline.core.errors import PlumblineError

SOURCE = Path(__file__).with_name("absent_cuda.cpp")
#: What is said of the device: an H100 SXM's, where code goes by it.
PROPERTIES = SimpleNamespace(
    name="no device", major=9, minor=0, warp_size=32, multi_processor_count=132, regs_per_multiprocessor=65536,
    max_threads_per_multi_processor=2048, max_threads_per_block=1024, total_memory=80 * 10**9,
    shared_memory_per_block=49152, shared_memory_per_block_optin=232448, L2_cache_size=50 * 2**20,
)  # fmt: skip


def enter() -> None:
    """Compile the device's guard against torch's headers, load it, import torch, and have it take CUDA for available.

    Raises:
        PlumblineError: torch is already there, or the guard cannot be compiled, as without a compiler.
    """
    if "torch" in sys.modules:
        raise PlumblineError("torch is imported already, and has asked which devices there are; use a new process")
    compiler = shutil.which("g++")
    if compiler is None:
        raise PlumblineError(f"{SOURCE.name} is compiled by g++, which is not installed (apt install g++)")
    spec = importlib.util.find_spec("torch")
    assert spec is not None and spec.origin is not None
    include, libraries = (Path(spec.origin).with_name(name) for name in ("include", "lib"))
    with tempfile.TemporaryDirectory() as place:
        library = Path(place) / "libabsent_cuda.so"
        command = [compiler, "-std=c++20", "-shared", "-fPIC", "-w", str(SOURCE), "-o", str(library)]
        command += [f"-I{include}", f"-I{include / 'torch/csrc/api/include'}"]
        command += [f"-L{libraries}", "-lc10", "-ltorch_cpu", f"-Wl,-rpath,{libraries}"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise PlumblineError(f"{SOURCE}: {compiler} cannot compile it: {done.stderr.strip()[-500:]}")
        ctypes.CDLL(str(library))
    _persuade()


def _persuade() -> None:
    """Answer what Python code of torch and Triton asks of a device: one of compute capability 9.0."""
    import torch

    answers: dict[str, Any] = {
        "is_available": lambda: True,
        "is_bf16_supported": lambda *arguments, **keywords: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "get_device_capability": lambda *arguments: (9, 0),
        "get_device_name": lambda *arguments: PROPERTIES.name,
        "get_device_properties": lambda *arguments: PROPERTIES,
        "get_rng_state": lambda *arguments: torch.zeros(16, dtype=torch.uint8),
        "set_rng_state": lambda *arguments: None,
        "synchronize": lambda *arguments: None,
        "_lazy_init": lambda: None,
        "_exchange_device": lambda index: 0,
        "_maybe_exchange_device": lambda index: 0,
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, answer)
    torch.cuda.amp.common.amp_definitely_not_available = lambda: False
    from triton.backends.compiler import GPUTarget
    from triton.runtime import driver

    target = GPUTarget("cuda", 10 * PROPERTIES.major + PROPERTIES.minor, PROPERTIES.warp_size)
    driver.set_active(SimpleNamespace(get_current_target=lambda: target, get_current_device=lambda: 0))
