"""Compiles every kernel for a GPU that need not be here.

``python -m benchmarks.kernel_compile_check --gpu-capability 80 90``

Triton brings its own assembler, so a machine without a GPU can tell that a kernel is one (the interpreter accepts what
the compiler does not), how much shared memory a program asks for, and whether its numbers fit into registers. One JSON
object is printed for each kernel, on a line. Nothing is run, and no time follows from it.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import subprocess
import tempfile
from collections.abc import Iterator
from itertools import product
from typing import Any

import torch
import triton
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from plumbline.core import command_line
from plumbline.model.kernels.tiles import BlockSizes, blocks_for, sizes

#: Kernel -> the constants that only it has, one compilation each. `OUT` of 32 heads in 8 groups: 24 attend.
OPTIONS: dict[str, tuple[dict[str, Any], ...]] = {
    "bounded": ({"CAPPED": True}, {"CAPPED": False}),
    "softpick": ({"VISIBLE": True},),
    "softpick_original": ({},),
    "sigmoid": ({"VISIBLE": False, "DIVIDED": True}, {"VISIBLE": True, "DIVIDED": False}),
    "selective": ({"OUT": 24, "AFTER": False}, {"OUT": 32, "AFTER": True}),
}
PASSES = ("_forward", "_queries", "_keys")
_TYPES = {torch.bfloat16: "*bf16", torch.float32: "*fp32"}
_SINGLE = {"bias", "db", "top", "inverse", "log_sum", "delta"}
_NUMBERS = {"scale", "cap", "count", "epsilon"}
#: How a number of Python's reaches a kernel: from a launch, and from the code that torch.compile makes.
NUMBERS = ("fp32", "fp64")


def compile_kernels(
    width: int, dtype: torch.dtype, capability: int, *, every: bool = True, numbers: str = "fp32"
) -> Iterator[dict[str, Any]]:
    """Compile each kernel at the transfer study's 32 heads in 8 groups, and yield what the compiler says of it.

    Args:
        width: of a head.
        capability: of the GPU, such as 90.
        every: compile all options of a kernel, not the first alone.
        numbers: the type in which Python's numbers reach the kernel, one of `NUMBERS`.

    Returns:
        For each kernel and pass: `shared`, bytes of shared memory per program; `registers` per thread; `spilled`, bytes
        per thread that did not fit into them; `doubles`, instructions that compute in float64, where all but the cast
        of a number should be in float32.
    """
    q_BHTW = torch.empty(1, 32, 1, width, dtype=dtype)
    for kernel, variants in OPTIONS.items():
        blocks = blocks_for(kernel, q_BHTW)
        common = sizes(q_BHTW, q_BHTW[:, :8], blocks)
        module = importlib.import_module(f"plumbline.model.kernels.{kernel}")
        for options in variants if every else variants[:1]:
            for name in PASSES:
                constants = common | options | {"KEEP": True}
                compiled = _compile(getattr(module, name), constants, dtype, capability, blocks, numbers)
                registers, spilled = _registers(compiled.asm["ptx"], capability)
                yield {
                    "kernel": kernel,
                    "pass": name.removeprefix("_"),
                    "options": options,
                    "shared": compiled.metadata.shared,
                    "registers": registers,
                    "spilled": spilled,
                    "doubles": _doubles(compiled.asm["ptx"]),
                }


def _compile(
    function: Any, constants: dict[str, Any], dtype: torch.dtype, capability: int, blocks: BlockSizes, numbers: str
) -> Any:
    signature, values, aligned = {}, {}, {}
    for place, name in enumerate(function.arg_names):
        if name in constants:
            signature[name], values[(place,)] = "constexpr", constants[name]
        elif name in _NUMBERS:
            signature[name] = numbers
        else:
            integer = name == "length" or re.fullmatch("[qkv]_[bht]", name)
            signature[name] = "i32" if integer else "*fp32" if name in _SINGLE else _TYPES[dtype]
            # As a launch would find it: addresses, strides and a length of multiples of 16.
            aligned[(place,)] = [["tt.divisibility", 16]]
    source = ASTSource(function, signature, values, aligned)
    options = {"num_warps": blocks.warps, "num_stages": blocks.stages}
    return triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options)


def _doubles(ptx: str) -> int:
    """Instructions on float64; those that read a number of the host's and cast it to float32 are not counted."""
    instructions = [line.strip() for line in ptx.splitlines() if ".f64" in line]
    return sum(not re.match(r"\.|ld\.param|mov\.|cvt\.rn\.f32\.f64", line) for line in instructions)


def _registers(ptx: str, capability: int) -> tuple[int, int]:
    """Registers and spilled bytes a thread, from the assembler."""
    architecture = f"sm_{capability}{'a' if capability >= 90 else ''}"
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(ptx)
        file.flush()
        command = [knobs.nvidia.ptxas.path, "-v", f"-arch={architecture}", file.name, "-o", "/dev/null"]
        assembler_output = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    registers, spilled = (
        re.search(r"Used (\d+) registers", assembler_output),
        re.search(r"(\d+) bytes spill stores", assembler_output),
    )
    assert registers is not None and spilled is not None, assembler_output
    return int(registers[1]), int(spilled[1])


def main() -> int:
    """Run the verb `python -m benchmarks.kernel_compile_check` and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kernel_compile_check", description=__doc__)
    parser.add_argument(
        "--gpu-capability", type=int, nargs="+", default=[90], help="of the GPU, as 80 90 (default: 90)"
    )
    parser.add_argument("--head-width", type=int, default=64, help="of a head (default: %(default)s)")
    parser.add_argument("--dtype", choices=("bfloat16", "float32"), default="bfloat16")
    parser.add_argument(
        "--scalar-types", nargs="+", choices=NUMBERS, default=["fp32"],
        help="how Python numbers reach a kernel: fp32 from a launch, fp64 from torch.compile (default: fp32)",
    )  # fmt: skip
    parser.add_argument("--all-options", action="store_true", help="with all options of a kernel, not the first alone")
    arguments = parser.parse_args()
    for capability, numbers in product(arguments.gpu_capability, arguments.scalar_types):
        dtype = getattr(torch, arguments.dtype)
        for row in compile_kernels(
            arguments.head_width, dtype, capability, every=arguments.all_options, numbers=numbers
        ):
            print(json.dumps({"capability": capability, "numbers": numbers} | row), flush=True)
    return 0


if __name__ == "__main__":
    command_line.run(main)
