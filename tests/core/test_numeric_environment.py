"""Variables of the environment that change numbers: each is refused, recorded, or has nothing to do with them."""

from __future__ import annotations

import pytest

from plumbline.core import numeric_environment
from plumbline.core.errors import PlumblineError

NARROWING = {
    "ONEDNN_DEFAULT_FPMATH_MODE": ("BF16", "bf16", "F16", "TF32", "ANY", "anything"),
    "DNNL_DEFAULT_FPMATH_MODE": ("BF16", "any"),
    "NVIDIA_TF32_OVERRIDE": ("1",),
    "MKL_BLAS_COMPUTE_MODE": ("FLOAT_TO_BF16",),
}
WIDE = {
    "ONEDNN_DEFAULT_FPMATH_MODE": ("STRICT", "strict", ""),
    "DNNL_DEFAULT_FPMATH_MODE": ("STRICT",),
    "NVIDIA_TF32_OVERRIDE": ("0",),
    "MKL_BLAS_COMPUTE_MODE": ("STANDARD",),
}


def test_what_narrows_float32_is_refused_by_name_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, values in NARROWING.items():
        for value in values:
            assert numeric_environment.list_narrowing({name: value}) == [f"{name}={value}"]
            monkeypatch.setenv(name, value)
            with pytest.raises(PlumblineError, match=rf"{name}={value} in the environment .*unset {name}\)"):
                numeric_environment.require_wide_products()
            monkeypatch.delenv(name)
    for name, values in WIDE.items():
        assert [numeric_environment.explain_refusal({name: value}) for value in values] == [None] * len(values)
    numeric_environment.require_wide_products()


def test_what_may_change_last_digits_is_recorded_without_folders() -> None:
    changing = {
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "DNNL_MAX_CPU_ISA": "AVX2",
        "MKL_CBWR": "COMPATIBLE",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "ATEN_CPU_CAPABILITY": "default",
        "OPENBLAS_CORETYPE": "Haswell",
        "OMP_NUM_THREADS": "2",
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
        "CUBLASLT_WORKSPACE_SIZE": "1",
        "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "1",
        "TORCH_BLAS_PREFER_CUBLASLT": "1",
        "TORCHINDUCTOR_EMULATE_PRECISION_CASTS": "1",
        "NVIDIA_TF32_OVERRIDE": "0",
        "NCCL_ALGO": "Ring",
    }
    harmless = {
        "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
        "TORCH_LOGS": "+dynamo",
        "ONEDNN_VERBOSE": "1",
        "TORCHINDUCTOR_CACHE_DIR": "/home/me/cache",
        "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1",
        "HOME": "/home/me",
        "PATH": "/usr/bin",
    }
    assert numeric_environment.list_recorded(changing | harmless) == dict(sorted(changing.items()))
    preloaded = numeric_environment.list_recorded({"MKL_OWN_TABLE": "/home/me/one.so:/opt/two.so"})
    assert preloaded == {"MKL_OWN_TABLE": "…/one.so:…/two.so"}
