"""Steps at paper width on a CUDA device that is not there: what no step should do on a GPU."""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.fake_device import absent_cuda, method_rows
from benchmarks.fake_device.compiled_step import FEW, extrapolate
from plumbline.core.errors import PlumblineError
from plumbline.specs import study_config
from tests.conftest import REPOSITORY
from tests.fake_device import warm_device
from tests.fake_device.warm_device import WarmDevice

#: PLUMBLINE_REQUIRE_COMPILER=1 makes an error of what is otherwise a reason to skip.
REQUIRED = os.environ.get("PLUMBLINE_REQUIRE_COMPILER") == "1"
pytestmark = pytest.mark.skipif(
    shutil.which("g++") is None and not REQUIRED, reason="the guard of the device is compiled by g++, which is not here"
)

#: Each of a kind: fused attention, a kernel of ours, another activation, float32 products that are listed.
CHOSEN = ("baseline", "softpick", "relu_squared", "attnres")
#: Another kernel of ours, a gate, another norm's place.
OTHERS = ("sigmoid_attn", "gated_attn_qknorm", "sandwich_norm")
STUDIES = ("transfer", "premature", "query_free", "quack", "key_norms")
#: A run of each intervention of the studies -> where it may wait in a step, how often, and files of float32 products.
HEADS, SCORES = "src/plumbline/train/interventions/_heads.py", "src/plumbline/model/mixers/_base.py"
INTERVENTIONS: dict[str, tuple[dict[str, int], set[str]]] = {
    "key_norms/base/frozen_gains/s42": ({}, set()),
    "premature/base/gpt_slow/s42": ({}, set()),
    "premature/base/global_half_lr/s42": ({}, set()),
    "premature/base/entropy_floor/s42": ({"_local_scalar_dense at entropy_floor.py": 1}, {SCORES}),
    "quack/mha/ablation.eta_0.0003-tau_0.01/s42": ({}, set()),
    "quack/mha/quack.eta_0.0003-tau_0.01/s42": ({}, set()),
    "quack/mha/quack.spectral/s42": ({"_linalg_eigh at _heads.py": 2}, {HEADS}),
    "quack/mla/qk_clip_30.eta_0.0003/s42": (
        {"_local_scalar_dense at qk_clip.py": 1, "copy cpu to cuda at qk_clip.py": 1}, {SCORES},
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def device(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmDevice]:
    with warm_device.start_device(tmp_path_factory.mktemp("device"), REPOSITORY) as process:
        yield process


def run_module(device: WarmDevice, module: str, *arguments: str) -> list[dict[str, Any]]:
    """What a command printed, an object a line."""
    done = device.run(module, *arguments)
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def assert_sound(rows: list[dict[str, Any]]) -> None:
    assert [fault for row in rows for fault in method_rows.faults(row)] == []
    assert all(row["unfinished"] is None and row["peak_bytes"] > row["held_bytes"] > 0 for row in rows)
    single = {row["method"] for row in rows if row["single_products"]}
    assert not [name for name in single if not re.search(r"attnres|\.|entropy_floor|qk_clip|spectral", name)]


def test_steps_wait_for_nothing_and_compute_in_bfloat16(device: WarmDevice) -> None:
    """A layer of 1.2B's width."""
    printed = run_module(device, "benchmarks.fake_device", "--layers=1", "--json", "--methods", *CHOSEN)
    rows = {row["method"]: row for row in printed}
    assert list(rows) == list(CHOSEN)
    assert_sound([*rows.values()])
    baseline = rows["baseline"]
    weights = 2 * 2048 * 2048 + 2 * 2048 * 512 + 3 * 2048 * 5632 + 65664 * 2048
    assert baseline["parameter_bytes"] == pytest.approx(4 * weights, rel=1e-3)
    assert baseline["peak_bytes"] > 4 * baseline["parameter_bytes"], "weights, gradients and two moments"
    assert baseline["held_bytes"] == pytest.approx(3 * baseline["parameter_bytes"], rel=1e-3)


@pytest.mark.slow
def test_other_steps_wait_for_nothing_either(device: WarmDevice) -> None:
    rows = run_module(device, "benchmarks.fake_device", "--layers=2", "--json", "--methods", *OTHERS)
    assert [row["method"] for row in rows] == list(OTHERS)
    assert_sound(rows)


@pytest.fixture(scope="module")
def intervention_rows(device: WarmDevice) -> dict[str, dict[str, Any]]:
    """The second step of each, of one layer."""
    rows = run_module(device, "benchmarks.fake_device", "--layers=1", "--json", "--methods", *INTERVENTIONS)
    assert_sound(rows)
    return {row["method"]: row for row in rows}


def test_interventions_wait_only_where_they_say_so(intervention_rows: dict[str, dict[str, Any]]) -> None:
    """What clips, freezes, slows or adds to the loss."""
    assert list(intervention_rows) == list(INTERVENTIONS)
    for name, row in intervention_rows.items():
        waits, products = INTERVENTIONS[name]
        wait_counts: Counter[str] = Counter()
        for place, often in row["declared_waits"].items():
            wait_counts[re.sub(r"\S*/(\w+\.py):\d+$", r"\1", place)] += often
        assert wait_counts == waits, name
        files = {place.rpartition(" at ")[2].partition(":")[0] for place in row["single_products"]}
        assert files - {"torch's own"} == products, name


def test_no_intervention_of_a_study_is_left_out() -> None:
    """Every component that some run at paper size has is in a run above, and logit_change as well."""
    runs = {key: run.spec for name in STUDIES for key, run in study_config.load(name, "paper").runs.items()}
    planned = {intervention["name"] for spec in runs.values() for intervention in spec.interventions}
    assert {intervention["name"] for key in INTERVENTIONS for intervention in runs[key].interventions} == planned
    assert len(planned) >= 8


def test_a_component_that_waits_is_a_row_and_the_others_go_on(device: WarmDevice) -> None:
    names = ["qknorm", "relu_squared", "geglu_ffn", "baseline"]
    done = device.run("tests.fake_device.planted_components", "--layers=1", "--json", "--methods", *names)
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr[-3000:]
    rows = {row["method"]: row for row in map(json.loads, done.stdout.splitlines())}
    assert list(rows) == names
    here = r"tests/fake_device/planted_components\.py:\d+"
    ((place, often),) = rows["qknorm"]["waits"].items()
    assert re.fullmatch(rf"_local_scalar_dense at {here}", place) and often == 1, "once a layer"
    assert rows["qknorm"]["unfinished"] is None, "it goes on with a number"
    assert re.fullmatch(rf"Dynamic.*nonzero.* at {here}", rows["relu_squared"]["unfinished"])
    endless = rows["geglu_ffn"]["unfinished"]
    assert re.fullmatch(rf"EndlessWaitError: waits more than 20 times at {here}", endless)
    assert_sound([rows["baseline"]])
    named_components = {line.partition(":")[0] for line in done.stderr.splitlines()}
    assert named_components == {"qknorm", "relu_squared", "geglu_ffn"}


@pytest.mark.slow
@pytest.mark.skipif(os.environ.get("PLUMBLINE_FAKE_DEVICE") != "all", reason="PLUMBLINE_FAKE_DEVICE is not all")
def test_every_kind_of_step_at_paper_size(device: WarmDevice) -> None:
    """Ten minutes of a core: methods, variants, and the runs of other studies with their interventions."""
    rows = run_module(device, "benchmarks.fake_device", "--json")
    names = {row["method"] for row in rows}
    assert len(rows) >= 110 and names >= {*method_rows.base_scale_specs.methods(), *INTERVENTIONS}
    assert_sound(rows)


def test_each_fault_is_found_by_file_and_line(device: WarmDevice) -> None:
    (row,) = run_module(device, "tests.fake_device.planted_faults")
    places = [re.fullmatch(r"(.+) at tests/fake_device/planted_faults\.py:\d+", place)[1] for place in row["waits"]]
    assert sorted(places) == ["_local_scalar_dense", "copy cpu to cuda", "copy cuda to cpu", "index_put_"]
    slow = [re.fullmatch(r"(.+) at tests/fake_device/planted_faults\.py:\d+", place)[1] for place in row["single"]]
    assert sorted(slow) == ["convolution", "mm", "mm", "mv"], "float32 and float64"
    size = 4 * 64 * 32
    assert row["held"] == size + size // 2 < row["peak"], "what went is not counted any more"


def test_a_fault_is_a_sentence() -> None:
    row: dict[str, Any] = {
        "waits": {"nonzero at src/plumbline/model/decoder.py:3": 2},
        "single_products": {
            "mm at src/plumbline/model/residual/_sources.py:27": 1,
            "mm at src/plumbline/model/decoder.py:7": 4,
        },
        "without_gradient": ["embedding: None"],
        "unfinished": "ValueError: no at block.py:3",
    }
    assert method_rows.faults(row) == [
        "the host waits 2 times: nonzero at src/plumbline/model/decoder.py:3",
        "a float32 product, 4 times: mm at src/plumbline/model/decoder.py:7",
        "a gradient that is not of its parameter's type: embedding: None",
        "the step cannot go on: ValueError: no at block.py:3",
    ]
    # The gradient of what is listed has no place of its own; without any it is nobody's.
    row |= {"waits": {}, "without_gradient": [], "unfinished": None}
    listed, nowhere = "mm at src/plumbline/model/mixers/_base.py:9", "bmm at torch's own"
    assert method_rows.faults(row | {"single_products": {listed: 1, nowhere: 1}}) == []
    assert method_rows.faults(row | {"single_products": {nowhere: 1}}) == [f"a float32 product, 1 times: {nowhere}"]


def test_inductor_plans_steps_without_float32_logits(device: WarmDevice) -> None:
    """One layer, with a kernel of ours too: a chunk's kernel reads logits in bfloat16 and writes their gradient."""
    command = ("benchmarks.fake_device.compiled_step", "--layers=1", "--json", "--methods", "baseline", "softpick")
    baseline, softpick = run_module(device, *command)
    assert baseline["bytes"] < 25e9, "34e9 where float32 logits are stored"
    assert softpick["kernels"] == baseline["kernels"] and softpick["seconds_h100"] > baseline["seconds_h100"]


def test_few_layers_tell_of_many() -> None:
    """Where each layer adds as much, and where it adds as much more than the one before."""

    def plan(layers: int, bend: float) -> dict[str, float]:
        return {"kernels": 7.0, "bytes": 5.0 + 3.0 * layers + bend * layers**2}

    for bend, counts in ((0.0, FEW[:2]), (0.5, FEW)):
        assert extrapolate([plan(count, bend) for count in counts], 24) == plan(24, bend)


def test_a_missing_compiler_is_an_error_where_it_is_demanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in continuous integration; elsewhere these tests are skipped."""
    monkeypatch.setenv("PATH", str(tmp_path))
    for required, skipped in (("1", False), ("0", True)):
        monkeypatch.setenv("PLUMBLINE_REQUIRE_COMPILER", required)
        assert runpy.run_path(__file__)["pytestmark"].args == (skipped,)
    with pytest.raises(PlumblineError, match=r"compiled.*not installed"):
        absent_cuda.require_compiler()


@pytest.mark.parametrize("module", ["benchmarks.fake_device", "benchmarks.fake_device.compiled_step"])
@pytest.mark.parametrize("part", [("--layers=1",), ("--methods", "softpick")])
def test_a_part_does_not_replace_kept_rows(module: str, part: tuple[str, ...]) -> None:
    done = subprocess.run([sys.executable, "-m", module, *part], cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 2 and "--json" in done.stderr, done.stderr
