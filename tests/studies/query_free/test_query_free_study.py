"""The query_free study as data: sizes to the digit, arms that differ by what they say, presets that keep its shape."""

from __future__ import annotations

import math

import pytest

from plumbline.model.decoder import on_meta
from plumbline.specs import corpus
from plumbline.specs.spec import RunSpec
from plumbline.specs.study_config import has_preset
from plumbline.specs.yaml_files import PRESETS
from plumbline.studies.query_free.eliminate_query import query_elimination_rules
from plumbline.studies.query_free.run_values import CONFIGURATIONS, NONLINEAR, count_parameters, divisor, smallest_rate
from tests.studies.query_free.synthetic_runs import STUDY, study_at

PRESETS_HERE = [preset for preset in PRESETS if has_preset("query_free", preset)]

#: Parameters of each configuration at the paper's size, counted by hand from its widths, with and without the
#: embeddings of tokens and positions (printed: 117.30, 117.92, 117.30, 124.37 and 124.37 M; 77.88, 79.73, 77.88, 84.95
#: and 84.95 M).
PARAMETERS = {
    "baseline_small_mlp": (117_295_872, 77_875_968),
    "baseline_small_d": (117_915_816, 79_727_784),
    "wq_identity": (117_295_872, 77_875_968),
    "baseline": (124_373_760, 84_953_856),
    "wq_identity_large_mlp": (124_373_760, 84_953_856),
    "residual_query": (124_373_760, 84_953_856),
    "residual_query_gelu": (124_373_760, 84_953_856),
    "norm_free": (124_354_560, 84_934_656),
    "wk_identity": (117_295_872, 77_875_968),
    "wv_identity": (117_295_872, 77_875_968),
    "baseline.untied": (163_007_232, 84_953_856),
    "wq_identity.untied": (155_929_344, 77_875_968),
    "baseline.shared_layers": (46_500_096, 7_080_192),
    "wq_identity.shared_layers": (45_910_272, 6_490_368),
}


def spec(method: str, preset: str = "paper") -> RunSpec:
    return study_at(preset).every_run[f"{STUDY}/base/{method}/s42"].spec


def find_differences(first_key: str, other_key: str, preset: str = "paper") -> dict[str, object]:
    """What of the second spec is another thing than in the first: ``part.key`` -> its value there."""
    before, after = spec(first_key, preset).to_dict(), spec(other_key, preset).to_dict()
    differences: dict[str, object] = {}
    for part in after:
        if part in ("method", "components"):
            continue
        if isinstance(after[part], dict):
            differences |= {
                f"{part}.{key}": value for key, value in after[part].items() if before[part].get(key) != value
            }
        elif before[part] != after[part]:
            differences[part] = after[part]
    return differences


@pytest.mark.parametrize("method", list(PARAMETERS))
def test_parameters_at_the_documents_size(method: str) -> None:
    total, body = PARAMETERS[method]
    assert sum(weight.numel() for weight in on_meta(spec(method).model).parameters()) == total
    assert (count_parameters(spec(method).model).total, count_parameters(spec(method).model).body) == (total, body)


@pytest.mark.parametrize("preset", PRESETS_HERE)
def test_what_w_q_had_goes_into_the_feed_forward_network_exactly(preset: str) -> None:
    full, reduced = (count_parameters(spec(method, preset).model) for method in ("baseline", "wq_identity"))
    larger, smaller = (count_parameters(spec(m, preset).model) for m in ("wq_identity_large_mlp", "baseline_small_mlp"))
    model = spec("baseline", preset).model
    assert full.total - reduced.total == full.of("query") == model.layers * model.width**2
    assert larger.total == full.total and smaller.total == reduced.total and not reduced.of("query")
    assert 3 * model.layers * model.width**2 == reduced.of("key", "value", "output")
    assert count_parameters(spec("norm_free", preset).model).of("norm") == 0


