"""Steps at paper width on a CUDA device that is not there: what no step should do on a GPU."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from benchmarks.fake_device import absent_cuda, method_rows
from benchmarks.fake_device.compiled_step import FEW, extrapolate
from plumbline.core.errors import PlumblineError
from plumbline.specs import study_config
from tests.conftest import REPOSITORY

#: PLUMBLINE_REQUIRE_COMPILER=1 makes an error of what is otherwise a reason to skip.
REQUIRED = os.environ.get("PLUMBLINE_REQUIRE_COMPILER") == "1"
pytestmark = pytest.mark.skipif(
    shutil.which("g++") is None and not REQUIRED, reason="the guard of the device is compiled by g++, which is not here"
)

#: Each of a kind: fused attention, a kernel of ours, another activation, float32 products that are listed.
CHOSEN = ("baseline", "softpick", "relu_squared", "attnres")
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


def run_command(*arguments: str, module: str = "benchmarks.fake_device") -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", module, *arguments], cwd=REPOSITORY, capture_output=True, text=True)


def read_rows(*arguments: str) -> dict[str, dict[str, Any]]:
    """What the command printed, an object a line, by the row's name."""
    process = run_command(*arguments)
    assert process.returncode == 0, process.stderr[-3000:]
    return {row["method"]: row for row in map(json.loads, process.stdout.splitlines())}


@pytest.fixture(scope="module")
def rows() -> dict[str, dict[str, Any]]:
    """Of one layer at the run's width: a part, which does not replace what is kept."""
    kept = (REPOSITORY / "benchmarks/fake_device.jsonl").read_bytes()
    rows = read_rows("--layers=1", "--methods", *CHOSEN, *INTERVENTIONS)
    assert list(rows) == [*CHOSEN, *INTERVENTIONS]
    assert (REPOSITORY / "benchmarks/fake_device.jsonl").read_bytes() == kept
    assert_sound(rows.values())
    return rows


def assert_sound(rows: Collection[dict[str, Any]]) -> None:
    assert [fault for row in rows for fault in method_rows.faults(row)] == []
    assert all(row["unfinished"] is None and row["peak_bytes"] > row["held_bytes"] > 0 for row in rows)
    single = {row["method"] for row in rows if row["single_products"]}
    assert not [name for name in single if not re.search(r"attnres|\.|entropy_floor|qk_clip|spectral", name)]


def test_steps_wait_for_nothing_and_compute_in_bfloat16(rows: dict[str, dict[str, Any]]) -> None:
    """And their memory by hand: a layer of 1.2B's width."""
    baseline = rows["baseline"]
    weights = 2 * 2048 * 2048 + 2 * 2048 * 512 + 3 * 2048 * 5632 + 65664 * 2048
    assert baseline["parameter_bytes"] == pytest.approx(4 * weights, rel=1e-3)
    assert baseline["peak_bytes"] > 4 * baseline["parameter_bytes"], "weights, gradients and two moments"
    assert baseline["held_bytes"] == pytest.approx(3 * baseline["parameter_bytes"], rel=1e-3)


def test_interventions_wait_only_where_they_say_so(rows: dict[str, dict[str, Any]]) -> None:
    """What clips, freezes, slows or adds to the loss."""
    for name, (waits, products) in INTERVENTIONS.items():
        row = rows[name]
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


def test_each_fault_is_found_by_file_and_line_and_the_others_go_on() -> None:
    names = ["qknorm", "relu_squared", "baseline"]
    process = run_command("--layers=1", "--methods", *names, module="tests.fake_device.planted_components")
    assert process.returncode == 1 and "Traceback" not in process.stderr, process.stderr[-3000:]
    qknorm, relu_squared, baseline = map(json.loads, process.stdout.splitlines())
    here = r" at tests/fake_device/planted_components\.py:\d+"
    waits = [re.fullmatch(rf"(.+){here}", place)[1] for place in qknorm["waits"]]
    assert sorted(waits) == ["_local_scalar_dense", "copy cpu to cuda", "copy cuda to cpu", "index_put_"]
    slow = [re.fullmatch(rf"(.+){here}", place)[1] for place in qknorm["single_products"]]
    assert sorted(slow) == ["convolution", "mm", "mm", "mv"], "float32 and float64"
    assert qknorm["unfinished"] is None, "it goes on with a number"
    assert re.fullmatch(rf"Dynamic.*nonzero.*{here}", relu_squared["unfinished"])
    assert_sound([baseline])
    assert {line.partition(":")[0] for line in process.stderr.splitlines()} == {"qknorm", "relu_squared"}


@pytest.mark.slow
@pytest.mark.skipif(os.environ.get("PLUMBLINE_FAKE_DEVICE") != "all", reason="PLUMBLINE_FAKE_DEVICE is not all")
def test_every_kind_of_step_at_paper_size() -> None:
    """Ten minutes of a core: methods, variants, and the runs of other studies with their interventions."""
    names = method_rows.specs(None)
    assert len(names) >= 110 and {*study_config.load("transfer", "paper").methods, *INTERVENTIONS} <= {*names}
    assert_sound(read_rows("--methods", *names).values())


def test_float32_products_are_faults_unless_their_file_is_listed() -> None:
    """The gradient of what is listed has no place of its own; without any it is nobody's."""
    row: dict[str, Any] = {"waits": {}, "without_gradient": [], "unfinished": None}
    listed, nowhere = "mm at src/plumbline/model/mixers/_base.py:9", "bmm at torch's own"
    assert method_rows.faults(row | {"single_products": {listed: 1, nowhere: 1}}) == []
    assert method_rows.faults(row | {"single_products": {nowhere: 1}}) == [f"a float32 product, 1 times: {nowhere}"]


def test_inductor_plans_steps_without_float32_logits() -> None:
    """One layer, with a kernel of ours too: a chunk's kernel reads logits in bfloat16 and writes their gradient."""
    rows = read_rows("--compiled", "--layers=1", "--methods", "baseline", "softpick")
    baseline, softpick = rows.values()
    assert baseline["bytes"] < 25e9, "34e9 where float32 logits are stored"
    assert softpick["kernels"] == baseline["kernels"] and softpick["seconds_h100"] > baseline["seconds_h100"]


def test_few_layers_tell_of_many() -> None:
    """Where each layer adds as much, and where it adds as much more than the one before."""

    def plan(layers: int, bend: float) -> dict[str, float]:
        return {"kernels": 7.0, "bytes": 5.0 + 3.0 * layers + bend * layers**2}

    for bend, counts in ((0.0, FEW[:2]), (0.5, FEW)):
        assert extrapolate([plan(count, bend) for count in counts], 24) == plan(24, bend)


def test_a_missing_compiler_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    with pytest.raises(PlumblineError, match=r"compiled.*not installed"):
        absent_cuda.enter()
