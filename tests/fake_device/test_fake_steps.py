"""Steps at paper width on a CUDA device that is not there: what no step should do on a GPU."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.fake_device import method_rows
from benchmarks.fake_device.compiled_step import FEW, grown
from tests.conftest import REPOSITORY

COMPILER = shutil.which("g++")
pytestmark = pytest.mark.skipif(
    COMPILER is None, reason="the guard of the device is compiled by g++, which is not here"
)

#: Each of a kind: fused attention, two kernels of ours, float32 products that are listed, a gate, another norm's place.
CHOSEN = ("baseline", "softpick", "sigmoid_attn", "relu_squared", "attnres", "gated_attn_qknorm", "sandwich_norm")


def asked(module: str, *words: str) -> list[dict[str, Any]]:
    """What a command printed, an object a line."""
    done = subprocess.run([sys.executable, "-m", module, *words], cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def assert_sound(rows: list[dict[str, Any]]) -> None:
    assert [fault for row in rows for fault in method_rows.faults(row)] == []
    assert all(row["kernels"] > 100 and row["graphs"] == 1 for row in rows)
    assert {row["method"] for row in rows if row["single_products"]} <= {"attnres"} | {
        row["method"] for row in rows if "." in row["method"]
    }


def test_steps_wait_for_nothing_and_compute_in_bfloat16() -> None:
    """Two layers of 1.2B's width."""
    rows = {row["method"]: row for row in asked("benchmarks.fake_device", "--layers=2", "--json", "--methods", *CHOSEN)}
    assert list(rows) == list(CHOSEN)
    assert_sound([*rows.values()])
    baseline = rows["baseline"]
    # 6 operations a weight and token, and those of the visible pairs.
    weights = 2 * (2 * 2048 * 2048 + 2 * 2048 * 512 + 3 * 2048 * 5632) + 65664 * 2048
    pairs = 8 * 1024 * 1025 // 2
    operations = 6 * weights * 8192 + 2 * 7 * 2 * 2048 * pairs
    assert baseline["operations"] == pytest.approx(operations, rel=2e-3)
    assert baseline["parameter_bytes"] == pytest.approx(4 * weights, rel=1e-3)
    assert baseline["peak_bytes"] > 4 * baseline["parameter_bytes"], "weights, gradients and two moments"
    assert rows["relu_squared"]["kernels"] < baseline["kernels"] < rows["attnres"]["kernels"]


def test_muons_products_are_bfloat16_too() -> None:
    """Five steps of three products for each of the two matrices of an FFN, and for attention's four as one."""
    run = "key_norms/base/as_published/s42"
    (row,) = asked("benchmarks.fake_device", "--layers=2", "--json", "--no-graphs", "--methods", run)
    assert_sound([row | {"graphs": 1}])
    # Attention's are 512 and 2 x 256 rows, and 512 again; each FFN has two of 2,048 x 512.
    assert row["update_operations"] == 2 * 5 * sum(2 * 512**2 * (2 * long + 512) for long in (1536, 2048, 2048))


@pytest.mark.slow
@pytest.mark.skipif(os.environ.get("PLUMBLINE_FAKE_DEVICE") != "all", reason="PLUMBLINE_FAKE_DEVICE is not all")
def test_every_method_and_variant_at_paper_size() -> None:
    """Four minutes of a core."""
    rows = asked("benchmarks.fake_device", "--json")
    assert len(rows) >= 55 and {row["method"] for row in rows} >= set(method_rows.base_scale_specs.methods())
    assert_sound(rows)


