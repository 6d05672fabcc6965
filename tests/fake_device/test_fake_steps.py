"""Steps at paper width on a CUDA device that is not there: what no step should do on a GPU."""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
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
    assert all(row["kernels"] > 100 and row["graphs"] == 1 for row in rows)
    single = {row["method"] for row in rows if row["single_products"]}
    assert not [name for name in single if not re.search(r"attnres|\.|entropy_floor|qk_clip|spectral", name)]


def test_steps_wait_for_nothing_and_compute_in_bfloat16(device: WarmDevice) -> None:
    """A layer of 1.2B's width."""
    printed = run_module(device, "benchmarks.fake_device", "--layers=1", "--json", "--methods", *CHOSEN)
    rows = {row["method"]: row for row in printed}
    assert list(rows) == list(CHOSEN)
    assert_sound([*rows.values()])
    baseline = rows["baseline"]
    # 6 operations a weight and token, and those of the visible pairs.
    weights = 2 * 2048 * 2048 + 2 * 2048 * 512 + 3 * 2048 * 5632 + 65664 * 2048
    pairs = 8 * 1024 * 1025 // 2
    operations = 6 * weights * 8192 + 7 * 2 * 2048 * pairs
    assert baseline["operations"] == pytest.approx(operations, rel=2e-3)
    assert baseline["parameter_bytes"] == pytest.approx(4 * weights, rel=1e-3)
    assert baseline["peak_bytes"] > 4 * baseline["parameter_bytes"], "weights, gradients and two moments"
    assert rows["relu_squared"]["kernels"] < baseline["kernels"] < rows["attnres"]["kernels"]


@pytest.mark.slow
def test_other_steps_wait_for_nothing_either(device: WarmDevice) -> None:
    rows = run_module(device, "benchmarks.fake_device", "--layers=2", "--json", "--methods", *OTHERS)
    assert [row["method"] for row in rows] == list(OTHERS)
    assert_sound(rows)


@pytest.fixture(scope="module")
def intervention_rows(device: WarmDevice) -> dict[str, dict[str, Any]]:
    """The second step of each, of one layer."""
    rows = run_module(
        device, "benchmarks.fake_device", "--layers=1", "--json", "--no-graphs", "--methods", *INTERVENTIONS
    )
    assert_sound([row | {"graphs": 1} for row in rows])
    return {row["method"]: row for row in rows}


def test_muons_products_are_bfloat16_too(intervention_rows: dict[str, dict[str, Any]]) -> None:
    """Five steps of three products for each of the two matrices of an FFN, and for attention's four as one."""
    row = intervention_rows["key_norms/base/frozen_gains/s42"]
    # Attention's are 512 and 2 x 256 rows, and 512 again; each FFN has two of 2,048 x 512.
    assert row["update_operations"] == 5 * sum(2 * 512**2 * (2 * long + 512) for long in (1536, 2048, 2048))


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
    kernels = {name: row["kernels"] + row["update_kernels"] for name, row in intervention_rows.items()}
    clipped, slowed = kernels["quack/mla/qk_clip_30.eta_0.0003/s42"], kernels["premature/base/gpt_slow/s42"]
    assert clipped > 700 and kernels["premature/base/entropy_floor/s42"] > 1.5 * slowed, "they were in the step"


def test_no_intervention_of_a_study_is_left_out() -> None:
    """Every component that some run at paper size has is in a run above, and logit_change as well."""
    runs = {key: run.spec for name in STUDIES for key, run in study_config.load(name, "paper").runs.items()}
    planned = {intervention["name"] for spec in runs.values() for intervention in spec.interventions}
    assert {intervention["name"] for key in INTERVENTIONS for intervention in runs[key].interventions} == planned
    assert len(planned) >= 8


def test_a_component_that_waits_is_a_row_and_the_others_go_on(device: WarmDevice) -> None:
    names = ["qknorm", "relu_squared", "geglu_ffn", "baseline"]
    options = ("--layers=1", "--json", "--no-graphs")
    done = device.run("tests.fake_device.planted_components", *options, "--methods", *names)
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr[-3000:]
    rows = {row["method"]: row for row in map(json.loads, done.stdout.splitlines())}
    assert list(rows) == names
    here = r"tests/fake_device/planted_components\.py:\d+"
    ((place, often),) = rows["qknorm"]["waits"].items()
    assert re.fullmatch(rf"_local_scalar_dense at {here}", place) and often == 1, "once a layer"
    assert rows["qknorm"]["unfinished"] is None and rows["qknorm"]["update_kernels"] > 0, "it goes on with a number"
    assert re.fullmatch(rf"Dynamic.*nonzero.* at {here}", rows["relu_squared"]["unfinished"])
    endless = rows["geglu_ffn"]["unfinished"]
    assert re.fullmatch(rf"EndlessWaitError: waits more than 20 times at {here}", endless)
    assert_sound([rows["baseline"] | {"graphs": 1}])
    named_components = {line.partition(":")[0] for line in done.stderr.splitlines()}
    assert named_components == {"qknorm", "relu_squared", "geglu_ffn"}


def test_a_wait_without_an_end_is_traced_to_no_graph(device: WarmDevice) -> None:
    done = device.run("tests.fake_device.planted_components", "--layers=1", "--json", "--methods", "geglu_ffn")
    row = json.loads(done.stdout)
    assert done.returncode == 1 and row["graphs"] == 0 and "data-dependent" in row["no_graph"], done.stderr[-3000:]


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
    calls = {name: rest for name, *rest in row["calls"]}
    assert calls["add_"] == [1, 2 * size, 0], "read and written"
    assert calls["_foreach_mul_"] == [1, 3 * size, 0], "both of a list, one of half the size"
    assert [rest for name, *rest in row["calls"] if name == "mm"] == [
        [1, 2 * size + 4 * 64 * 64, 2 * 64 * 64 * 32],
        [1, size + 2 * 64 * 64, 2 * 64 * 64 * 32],
        [1, 4 * size + 8 * 64 * 64, 2 * 64 * 64 * 32],
    ]
    assert not {"view", "transpose", "expand"} & calls.keys()
    assert row["held"] == size + size // 2 < row["peak"], "what went is not counted any more"


