"""Selects the code that computes a mixer's weights: a table by kernel, device and number type.

A mixer names the kernel that can compute it (`Mixer.kernel`), and this table states where that kernel runs. Everywhere
else, and wherever the reference is requested, a mixer makes explicit weights for some queries at a time (`CHUNKED`).
Triton's kernels take plain causal calls only: with padding or a decoding cache a call is computed in chunks, on any
device. What torch's fused attention (`SDPA`) can compute goes through a package of flash-attention if one is installed
and takes the call (`choose_fused_kernel`): flash-attn 3 on a Hopper, else flash-attn. Whether these packages are
installed is checked once, when this module is imported; flash-attention itself is imported when a run needs it, so that
a build for another torch stops the run at its start.
"""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from importlib import metadata
from typing import Literal

import torch

from plumbline.core.errors import PlumblineError

#: How attention is computed: by the table's kernel, or by explicit weights from the reference, in chunks of queries.
AttentionMode = Literal["auto", "reference"]

#: Explicit weights, some queries at a time: every mixer has them.
CHUNKED = "chunked"

#: Torch's fused attention, whose own dispatcher picks among flash, cuDNN and others.
SDPA = "sdpa"

#: A package of flash-attention, in the place of `SDPA` for the calls that it takes.
FLASH_ATTN = "flash_attn"

#: flash-attn 3, which was written for GPUs of compute capability 9.
FLASH_ATTN_3 = "flash_attn_3"

#: Distribution -> its module, the one first that is taken first.
FLASH_PACKAGES = {FLASH_ATTN_3: "flash_attn_interface", FLASH_ATTN: "flash_attn"}


def is_installed(package: str) -> bool:
    """Whether a package is installed; a folder without code (the remains of another version) does not count."""
    spec = importlib.util.find_spec(package)
    return spec is not None and spec.origin is not None


TRITON_INSTALLED = is_installed("triton")
FLASH_INSTALLED = [name for name, module in FLASH_PACKAGES.items() if is_installed(module)]

_HALF_AND_SINGLE = frozenset({torch.bfloat16, torch.float32})


@dataclass(frozen=True, kw_only=True, slots=True)
class KernelSupport:
    """Where a kernel runs.

    Attributes:
        devices: None for every device.
        types: number types; None for all of them.
        module: the module of the kernel, if it is a Triton kernel.
        plain: whether it takes only calls without padding and without a decoding cache.
        widest: the largest head width; None for any.
        width_step: head widths are multiples of it.
    """

    devices: frozenset[str] | None = None
    types: frozenset[torch.dtype] | None = None
    module: str | None = None
    plain: bool = False
    widest: int | None = None
    width_step: int = 1

    def takes(self, device: str, dtype: torch.dtype, plain: bool) -> bool:
        """Whether the kernel can run such a call, if the packages it needs are installed."""
        fits = (self.devices is None or device in self.devices) and (self.types is None or dtype in self.types)
        return fits and (plain or not self.plain)

    def takes_width(self, width: int) -> bool:
        """Whether the kernel can run heads of this width."""
        return (self.widest is None or width <= self.widest) and width % self.width_step == 0


def _triton(name: str) -> KernelSupport:
    return KernelSupport(
        devices=frozenset({"cuda"}), types=_HALF_AND_SINGLE, module=f"plumbline.model.kernels.{name}", plain=True
    )


#: Kernel -> where it runs. A mixer that no kernel computes (`selective` summed over queries) has no row.
TABLE: dict[str, KernelSupport] = {
    SDPA: KernelSupport(),
    "bounded": _triton("bounded"),
    "softpick": _triton("softpick"),
    "softpick_original": _triton("softpick_original"),
    "sigmoid": _triton("sigmoid"),
    "selective": _triton("selective"),
}

#: flash-attention's causal kernels, outside the table since no mixer names them: they take the place of `SDPA`. They
#: take half precision only and heads of at most 256; widths that are not a multiple of 8 they would pad by a copy.
FLASH_ATTN_SUPPORT = KernelSupport(
    devices=frozenset({"cuda"}),
    types=frozenset({torch.bfloat16, torch.float16}),
    plain=True,
    widest=256,
    width_step=8,
)


def choose_kernel(
    kernel: str | None, device: str, dtype: torch.dtype, *, plain: bool = True, mode: AttentionMode = "auto"
) -> str:
    """Return the kernel that a call runs through: `kernel` if it takes the call, else `CHUNKED`."""
    row = TABLE.get(kernel) if kernel is not None and mode == "auto" else None
    if row is None or not row.takes(device, dtype, plain) or (row.module is not None and not TRITON_INSTALLED):
        return CHUNKED
    return kernel


def choose_fused_kernel(device: str, dtype: torch.dtype, width: int, *, plain: bool = True) -> str:
    """Return what computes a call that `SDPA` can compute: `FLASH_ATTN` if installed and able, else `SDPA` itself."""
    row = FLASH_ATTN_SUPPORT
    return FLASH_ATTN if row.takes(device, dtype, plain) and row.takes_width(width) and find_flash_packages() else SDPA


def find_flash_packages() -> list[str]:
    """Return the packages of flash-attention that run on this process's device; the first computes `FLASH_ATTN`."""
    return [name for name in FLASH_INSTALLED if name != FLASH_ATTN_3 or _is_hopper()]


def _is_hopper() -> bool:
    return torch.cuda.is_available() and torch.cuda.get_device_capability()[0] == 9


def package_versions(kernel: str) -> dict[str, str | None]:
    """Return the versions of Triton and flash-attn that `kernel` runs by; None for a package that it does not use.

    Raises:
        PlumblineError: flash-attn is installed and cannot be used.
    """
    row = TABLE.get(kernel)
    return {
        "triton": None if row is None or row.module is None else metadata.version("triton"),
        "flash_attn": _flash_attn_version(kernel) if kernel in FLASH_PACKAGES else None,
    }


def _flash_attn_version(package: str) -> str:
    try:
        importlib.import_module(FLASH_PACKAGES[package]).flash_attn_func  # noqa: B018  # it is there
        return metadata.version(package)
    except (ImportError, AttributeError, OSError) as error:  # one that was built for another torch; another package
        name = package.replace("_", "-")
        raise PlumblineError(
            f"{name} is installed and cannot be used ({error}); install one that is built for torch "
            f"{torch.__version__} (of flash-attn: pip install --no-build-isolation 'flash-attn>=2.7'), or take it away "
            f"(pip uninstall {name}), and torch's own attention computes the same"
        ) from error


def describe_missing_package(
    kernel: str | None, device: str, dtype: torch.dtype, *, mode: AttentionMode = "auto"
) -> str | None:
    """Return a warning if only a package that is not installed keeps a kernel from running here; else None."""
    row = TABLE.get(kernel) if kernel is not None and mode == "auto" else None
    if row is None or row.module is None or TRITON_INSTALLED or not row.takes(device, dtype, plain=True):
        return None
    return (
        f"Triton is not installed, so the weights of kernel {kernel!r} are explicit, in chunks of queries: the same "
        "numbers up to rounding, slower and with more memory; pip install triton brings it"
    )
