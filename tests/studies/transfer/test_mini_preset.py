"""What is stated about the preset `mini` is what its specs, its corpus and the statistics give."""

from __future__ import annotations

import json
import re

import pytest

from plumbline.plan.data_stage import CORPUS_TOKENS
from plumbline.plan.model_counts import estimate_cost
from plumbline.specs import corpus, study_config
from plumbline.specs.spec import RunSpec
from plumbline.specs.yaml_files import ROOT, load_preset
from plumbline.stats.power import compute_resolvable_distance

STUDY = study_config.load("transfer", "mini")
SAID = {
    interpretation["id"]: " ".join([interpretation["text"], interpretation["choice"]])
    for interpretation in STUDY.definition["interpretations"]
}


def spec(scale: str, preset: str = "mini") -> RunSpec:
    return study_config.load("transfer", preset).runs[f"transfer/{scale}/baseline/s42"].spec


def spread(spec: RunSpec) -> float:
    """The standard deviation of initial scores."""
    return spec.model.width * spec.model.init_std**2


@pytest.mark.parametrize(("scale", "printed", "head_width"), [("base", 0.82, 48), ("large", 1.23, 72)])
def test_initial_scores_are_spread_as_at_paper_size(scale: str, printed: float, head_width: int) -> None:
    small, paper = spec(scale), spec(scale, "paper")
    assert spread(small) == pytest.approx(spread(paper), rel=2e-3) and round(spread(paper), 2) == printed
    assert small.model.head_width == head_width
    assert small.model.heads == 4 * small.model.key_value_heads and small.model.heads * head_width == small.model.width
    assert f"{printed:.2f}" in SAID["mini_initialisation"]
    assert f"N(0, {small.model.init_std:g}^2)" in SAID["mini_initialisation"]


def test_flat_initial_scores_are_those_of_demo_and_smoke() -> None:
    reason = next(
        interpretation
        for interpretation in STUDY.definition["interpretations"]
        if interpretation["id"] == "small_initialisation"
    )
    assert reason["presets"] == ["evening", "demo", "smoke"]
    names = {"paper": "1.2B", "demo": "demo", "smoke": "smoke"}
    assert spec("base", "evening").model == spec("base", "demo").model
    for preset, name in names.items():
        assert f"{spread(spec('base', preset)):.2f} at {name}" in reason["text"]


def test_items_and_held_out_text_are_as_many_as_is_said() -> None:
    evaluation = load_preset("mini")["evaluation"]
    assert evaluation["limit"] == 0 and evaluation["proxy_items"] == 2000
    assert f"{evaluation['proxy_items']:,} made ones a task" in SAID["small_evaluation"]
    sequences = {run.spec.train.validation_sequences for run in STUDY.runs.values()}
    assert sequences == {1024} and corpus.load("climbmix", "mini").validation == 1024
    assert "1,024 held-out sequences" in SAID["small_models"]


def test_tokens_a_parameter_and_epochs_are_those_of_the_specs() -> None:
    tokens = {scale: spec(scale).train.steps * spec(scale).train.batch_tokens for scale in ("base", "large")}
    each = [f"{tokens[scale] / estimate_cost(spec(scale).model).parameters:.1f}" for scale in ("base", "large")]
    assert f"{each[0]} and {each[1]} tokens a parameter" in SAID["small_models"]
    epochs = tokens["base"] / CORPUS_TOKENS[corpus.load("climbmix", "mini").source]
    assert tokens["base"] == tokens["large"] and f"goes over them {epochs:.1f} times" in SAID["small_data"]
    row = re.search(r"\| `mini` .*\| (\d+) M parameters, (\d+) M tokens \|", (ROOT / "docs/targets.md").read_text())
    assert row is not None
    size = estimate_cost(spec("base").model)
    assert list(row.groups()) == [f"{size.parameters / 1e6:.0f}", f"{tokens['base'] / 1e6:.0f}"]


def test_six_seeds_are_worth_what_is_said() -> None:
    needed = [f"{compute_resolvable_distance(1.0, n, m=STUDY.m):.1f}" for n in (3, len(_seeds()))]
    for sentence in (
        f"{needed[0]} standard deviations",
        f"over {STUDY.m} methods",
        f"against which {needed[1]} are enough",
    ):
        assert sentence in SAID["six_baseline_seeds"]
    printed = study_config.load("transfer", "paper").group("base", "noise_floor")
    assert (
        f"Against {COUNTS[sum(run.spec.method == 'baseline' for run in printed)]} seeds" in SAID["six_baseline_seeds"]
    )
    assert f"{COUNTS[len(_seeds())]} seeds of the baseline" in SAID["six_baseline_seeds"]
    others = [f"{STUDY.label(name)}" for name in STUDY.definition["noise_floor"]["others"]]
    assert {len(_seeds(method=name)) for name in STUDY.definition["noise_floor"]["others"]} == {3}
    assert f"{' and '.join(others)} keep three" in SAID["six_baseline_seeds"]


def test_every_seed_of_the_baseline_is_used_for_its_spread() -> None:
    assert _seeds("concentration") == _seeds("base", "noise_floor")


def test_flat_scores_and_heads_at_mini_are_those_of_its_sizes() -> None:
    paper, small = (study_config.load("transfer", preset).runs for preset in ("paper", "mini"))
    base, large = (small[f"transfer/{scale}/baseline/s42"].spec for scale in ("base", "large"))
    flat = base.model.width * paper["transfer/base/baseline/s42"].spec.model.init_std ** 2
    assert f"standard deviation of {flat:.2f}" in SAID["mini_initialisation"]
    heads = f"{COUNTS[base.model.heads]} heads of width {base.model.head_width} and {large.model.head_width} at mini"
    assert base.model.heads == large.model.heads and heads in SAID["small_models"]
    for preset in ("demo", "smoke"):
        base, large = (spec(scale, preset).model for scale in ("base", "large"))
        sentence = f"of {base.head_width} and {large.head_width} at {preset}"
        assert base.heads == large.heads == 8 and sentence in SAID["small_models"]


#: Numbers as words.
COUNTS = {3: "three", 6: "six", 8: "eight"}


def _seeds(*groups: str, method: str = "baseline") -> list[RunSpec]:
    chosen = STUDY.group(*(groups or ("base", "noise_floor")))
    return [run.spec for run in chosen if (run.spec.method, run.spec.scale) == (method, "base")]


def test_what_it_resolves_is_said_as_the_pilot_measured_it() -> None:
    """In the products' deviations."""
    measured = json.loads((ROOT / "benchmarks/mini_resolution.json").read_text())
    for name, resolution in measured.items():
        resolved = compute_resolvable_distance(resolution["sigma"], len(_seeds()), m=STUDY.m)
        assert resolution["smallest_resolved_delta"] == pytest.approx(resolved), (
            f"{name}: run benchmarks/mini_resolution.py --write-page-only again"
        )
    loss, gold, average = (
        measured[name]["smallest_resolved_delta"] for name in ("validation_loss", "logprob_gold", "average")
    )
    sentences = (
        f"{loss:.2f} nats of validation loss, {gold:.1f} nats of the right answer's log-probability, {average:.3f} of"
    )
    assert sentences in SAID["six_baseline_seeds"]