def test_the_budget_is_the_papers() -> None:
    for run in study_at("paper").runs.values():
        run_spec = run.spec
        assert (run_spec.train.steps, run_spec.train.batch_tokens) == (60_000, 12 * 40 * 1024)
        assert (run_spec.train.validate_every, run_spec.train.validation_sequences) == (1000, 2400)
        assert run_spec.schedule.warmup_steps == 2000 and run_spec.optimizer.gradient_clip == 1.0
        assert (run_spec.optimizer.options["beta1"], run_spec.optimizer.options["beta2"]) == (0.9, 0.95)
        assert run_spec.optimizer.weight_decay == (0.025 if run_spec.method == "wq_identity_decay_0p025" else 0.1)
        assert run_spec.optimizer.decay_embeddings and not run_spec.optimizer.decay_norms
    rates = {"baseline": (6e-4, 6e-5), "wq_identity": (1.6e-3, 2e-5), "wq_identity_large_mlp": (2.2e-3, 2e-5)}
    rates |= dict.fromkeys(("baseline_small_mlp", "baseline_small_d"), rates["baseline"])
    rates |= dict.fromkeys(NONLINEAR, rates["wq_identity"])
    for method, (peak, least) in rates.items():
        assert spec(method).optimizer.learning_rate == peak
        assert smallest_rate(spec(method)) == pytest.approx(least, rel=1e-9)
    read = corpus.load("openwebtext", "paper")
    assert read.hub.path == "Skylion007/openwebtext" and read.tokenizer.kind == "gpt2"
    assert read.tokenizer.vocabulary == 50_257 <= spec("baseline").model.vocabulary == 50_304
    assert read.validation is not None and read.validation >= 2400


def test_the_recipe_is_nanogpts() -> None:
    model = spec("baseline").model
    slots = model.slots
    assert slots["positions"]["name"] == "learned" and slots["norm"] == {"name": "layer_norm", "bias": False}
    assert slots["ffn"] == {"name": "gelu", "bias": False, "gelu": "erf"} and not slots["projections"]["bias"]
    assert model.init_std == 0.02 and model.residual_init_scaling and model.tied_embeddings


def test_arms_differ_by_what_they_say() -> None:
    floor, peak = "schedule.floor", "optimizer.learning_rate"
    half = {"name": "scaled_softmax", "divisor": 2.0}
    assert find_differences("baseline", "baseline_small_mlp") == {"model.ffn_width": 2688}
    small_d = {"model.width": 744, "model.head_width": 62, "model.ffn_width": 2976}
    assert find_differences("baseline", "baseline_small_d") == small_d
    identity = {"model.projections": {"name": "identity_query", "bias": False}, "model.mixer": half}
    assert find_differences("baseline", "wq_identity") == identity | {peak: 1.6e-3, floor: 0.0125}
    larger = find_differences("wq_identity", "wq_identity_large_mlp")
    assert larger.pop(floor) == pytest.approx(2e-5 / 2.2e-3)
    assert larger == {"model.ffn_width": 3456, peak: 2.2e-3}
    for method, activation in zip(NONLINEAR, ("none", "gelu"), strict=True):
        query = {"name": "residual_query", "bias": False, "activation": activation}
        assert find_differences("wq_identity", method) == {"model.projections": query}
    assert find_differences("wq_identity", "wq_identity_floor_tenth") == {floor: 0.1}
    assert find_differences("wq_identity", "wq_identity_decay_0p025") == {"optimizer.weight_decay": 0.025}
    assert find_differences("wq_identity", "wq_identity_unscaled") == {"model.mixer": {"name": "softmax"}}
    assert set(find_differences("wq_identity", "wq_identity_matched")) == {"model.mixer"}
    key, value = ({"name": f"identity_{name}", "bias": False} for name in ("key", "value"))
    assert find_differences("wq_identity", "wk_identity") == {"model.projections": key}
    softmax = {"model.mixer": {"name": "softmax"}}
    assert find_differences("wk_identity", "wk_identity.baseline_scale") == softmax
    assert find_differences("baseline_reduced_schedule", "wv_identity") == {"model.projections": value}
    assert find_differences("baseline", "wv_identity_baseline_schedule") == {"model.projections": value}
    assert find_differences("baseline", "baseline.untied") == {"model.tied_embeddings": False}
    assert find_differences("baseline", "norm_free") == {
        "model.norm": {"name": "none"},
        "model.residual": {"name": "attention_skip"},
        "model.residual_init_scaling": False,
        "model.init_std": 0.0361,
    }


