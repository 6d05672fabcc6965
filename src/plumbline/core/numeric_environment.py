"""Lists the environment variables that change the numbers of torch, numpy and their libraries: what is refused,
recorded, or harmless.

Libraries read most of them once, at their first product or when they are loaded: nothing that a process sets later
undoes them. What narrows the products of float32 is refused, since a run would say "float32" and be something else;
what changes the last digits (kernels for other processors, orders of sums, numbers of threads) is recorded. Imports no
torch.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Literal

from plumbline.core.errors import PlumblineError

Treatment = Literal["refused", "recorded", "harmless"]

#: Each variable, or where a name ends with *, each that begins so; the longest name that fits is the one that counts.
TREATMENTS: dict[str, Treatment] = {
    # Of the processor: a value other than those of `_NARROWS_NOTHING` narrows float32 products to fewer bits.
    "ONEDNN_DEFAULT_FPMATH_MODE": "refused",
    "DNNL_DEFAULT_FPMATH_MODE": "refused",
    "MKL_BLAS_COMPUTE_MODE": "refused",
    # Of a GPU: CUDA's libraries take TF32 whatever a program asks for.
    "NVIDIA_TF32_OVERRIDE": "refused",
    # Which kernels are taken, and in which order they add.
    "ATEN_CPU_CAPABILITY": "recorded",
    "BLIS_*": "recorded",
    "CUBLAS*": "recorded",
    "CUDNN_*": "recorded",
    "CUTEDSL_*": "recorded",
    "CUTLASS_*": "recorded",
    "DISABLE_ADDMM_CUDA_LT": "recorded",
    "DNNL_*": "recorded",
    "ENABLE_PERSISTENT_TMA_MATMUL": "recorded",
    "ENABLE_TEMPLATE_TMA_STORE": "recorded",
    "ENABLE_TMA_LOAD_*": "recorded",
    "FBGEMM_*": "recorded",
    "FLASH_ATTENTION_*": "recorded",
    "GLIBC_TUNABLES": "recorded",  # the C library's sines and powers, which numpy's are
    "GOMP_*": "recorded",
    "INTEL_ISA_DISABLE": "recorded",  # MKL's products, where MKL_ENABLE_INSTRUCTIONS is not looked at
    "KMP_*": "recorded",
    "LD_LIBRARY_PATH": "recorded",  # other libraries of products, before those that torch brings
    "LD_PRELOAD": "recorded",
    "MKL_*": "recorded",
    "NCCL_*": "recorded",
    "NPY_DISABLE_CPU_FEATURES": "recorded",
    "NPY_ENABLE_CPU_FEATURES": "recorded",
    "OMP_*": "recorded",
    "ONEDNN_*": "recorded",
    "OPENBLAS_*": "recorded",
    "PYTORCH_*": "recorded",
    "TORCH_*": "recorded",  # TORCH_ALLOW_TF32_CUBLAS_OVERRIDE among them: every computation here turns TF32 off again
    "TORCHDYNAMO_*": "recorded",
    "TORCHINDUCTOR_*": "recorded",
    "TRITON_*": "recorded",
    # Places, what is printed, where memory comes from, how processes meet.
    "CUBLAS_LOG*": "harmless",
    "CUDNN_LOG*": "harmless",
    "DNNL_VERBOSE*": "harmless",
    "KMP_INIT_AT_FORK": "harmless",
    "KMP_DUPLICATE_LIB_OK": "harmless",
    "MKL_VERBOSE*": "harmless",
    "NCCL_DEBUG*": "harmless",
    "NCCL_SOCKET*": "harmless",
    "ONEDNN_VERBOSE*": "harmless",
    "PYTORCH_ALLOC_CONF": "harmless",
    "PYTORCH_CUDA_ALLOC_CONF": "harmless",
    "PYTORCH_HIP_ALLOC_CONF": "harmless",
    "PYTORCH_KERNEL_CACHE_PATH": "harmless",
    "PYTORCH_NVML_BASED_CUDA_CHECK": "harmless",
    "PYTORCH_VERSION": "harmless",
    "TORCHINDUCTOR_CACHE_DIR": "harmless",
    "TORCH_COMPILE_DEBUG*": "harmless",
    "TORCHELASTIC_*": "harmless",
    "TORCHEXPORT_*": "harmless",
    "TORCH_CPP_LOG_LEVEL": "harmless",
    "TORCH_CUDA_ARCH_LIST": "harmless",
    "TORCH_DISTRIBUTED_DEBUG": "harmless",
    "TORCH_EXTENSIONS_DIR": "harmless",
    "TORCH_HOME": "harmless",
    "TORCH_LOGS*": "harmless",
    "TORCH_NCCL_*": "harmless",
    "TORCH_SHOW_CPP_STACKTRACES": "harmless",
    "TRITON_CACHE_DIR": "harmless",
    "TRITON_HOME": "harmless",
}

#: Values of refused variables that leave float32 as it is, in capitals.
_NARROWS_NOTHING = {
    "ONEDNN_DEFAULT_FPMATH_MODE": ("", "STRICT"),
    "DNNL_DEFAULT_FPMATH_MODE": ("", "STRICT"),
    "MKL_BLAS_COMPUTE_MODE": ("", "STANDARD"),
    "NVIDIA_TF32_OVERRIDE": ("", "0"),
}


def find_treatment(name: str) -> Treatment | None:
    """Look up what is done about a variable; None if it has nothing to do with numbers."""
    fitting = [pattern for pattern in TREATMENTS if _fits(name, pattern)]
    return TREATMENTS[max(fitting, key=len)] if fitting else None


def list_narrowing(environment: Mapping[str, str] = os.environ) -> list[str]:
    """List the settings ``NAME=VALUE`` that narrow the products of float32."""
    return [
        f"{name}={value}"
        for name, value in sorted(environment.items())
        if find_treatment(name) == "refused" and value.strip().upper() not in _NARROWS_NOTHING[name]
    ]


def explain_refusal(environment: Mapping[str, str] = os.environ) -> str | None:
    """Say why nothing is computed in this environment, with the remedy; None if nothing is in the way."""
    settings = list_narrowing(environment)
    if not settings:
        return None
    names = " ".join(setting.partition("=")[0] for setting in settings)
    return (
        f"{', '.join(settings)} in the environment makes the libraries below torch multiply float32 numbers with fewer "
        "bits: the results would be called float32 and would not be. Leave it out (unset "
        f"{names}), also where jobs inherit it (the shell, a module, sbatch); a run in bfloat16 is asked for by "
        "train.precision in the study's YAML"
    )


def require_wide_products() -> None:
    """Refuse an environment whose float32 products are not float32 (`TREATMENTS`).

    Raises:
        PlumblineError: naming the variables and the remedy.
    """
    if message := explain_refusal():
        raise PlumblineError(message)


def list_recorded(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """List the variables that are set and may change numbers, by name, for a run's manifest.

    A path among the values is written as its last part, since manifests are published.
    """
    settings = {name: value for name, value in environment.items() if find_treatment(name) in ("recorded", "refused")}
    return {name: re.sub(r"/[^\s:,;]*/", "…/", value) for name, value in sorted(settings.items())}


def _fits(name: str, pattern: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern
