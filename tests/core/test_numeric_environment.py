"""Variables of the environment that change numbers: each is refused, recorded, or has nothing to do with them."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

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


#: Families of variables -> some of each, with a value that a shell may have set, and what a run does about it.
MATRIX = {
    "ONEDNN_": {"DEFAULT_FPMATH_MODE=TF32": "refused", "MAX_CPU_ISA=AVX2": "recorded", "VERBOSE=1": "harmless"},
    "DNNL_": {"DEFAULT_FPMATH_MODE=BF16": "refused", "MAX_CPU_ISA=AVX2": "recorded", "VERBOSE=1": "harmless"},
    "MKL_": {
        "BLAS_COMPUTE_MODE=FLOAT_TO_BF16": "refused", "CBWR=AVX2": "recorded", "NUM_THREADS=2": "recorded",
        "ENABLE_INSTRUCTIONS=AVX2": "recorded", "DYNAMIC=0": "recorded", "VERBOSE=1": "harmless",
    },
    "NVIDIA_": {"TF32_OVERRIDE=1": "refused", "TF32_OVERRIDE=0": "recorded", "VISIBLE_DEVICES=all": None},
    "CUBLAS_": {
        "WORKSPACE_CONFIG=:4096:8": "recorded", "EMULATE_SINGLE_PRECISION=1": "recorded", "LOGINFO_DBG=1": "harmless",
    },
    "CUBLASLT_": {"WORKSPACE_SIZE=1": "recorded"},
    "CUDNN_": {"CONV_WSCAP_DBG=1": "recorded", "LOGLEVEL_DBG=1": "harmless"},
    "TORCH_": {
        "ALLOW_TF32_CUBLAS_OVERRIDE=1": "recorded", "BLAS_PREFER_CUBLASLT=1": "recorded",
        "COMPILE_DISABLE=1": "recorded",
        "LINALG_PREFER_CUSOLVER=1": "recorded", "MKLDNN_MATMUL_MIN_DIM=8": "recorded", "LOGS=+dynamo": "harmless",
        "NCCL_ASYNC_ERROR_HANDLING=1": "harmless", "HOME=/x": "harmless",
    },
    "TORCHDYNAMO_": {"DISABLE=1": "recorded", "SUPPRESS_ERRORS=1": "recorded"},
    "TORCHINDUCTOR_": {
        "EMULATE_PRECISION_CASTS=1": "recorded", "MAX_AUTOTUNE=1": "recorded", "CACHE_DIR=/home/me/cache": "harmless",
    },
    "PYTORCH_": {
        "TENSOREXPR=1": "recorded", "CUDA_ALLOC_CONF=expandable_segments:True": "harmless",
        "NVML_BASED_CUDA_CHECK=1": "harmless",
    },
    "TRITON_": {"F32_DEFAULT=ieee": "recorded", "CACHE_DIR=/x": "harmless"},
    "OMP_": {"NUM_THREADS=2": "recorded"}, "OPENBLAS_": {"CORETYPE=Haswell": "recorded"},
    "NCCL_": {"ALGO=Ring": "recorded"}, "ATEN_": {"CPU_CAPABILITY=default": "recorded"},
    "LD_": {"PRELOAD=libblis.so": "recorded", "LIBRARY_PATH=/opt/mkl/lib": "recorded"}, "HOME": {"=/home/me": None},
    "NPY_": {"DISABLE_CPU_FEATURES=X86_V3": "recorded", "ENABLE_CPU_FEATURES=X86_V4": "recorded"},
    "CUTLASS_": {"EPILOGUE_FUSION=1": "recorded"}, "CUTEDSL_": {"ENABLE_AUTOTUNING=1": "recorded"},
    "ENABLE_": {"PERSISTENT_TMA_MATMUL=1": "recorded", "TMA_LOAD_FOR_TEMPLATE_EPILOGUE=1": "recorded"},
    "INTEL_": {"ISA_DISABLE=avx2": "recorded"},
    "FBGEMM_": {"ENABLE_INSTRUCTIONS=AVX2": "recorded"}, "FLASH_ATTENTION_": {"TRITON_AMD_ENABLE=1": "recorded"},
}  # fmt: skip


@pytest.mark.parametrize("family", MATRIX)
def test_each_variable_is_refused_recorded_or_harmless(family: str) -> None:
    for setting, outcome in MATRIX[family].items():
        name, _, value = f"{family}{setting}".partition("=")
        refused = numeric_environment.explain_refusal({name: value}) is not None
        recorded = name in numeric_environment.list_recorded({name: value})
        assert (refused, recorded) == (outcome == "refused", outcome in ("refused", "recorded")), name
        if outcome in ("harmless", None):
            assert numeric_environment.find_treatment(name) == outcome, name


def test_whatever_torch_reads_of_these_families_has_a_treatment() -> None:
    """By its Python sources: a new torch may read more."""
    families = "|".join(family for family in MATRIX if family.startswith(("TORCH", "PYTORCH", "CU", "MKL", "ONEDNN")))
    pattern = re.compile(rf"""(?:environ\W[^"'\n]*|getenv\(|env_name\w*=)["']((?:{families})[A-Z0-9_]*)["']""")
    folder = Path(importlib.util.find_spec("torch").origin).parent
    names = {name for path in folder.rglob("*.py") for name in pattern.findall(path.read_text(errors="replace"))}
    assert len(names) > 150 and {"TORCHDYNAMO_DISABLE", "TORCHINDUCTOR_MAX_AUTOTUNE"} < names
    assert [name for name in sorted(names) if numeric_environment.find_treatment(name) is None] == []


def test_what_asks_for_tf32_is_set_back() -> None:
    """Recorded, and without a consequence: torch reads it when it is imported."""
    program = (
        "import torch; from plumbline.model.numerics import set_numerics; matmul = torch.backends.cuda.matmul; "
        "before = matmul.allow_tf32; set_numerics(torch.device('cuda')); print(before, matmul.allow_tf32)"
    )
    environment = {"TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "1", "PATH": ""}
    process = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert process.stdout.split() == ["True", "False"], process.stderr


SINES = "import numpy as np; x = np.linspace(1, 9, 99999); print(hash(np.sin(x).tobytes() + np.log(x).tobytes()))"
PRODUCT = (
    "import torch; x = torch.linspace(1, 9, 257 * 513).view(257, 513); print((x @ x.T).double().sum().item().hex())"
)


@pytest.mark.parametrize(
    ("name", "value", "program"),
    [
        ("GLIBC_TUNABLES", "glibc.cpu.hwcaps=-FMA,-AVX2,-AVX2_Usable", SINES),
        ("NPY_DISABLE_CPU_FEATURES", "X86_V3 X86_V4", SINES),
        ("INTEL_ISA_DISABLE", "avx2", PRODUCT),
    ],
)
def test_what_chooses_other_instructions_changes_numbers_and_is_recorded(name: str, value: str, program: str) -> None:
    """On this machine, where its processor has the choice: the last digits of a sine, a logarithm, a product."""
    outputs = {
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", program], env=environment, capture_output=True, text=True, check=True
        ).stdout
        for environment in ({"PYTHONHASHSEED": "0"}, {"PYTHONHASHSEED": "0", name: value})
    }
    if len(outputs) == 1:
        pytest.skip("this processor, or this C library, has no other instructions")
    assert numeric_environment.list_recorded({name: value}) == {name: value}


def test_what_is_recorded_names_no_folders() -> None:
    preloaded = numeric_environment.list_recorded({"MKL_OWN_TABLE": "/home/me/one.so:/opt/two.so", "HOME": "/home/me"})
    assert preloaded == {"MKL_OWN_TABLE": "…/one.so:…/two.so"}
