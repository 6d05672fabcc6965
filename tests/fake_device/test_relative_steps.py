"""What config/machines.yaml states that methods take compared with the baseline is what the committed rows state."""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.fake_device import compiled_step
from benchmarks.gpu_check import base_scale_specs, table_lines
from benchmarks.gpu_check.measured_rows import table
from plumbline.model.decoder import on_meta
from plumbline.model.flops import products_per_pair, products_per_token
from plumbline.plan import machines, model_counts
from plumbline.specs import study_config
from plumbline.specs.yaml_files import read_yaml
from tests.conftest import REPOSITORY

#: A component is named in the file where its step takes so much more or less than the baseline's: of GPUs by what is
#: estimated, of a core by what is measured, which has more noise. Both to two digits.
NAMED, NAMED_OF_A_CORE = 0.02, 0.10
PAGE = REPOSITORY / "benchmarks/compiled_step.md"


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in (PAGE.with_suffix(".jsonl")).read_text().splitlines()]


def keep_ratios(relative: machines.Relative, least: float) -> machines.Relative:
    chosen_ratios = {
        slot: {name: time for name, time in times.items() if abs(time - 1) > least - 1e-9}
        for slot, times in relative.items()
    }
    return {slot: times for slot, times in chosen_ratios.items() if times}


def of_variants(ratios: dict[str, float]) -> Iterator[tuple[str, str, float]]:
    """Slot, component with the option that differs from its method's, and ratio of each variant that was planned."""
    runs = base_scale_specs.runs("paper")
    assert set(compiled_step.VARIANTS) == {name for name in ratios if "." in name}
    for variant in compiled_step.VARIANTS:
        model, own = runs[variant].model, runs[variant.partition(".")[0]].model
        (slot,) = (slot for slot in model.slots if model.slot(slot) != own.slot(slot))
        options = model.slot(slot).options.items() - own.slot(slot).options.items()
        yield slot, " ".join([model.slot(slot).name, *(f"{key}={value}" for key, value in options)]), ratios[variant]


def test_relative_steps_of_gpus_are_those_of_the_rows(rows: list[dict[str, Any]]) -> None:
    """Of every machine with estimated times, by the speeds of the device that it has."""
    reckoned = compiled_step.relative(rows)
    machine_by_name = {name: machines.load(name) for name in read_yaml(table_lines.MACHINES)}
    gpu_machines = {
        name: machine
        for name, machine in machine_by_name.items()
        if machine.device == "cuda" and machine.relative_step_time
    }
    assert {machine.device_name.lower() for machine in gpu_machines.values()} == set(reckoned) <= set(gpu_machines)
    study = study_config.load("transfer", "paper")
    for name, machine in gpu_machines.items():
        ratios = reckoned[machine.device_name.lower()]
        expected = table_lines.separate_components({method: ratios[method] - 1 for method in study.methods})
        for slot, slot_words, ratio in of_variants(ratios):
            expected[slot][slot_words] = round(ratio, 2)
        assert machine.relative_step_time == keep_ratios(expected, NAMED), name
        for method in ratios:  # whose components add up, to what is not named
            run = study.runs[f"transfer/base/{method}/s42"]
            assert machine.compute_relative_time(run) == pytest.approx(ratios[method], abs=0.021), (name, method)


def test_a_micro_batch_in_a_step_is_by_hand(rows: list[dict[str, Any]]) -> None:
    """Seven additions of three tensors and one update of eleven, for eight micro-batches."""
    seconds = {row["method"]: row["seconds_h100"] for row in rows}
    more = (7 * 3 + 11) * 4_866_842_624 / 2.8e12 / 8
    ratio = (seconds["attnres"] + more) / (seconds["baseline"] + more)
    assert compiled_step.relative(rows)["h100"]["attnres"] == pytest.approx(ratio)
    assert machines.load("h100").relative_step_time["residual"]["attention_residuals"] == round(ratio, 2)


def test_relative_steps_of_a_core_are_the_averages_of_its_table(repository: Path) -> None:
    text = (repository / "benchmarks/method_step_times.md").read_text()
    study = study_config.load("transfer", "demo")
    labels = {study.label(name): name for name in study.methods}
    ratios_by_method: dict[str, list[float]] = {}
    for label, ratio in re.findall(r"^\| ([^|]+?) \| (\d\.\d\d) \|", text, re.M):
        ratios_by_method.setdefault(label, []).append(float(ratio))
    assert all(len(ratios) == 2 for ratios in ratios_by_method.values()), "two runs"
    over = {labels[label]: statistics.mean(each) - 1 for label, each in ratios_by_method.items() if label in labels}
    relative = keep_ratios(table_lines.separate_components(over), NAMED_OF_A_CORE)
    core_ratios = dict(machines.load("core").relative_step_time)
    precision = core_ratios.pop("precision")
    assert set(precision) == {"bfloat16"}
    assert precision["bfloat16"] == pytest.approx(
        statistics.mean(ratios_by_method["Baseline, second hardware profile"]), abs=0.05
    )
    assert {slot: set(times) for slot, times in core_ratios.items()} == {
        slot: set(times) for slot, times in relative.items()
    }
    for slot, times in core_ratios.items():
        assert times == pytest.approx(relative[slot], abs=0.011), slot


def test_the_page_shows_the_rows_and_the_rates(rows: list[dict[str, Any]]) -> None:
    study, ratios = study_config.load("transfer", "paper"), compiled_step.relative(rows)
    assert [row["method"] for row in rows] == compiled_step.list_methods()
    assert all(re.fullmatch(r"whole|with [\d, ]+ and \d+ layers", row["planned"]) for row in rows)
    lines = [
        (
            study.label(row["method"]), round(row["kernels"]), row["bytes"] / 1e9, 1e3 * row["seconds_h100"],
            *(f"{ratios[machine][row['method']]:.2f}" for machine in ratios), row["planned"],
        )
        for row in rows
    ]  # fmt: skip
    text = PAGE.read_text()
    assert [line for line in text.splitlines() if line.startswith("| ")][2:] == table(["row"], lines)[2:]
    for machine, rates in compiled_step.RATES.items():
        stated = re.search(rf"{machine.upper()}: ([\d.]+) TB/s, (\d+) TFLOP/s, (\d+) in .*? and (\d+) in our", text)
        assert [float(number) * 1e12 for number in stated.groups()] == [*rates.values()]


def test_a_plans_mfu_and_the_pages_count_the_same_pairs(rows: list[dict[str, Any]]) -> None:
    """All pairs, and beside them the visible ones: by hand from the rows, and from what the plan counts of a token."""
    run = study_config.load("transfer", "paper").runs["transfer/base/baseline/s42"]
    decoder, context = on_meta(run.spec.model), run.spec.model.context
    per_pair = sum(products_per_pair(block.attention.mixer, run.spec.model) for block in decoder.blocks)
    every, visible = (
        6 * (context * products_per_token(decoder, head=True) + pairs * per_pair)
        for pairs in (context**2, context * (context + 1) // 2)
    )
    assert model_counts._count(run)["training"] == every // context  # noqa: SLF001  # what the plan keeps of a model
    peak, text = 1e12 * machines.load("h100").peak_tflops, PAGE.read_text()
    shares = [
        f"{100 * 8 * operations / seconds / peak:.0f}"
        for seconds in (rows[0]["seconds_h100"], compiled_step.add_update(rows[0], "h100"))
        for operations in (every, visible)
    ]
    assert re.findall(r"(\d+) %", text) == shares
    assert f"({model_counts.PAIRS} of query and key, as a plan counts" in text and model_counts.PAIRS == "all pairs"
