"""The premature study as data: sizes to the digit, arms that differ by what they state, presets that keep its shape."""

from __future__ import annotations

import pytest

from plumbline.model.decoder import on_meta
from plumbline.specs import corpus, suites
from plumbline.specs.spec import RunSpec
from plumbline.specs.study_config import has_preset
from plumbline.specs.yaml_files import PRESETS
from plumbline.studies.premature.run_values import EARLY, FIFTH
from plumbline.train.interventions._release_rule import ReleaseRule, find_release_step
from tests.studies.premature.synthetic_runs import study_at

PRESETS_HERE = [preset for preset in PRESETS if has_preset("premature", preset)]

#: Parameters of each architecture at the paper's size, counted by hand from its widths (and printed: 270M, 700M).
PARAMETERS = {
    "base/gpt": 269_682_240,
    "base/gpt_rmsnorm": 269_642_880,
    "base/gpt_biasless": 269_509_440,
    "base/gpt_swiglu": 269_707_840,
    "base/gpt_geglu": 269_707_840,
    "base/llama_layernorm": 269_509_440,
    "base/llama": 269_470_080,
    "base/gpt_gelu2560": 220_504_640,
    "large/gpt": 700_491_264,
}


def spec(method: str, preset: str = "paper", scale: str = "base", seed: int = 42) -> RunSpec:
    return study_at(preset).runs[f"premature/{scale}/{method}/s{seed}"].spec


@pytest.mark.parametrize("name", list(PARAMETERS))
def test_parameters_at_the_documents_size(name):
    scale, method = name.split("/")
    assert sum(weight.numel() for weight in on_meta(spec(method, scale=scale).model).parameters()) == PARAMETERS[name]


def test_the_budget_is_the_papers():
    for scale, tokens, rate in (("base", 2.5e9, 2.5e-4), ("large", 7.0e9, 2.0e-4)):
        run_spec = spec("gpt", scale=scale)
        assert run_spec.train.steps == int(tokens // run_spec.train.batch_tokens)
        assert run_spec.train.batch_tokens == 2**19
        assert run_spec.optimizer.learning_rate == rate and run_spec.optimizer.weight_decay == 0.1
        assert run_spec.schedule.warmup_steps == round(0.02 * run_spec.train.steps)
        assert run_spec.schedule.options == {"floor": 0.1}
        read = corpus.load("fineweb_edu", "paper")
        assert read.packs[scale] == run_spec.train.steps * run_spec.sequences_per_batch
    assert list(suites.suite("premature7").task_names)[-2:] == ["lambada_openai", "mmlu"]
    assert len(suites.suite("premature7").task_names) == 7


@pytest.mark.parametrize("preset", PRESETS_HERE)
def test_every_preset_keeps_the_arms_and_the_shape(preset):
    study = study_at(preset)
    assert set(study.runs) == set(study_at("paper").runs) and len(study.runs) == 31
    for run in study.runs.values():
        model, train = run.spec.model, run.spec.train
        large = run.spec.scale == "large"
        assert model.layers >= 4 and model.layers % 2 == 0 and model.tied_embeddings and model.residual_init_scaling
        assert model.heads == model.key_value_heads and model.heads * model.head_width == model.width
        gated = model.slots["ffn"]["name"] != "gelu" or run.spec.method == "gpt_gelu2560"
        assert 3 * model.ffn_width == (8 if gated else 12) * model.width
        # The spread of scores where training starts, and the learning rate, follow the width.
        assert model.width * model.init_std**2 == pytest.approx(0.6144 if large else 0.384, rel=0.005)
        rate = 2e-4 * 1536 if large else 2.5e-4 * 960
        assert run.spec.optimizer.learning_rate * model.width == pytest.approx(rate, rel=0.01)
        assert run.spec.schedule.warmup_steps == max(1, round(0.02 * train.steps))
        assert max(probe.sequences for probe in run.spec.probes) <= train.validation_sequences
    base, other = spec("gpt", preset).model, spec("gpt", preset, "large").model
    assert other.head_width >= 2 * base.head_width or preset == "smoke"


@pytest.mark.parametrize("preset", ["paper", "mini", "demo"])
def test_the_window_the_grid_and_the_ramp_are_steps_of_their_own(preset):
    train = spec("gpt_slow", preset).train
    steps = train.steps
    rule = ReleaseRule(release="online", context=spec("gpt_slow", preset).model.context)
    grid = rule.evaluations(steps)
    start, end = round(0.03 * steps), round(0.12 * steps)
    assert start in grid and end == grid[-1] and len(grid) == 25 and grid == sorted(set(grid))
    assert round(0.01 * steps) >= 2
    at_once = [(step, 1.0, 0.001) for step in grid]
    assert find_release_step(at_once, rule, steps) == grid[grid.index(start) + 2] < end
    assert find_release_step([(step, 0.0, 0.001) for step in grid], rule, steps) == end
    assert train.validate_every / steps == pytest.approx(0.005, rel=0.01)


def test_arms_differ_by_what_they_say():
    control = spec("gpt").to_dict()
    for name in ("gpt_slow", "entropy_floor", "global_half_lr", "fixed_3pct", "fixed_6pct", "mult_0p5", "mult_0p125"):
        other = spec(name).to_dict()
        assert {key for key in control if control[key] != other[key]} <= {
            "method",
            "interventions",
            "components",
            "probes",
        }
        assert len(other["interventions"]) == 1
    for seed in (43, 44):
        other = spec("gpt", seed=seed).to_dict()
        assert {key for key in control if control[key] != other[key]} == {"init_seed"}
    slow = spec("gpt_slow").interventions[0]
    assert (slow["multiplier"], slow["threshold"], slow["patience"], slow["ramp"]) == (0.25, 0.005, 3, 0.01)
    assert (slow["window_start"], slow["window_end"], slow["every"]) == (0.03, 0.12, 0.005)
    for architecture in ("gpt_rmsnorm", "gpt_biasless", "gpt_swiglu", "gpt_geglu", "llama_layernorm", "llama"):
        assert spec(f"{architecture}_slow").model == spec(architecture).model
        assert spec(f"{architecture}_slow").interventions[0] == slow
    floor, half = spec("entropy_floor").interventions[0], spec("global_half_lr").interventions[0]
    assert (floor["floor"], floor["weight"], floor["release"]) == (0.8, 0.1, "online")
    assert (half["factor"], half["release"]) == (0.5, "never")
    assert [spec(name).interventions[0]["release_at"] for name in ("fixed_3pct", "fixed_6pct")] == [0.03, 0.06]


def test_every_run_is_read_at_the_points_that_tables_need():
    for run in study_at().runs.values():
        for probe in run.spec.probes:
            assert EARLY in probe.at
            assert probe.name == "locality" or {0.0, FIFTH, 1.0} <= set(probe.at)
        assert {"attention_statistics", "lower_copy", "ffn_write", "bilinear"} <= {
            probe.name for probe in run.spec.probes
        }
    assert {"upper_ablation", "locality"} <= {probe.name for probe in spec("gpt_slow").probes}


def test_each_interpretation_has_an_alternative_or_a_reason():
    interpretations = study_at().definition["interpretations"]
    assert len({interpretation["id"] for interpretation in interpretations}) == len(interpretations) >= 40
    bare = [interpretation["id"] for interpretation in interpretations if not interpretation["alternatives"]]
    assert bare == ["fixed_release", "steps", "theory_head"]


def test_scores_are_read_under_name_that_trainer_logs_them_by():
    from plumbline.studies.premature.release_rule_replay import LOGGED
    from plumbline.train.interventions._until_release import SCORE

    assert LOGGED == SCORE