@pytest.mark.parametrize("preset", PRESETS_HERE)
def test_an_architecture_may_have_another_models_schedule(preset: str) -> None:
    """Both architectures under each other's rates: nothing else is another."""
    schedules = {"reduced": "wq_identity", "large": "wq_identity_large_mlp", "baseline": "baseline"}
    for method in study_at(preset).definition["arms"]:
        architecture, _, schedule = method.removesuffix("_schedule").rpartition("_")
        if not method.endswith("_schedule"):
            continue
        theirs = spec(schedules[schedule], preset)
        assert spec(method, preset).optimizer == theirs.optimizer and spec(method, preset).schedule == theirs.schedule
        assert set(find_differences(architecture, method, preset)) <= {"optimizer.learning_rate", "schedule.floor"}
    highest = spec("wq_identity_large_mlp_rate_3e3", preset)
    assert smallest_rate(highest) == pytest.approx(smallest_rate(spec("wq_identity", preset)))
    assert set(find_differences("wq_identity_large_mlp", highest.method, preset)) == {
        "optimizer.learning_rate",
        "schedule.floor",
    }


@pytest.mark.parametrize("preset", PRESETS_HERE)
def test_every_preset_keeps_the_arms_and_the_shape(preset: str) -> None:
    study, paper = study_at(preset), study_at("paper")
    assert set(study.runs) == set(paper.runs) and len(study.runs) == 18
    for key, run in study.runs.items():
        run_spec, paper_spec = run.spec, paper.runs[key].spec
        model, theirs = run_spec.model, paper_spec.model
        assert model.layers >= 4 and model.heads * model.head_width == model.width
        assert model.ffn_width / model.width == theirs.ffn_width / theirs.width
        # Rates follow the width of the scale, the start that of the model.
        scale = spec("baseline", preset).model.width / 768
        assert run_spec.optimizer.learning_rate * scale == pytest.approx(paper_spec.optimizer.learning_rate, rel=1e-9)
        assert run_spec.schedule.options == paper_spec.schedule.options
        spread = 1.0 if run_spec.method == "norm_free" else 0.3072
        assert model.width * model.init_std**2 == pytest.approx(spread * theirs.width / 768, rel=0.01)
        assert run_spec.schedule.warmup_steps == max(1, round(run_spec.train.steps / 30))
        if preset != "smoke":
            assert run_spec.train.steps == 60 * run_spec.train.validate_every
    narrow, wide = spec("baseline_small_d", preset).model, spec("baseline", preset).model
    assert narrow.width * 32 == wide.width * 31 and narrow.heads == wide.heads


@pytest.mark.parametrize("preset", PRESETS_HERE)
def test_the_matched_scale_is_that_of_its_width_and_start(preset: str) -> None:
    model = spec("wq_identity_matched", preset).model
    assert divisor(model) == pytest.approx(1 / (model.init_std * math.sqrt(model.width)), rel=2e-3)
    if preset == "paper":
        assert divisor(model) == pytest.approx(1 / (0.02 * math.sqrt(768)), rel=1e-12)


def test_what_two_models_share_starts_alike_and_reads_alike() -> None:
    specs = [run.spec for run in study_at("paper").runs.values()]
    assert {(spec.init_seed, spec.data_seed, spec.data.pack, spec.data.corpus) for spec in specs} == {
        (42, 0, "base", "openwebtext")
    }


def test_every_configuration_of_table_2_is_a_run() -> None:
    assert [run.spec.method for run in study_at("paper").group("table2")] == [
        "baseline", "baseline_small_mlp", "baseline_small_d", "wq_identity", "wq_identity_large_mlp",
    ]  # fmt: skip
    assert set(CONFIGURATIONS) == {run.spec.method for run in study_at("paper").group("table2")}


def test_each_interpretation_has_an_alternative_or_a_reason() -> None:
    interpretations = study_at("paper").definition["interpretations"]
    assert len({interpretation["id"] for interpretation in interpretations}) == len(interpretations) >= 30
    bare = [interpretation["id"] for interpretation in interpretations if not interpretation["alternatives"]]
    assert bare == ["smaller_d", "table_1_rows", "transfer_optimizer", "norm_free"]


@pytest.mark.parametrize("preset", PRESETS_HERE)
def test_the_model_of_the_theorems_can_do_without_its_queries(preset: str) -> None:
    """By the rules of `plumbline.studies.query_free.eliminate_query`; norms stand in the way of all five."""
    assert query_elimination_rules.attention_skip_only(spec("norm_free", preset).model) == []
    assert all(query_elimination_rules.attention_skip_only(spec(method, preset).model) for method in CONFIGURATIONS)