def test_a_fault_is_a_sentence() -> None:
    row: dict[str, Any] = {
        "waits": {"nonzero at src/plumbline/model/decoder.py:3": 2},
        "single_products": {
            "mm at src/plumbline/model/residual/_sources.py:27": 1,
            "mm at src/plumbline/model/decoder.py:7": 4,
        },
        "without_gradient": ["embedding: None"],
        "graphs": 2,
    }
    row |= {"unfinished": None, "no_graph": None}
    assert method_rows.faults(row) == [
        "the host waits 2 times: nonzero at src/plumbline/model/decoder.py:3",
        "a float32 product, 4 times: mm at src/plumbline/model/decoder.py:7",
        "a gradient that is not of its parameter's type: embedding: None",
        "2 graphs of torch.compile",
    ]
    stopped = row | {"graphs": 0, "unfinished": "ValueError: no at block.py:3", "no_graph": "a call of print"}
    assert method_rows.faults(stopped)[-2:] == [
        "the step cannot go on: ValueError: no at block.py:3",
        "0 graphs of torch.compile: a call of print",
    ]
    # The gradient of what is listed has no place of its own; without any it is nobody's.
    row |= {"waits": {}, "without_gradient": [], "graphs": 1}
    listed, nowhere = "mm at src/plumbline/model/mixers/_base.py:9", "bmm at torch's own"
    assert method_rows.faults(row | {"single_products": {listed: 1, nowhere: 1}}) == []
    assert method_rows.faults(row | {"single_products": {nowhere: 1}}) == [f"a float32 product, 1 times: {nowhere}"]


def test_inductor_plans_the_loss_without_float32_logits(device: WarmDevice) -> None:
    """One layer: a chunk's kernel reads logits in bfloat16 and writes their gradient; more is the weights' gradient."""
    (row,) = run_module(device, "benchmarks.fake_device.compiled_step", "--layers=1", "--json", "--methods", "baseline")
    groups, logits = row["groups"], 2 * 8 * 1023 * 65664
    assert groups["loss"]["bytes"] < 8 * logits, "17 times where float32 logits are stored"
    assert groups["attention"]["kernels"] == 2 and groups["matrix products"]["operations"] > 8e12
    assert sum(entry["bytes"] for entry in groups.values()) < 25e9


def test_few_layers_tell_of_many() -> None:
    """Where each layer adds as much, and where it adds as much more than the one before."""

    def table(layers: int, bend: float) -> dict[str, dict[str, float]]:
        return {"loss": {"bytes": 7.0}, "rest": {"bytes": 5.0 + 3.0 * layers + bend * layers**2}}

    for bend, counts in ((0.0, FEW[:2]), (0.5, FEW)):
        assert extrapolate([table(count, bend) for count in counts], 24) == table(24, bend)


def state(device: str, seconds: float, rehearsal: str | None = None) -> str:
    """What a check has left: one step that was measured, and one that failed."""
    description = {"device": device, "kind": "cuda", "sizes": "paper", "rehearsal": rehearsal}
    rows = {
        "baseline, first": {"status": "measured", "tries": 1, "seconds": seconds},
        "qknorm": {"status": "failed", "tries": 1, "reason": "no"},
    }
    sections = {"compiled_method_steps": {"planned": None, "ended": None, "rows": rows}}
    return json.dumps({"format": 1, "machine": {}, "told": description, "sections": sections})


def test_measured_steps_stand_by_device_and_rehearsals_nowhere(tmp_path: Path) -> None:
    (tmp_path / "benchmarks").mkdir()
    assert method_rows.read_timings(tmp_path) == {}
    for name, content in {
        "a100": state("NVIDIA A100", 0.5),
        "h100": state("NVIDIA H100", 0.25),
        "cpu": state("a processor", 9.0, "rehearsal on a processor, not a measurement"),
        "tiny": state("NVIDIA H100", 0.001, "rehearsal at toy sizes, not a measurement"),
    }.items():
        (tmp_path / f"benchmarks/gpu_check_{name}.json").write_text(content)
    timings = method_rows.read_timings(tmp_path)
    assert timings == {"NVIDIA A100": {"baseline": 0.5}, "NVIDIA H100": {"baseline": 0.25}}
    columns = dict(zip(method_rows.timing_columns(timings), method_rows.timing_cells(timings, "baseline")))
    assert {head.rpartition(": ")[2]: cell for head, cell in columns.items()} == {
        "NVIDIA A100": "500", "NVIDIA H100": "250",
    }  # fmt: skip
    assert method_rows.timing_cells(timings, "qknorm") == ("not measured",) * 2
    assert method_rows.timing_cells({}, "baseline") == ("not measured",) and len(method_rows.timing_columns({})) == 1


def test_a_missing_compiler_is_an_error_where_it_is_demanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in continuous integration; elsewhere these tests are skipped."""
    monkeypatch.setenv("PATH", str(tmp_path))
    for required, skipped in (("1", False), ("0", True)):
        monkeypatch.setenv("PLUMBLINE_REQUIRE_COMPILER", required)
        assert runpy.run_path(__file__)["pytestmark"].args == (skipped,)
    with pytest.raises(PlumblineError, match=r"compiled.*not installed"):
        absent_cuda.require_compiler()