def test_each_fault_is_found_by_file_and_line() -> None:
    (found,) = asked("tests.fake_device.planted_faults")
    places = [re.fullmatch(r"(.+) at tests/fake_device/planted_faults\.py:\d+", what)[1] for what in found["waits"]]
    assert sorted(places) == ["_local_scalar_dense", "copy cpu to cuda", "copy cuda to cpu", "index_put_"]
    slow = [re.fullmatch(r"(.+) at tests/fake_device/planted_faults\.py:\d+", what)[1] for what in found["single"]]
    assert sorted(slow) == ["convolution", "mm", "mm", "mv"], "float32 and float64"
    size = 4 * 64 * 32
    calls = {name: rest for name, *rest in found["calls"]}
    assert calls["add_"] == [1, 2 * size, 0], "read and written"
    assert calls["_foreach_mul_"] == [1, 3 * size, 0], "both of a list, one of half the size"
    assert [rest for name, *rest in found["calls"] if name == "mm"] == [
        [1, 2 * size + 4 * 64 * 64, 2 * 64 * 64 * 32],
        [1, size + 2 * 64 * 64, 2 * 64 * 64 * 32],
        [1, 4 * size + 8 * 64 * 64, 2 * 64 * 64 * 32],
    ]
    assert not {"view", "transpose", "expand"} & calls.keys()
    assert found["held"] == size + size // 2 < found["peak"], "what went is not counted any more"


def test_a_fault_is_a_sentence() -> None:
    row: dict[str, Any] = {
        "waits": {"nonzero at src/plumbline/model/block.py:3": 2},
        "single_products": {
            "mm at src/plumbline/model/residual/_sources.py:27": 1,
            "mm at src/plumbline/model/block.py:7": 4,
        },
        "without_gradient": ["embedding: None"],
        "graphs": 2,
    }
    assert method_rows.faults(row) == [
        "the host waits 2 times: nonzero at src/plumbline/model/block.py:3",
        "a float32 product, 4 times: mm at src/plumbline/model/block.py:7",
        "a gradient that is not of its parameter's type: embedding: None",
        "2 graphs of torch.compile",
    ]
    # The gradient of what is listed has no place of its own; without any it is nobody's.
    row |= {"waits": {}, "without_gradient": [], "graphs": 1}
    listed, nowhere = "mm at src/plumbline/model/mixers/_base.py:9", "bmm at torch's own"
    assert method_rows.faults(row | {"single_products": {listed: 1, nowhere: 1}}) == []
    assert method_rows.faults(row | {"single_products": {nowhere: 1}}) == [f"a float32 product, 1 times: {nowhere}"]


def test_inductor_plans_the_loss_without_float32_logits() -> None:
    """One layer: a chunk's kernel reads logits in bfloat16 and writes their gradient; more is the weights' gradient."""
    (row,) = asked("benchmarks.fake_device.compiled_step", "--layers=1", "--json", "--methods", "baseline")
    groups, logits = row["groups"], 2 * 8 * 1023 * 65664
    assert groups["loss"]["bytes"] < 8 * logits, "17 times where float32 logits are stored"
    assert groups["attention"]["kernels"] == 2 and groups["matrix products"]["operations"] > 8e12
    assert sum(entry["bytes"] for entry in groups.values()) < 25e9


def test_few_layers_tell_of_many() -> None:
    """Where each layer adds as much, and where it adds as much more than the one before."""

    def table(layers: int, bend: float) -> dict[str, dict[str, float]]:
        return {"loss": {"bytes": 7.0}, "rest": {"bytes": 5.0 + 3.0 * layers + bend * layers**2}}

    for bend, counts in ((0.0, FEW[:2]), (0.5, FEW)):
        assert grown([table(count, bend) for count in counts], 24) == table(24, bend)


def test_a_measured_step_stands_in_the_table(tmp_path: Path) -> None:
    state = {"format": 1, "machine": {}, "sections": {"eager_steps": {"planned": None, "ended": None, "rows": {
        "baseline, first": {"status": "measured", "tries": 1, "seconds": 0.25},
        "qknorm": {"status": "failed", "tries": 1, "reason": "no"},
    }}}}  # fmt: skip
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks/gpu_check_h100.json").write_text(json.dumps(state))
    assert method_rows.measured(tmp_path) == {"baseline": 0.25}
