"""The quack study as data: sizes to the digit, grids that every preset keeps, methods that differ by what they say."""

from __future__ import annotations

from collections import Counter

import pytest

from plumbline.model.decoder import on_meta
from plumbline.specs import corpus
from plumbline.specs.spec import RunSpec
from plumbline.specs.study_config import has_preset
from plumbline.specs.yaml_files import PRESETS
from plumbline.studies.quack.decoding_memory import count_cached_bytes, count_materialised_bytes, find_model
from plumbline.studies.quack.logit_change import SCALES
from tests.studies.quack.synthetic_runs import ETAS, PUBLISHED, TAUS, key, study_at

PRESETS_HERE = [preset for preset in PRESETS if has_preset("quack", preset)]

#: Parameters at the summary's size, counted by hand from its widths (printed: about 1B).
PARAMETERS = {"mha": 1_040_246_784, "mla": 998_041_600}


def spec(
    method: str, scale: str = "mha", eta: float | None = 3e-3, tau: float | None = None, preset="paper"
) -> RunSpec:
    return study_at(preset).runs[key(scale, method, eta, tau)].spec


@pytest.mark.parametrize("scale", PARAMETERS)
def test_parameters_at_the_documents_size(scale: str) -> None:
    for method in ("default", "quack"):
        model = find_model(study_at(), scale, method)
        assert sum(weight.numel() for weight in on_meta(model).parameters()) == PARAMETERS[scale]
    normed = find_model(study_at(), "mha", "qk_norm")
    assert sum(weight.numel() for weight in on_meta(normed).parameters()) == PARAMETERS["mha"] + 14 * 2 * 64


def test_sizes_are_those_of_the_paper_that_the_document_sums_up() -> None:
    external, model = PUBLISHED.setup()["external_full_paper"], find_model(study_at(), "mha")
    assert (model.layers, model.width, model.heads, model.ffn_width) == tuple(
        external[name] for name in ("layers", "d_model", "heads", "d_ff")
    )
    assert (model.vocabulary, model.tied_embeddings, model.head_width) == (49152, external["tied"], external["d_head"])
    latent = find_model(study_at(), "mla")
    options = latent.slot("projections").options
    assert latent.head_width == external["d_nope"] + external["d_rope"]
    assert options["rotary_width"] == external["d_rope"]
    assert (options["query_latent"], options["key_value_latent"]) == (external["d_cq"], external["d_ckv"])
    assert options["latent_norm"] is False


def test_the_budget_is_the_summarys() -> None:
    train, read = spec("default").train, corpus.load("cosmopedia", "paper")
    assert train.steps == 5000 and train.batch_tokens == 96 * 2048 and spec("default").schedule.warmup_steps == 500
    assert spec("default").schedule.name == "constant"
    assert read.packs["base"] == 5000 * 96 and read.tokenizer.vocabulary == 49152


@pytest.mark.parametrize("preset", PRESETS_HERE)
def test_every_preset_has_every_method_at_every_point(preset: str) -> None:
    study = study_at(preset)
    assert set(study.runs) == set(study_at().runs)
    grid = Counter(
        (run.spec.scale, run.spec.method.partition(".")[0])
        for run in study.runs.values()
        if set(run.groups) & {"mha", "mla"}
    )
    assert grid == {
        ("mha", "default"): 3, ("mha", "qk_norm"): 3, ("mha", "quack"): 12, ("mha", "ablation"): 12,
        ("mla", "default"): 3, ("mla", "qk_clip_30"): 3, ("mla", "qk_clip_100"): 3, ("mla", "quack"): 12,
        ("mla", "ablation"): 12,
    }  # fmt: skip
    assert sum(grid.values()) == 63
    claimed = PUBLISHED.claim("suggested_tau_grid")
    assert list(ETAS) == claimed["lr"] and list(TAUS) == claimed["tau"]
    for scale in PARAMETERS:
        for eta in ETAS:
            assert spec("default", scale, eta, preset=preset).optimizer.learning_rate == eta
            for tau in TAUS:
                own = spec("quack", scale, eta, tau, preset=preset)
                fixed = spec("ablation", scale, eta, tau, preset=preset)
                assert own.optimizer.learning_rate == fixed.optimizer.learning_rate == eta
                assert own.interventions[1] == {"name": "quack", "tau": tau, "norm": "frobenius", "largest_ratio": 10.0}
                assert fixed.interventions[1] == {"name": "query_key_rate", "tau": tau}


@pytest.mark.parametrize("preset", PRESETS_HERE)
def test_every_preset_keeps_the_shape(preset: str) -> None:
    document, latent_document = find_model(study_at(), "mha"), find_model(study_at(), "mla").slot("projections").options
    model, latent = find_model(study_at(preset), "mha"), find_model(study_at(preset), "mla")
    options = latent.slot("projections").options
    assert model.ffn_width == 4 * model.width == 4 * model.heads * model.head_width
    assert latent.head_width == 2 * model.head_width == 2 * options["rotary_width"]
    for name in ("query_latent", "key_value_latent"):
        assert options[name] / model.width == latent_document[name] / document.width
    spread = model.width * model.init_std**2
    assert spread == pytest.approx(document.width * document.init_std**2, rel=0.005)
    run = spec("default", preset=preset)
    assert run.schedule.warmup_steps == max(1, round(0.1 * run.train.steps))
    assert run.train.steps // run.train.validate_every >= 4
    read = corpus.load("cosmopedia", preset)
    assert read.tokenizer.vocabulary == model.vocabulary


def test_methods_differ_by_what_they_say() -> None:
    default = spec("default").to_dict()
    allowed = {"method", "interventions", "components"}
    for method, tau in (("quack", 1), ("ablation", 1), ("qk_norm", None)):
        other = spec(method, tau=tau).to_dict()
        changed = {part for part in default if default[part] != other[part]}
        assert changed - allowed == ({"model"} if method == "qk_norm" else set())
    latent = spec("default", "mla").to_dict()
    for threshold in (30, 100):
        other = spec(f"qk_clip_{threshold}", "mla").to_dict()
        assert {part for part in latent if latent[part] != other[part]} <= allowed
        assert other["interventions"][1] == {"name": "qk_clip", "threshold": float(threshold)}
    for run in study_at().runs.values():
        first = run.spec.interventions[0]
        assert first["name"] == "logit_change" and (first["layer"], first["head"]) == (-1, -1), run.key
        assert [probe.name for probe in run.spec.probes] == ["attention_statistics"]


def test_weight_decay_and_the_rate_of_the_rest_are_said() -> None:
    optimizer = spec("default").optimizer
    assert optimizer.name == "muon" and optimizer.weight_decay == 0.1 and optimizer.options["decay_matrices"]
    assert optimizer.options["matrices"] == "separate" and optimizer.options["adamw_learning_rate_ratio"] == 0.1
    assert spec("default.one_rate", eta=None).optimizer.options["adamw_learning_rate_ratio"] == 1.0
    assert spec("default.no_weight_decay", eta=None).optimizer.weight_decay == 0.0


def test_variants_and_arms_are_at_the_middle_rate() -> None:
    runs = [run for run in study_at().runs.values() if set(run.groups) & {"variants", "wide_tau"}]
    assert len(runs) == 10 and all(run.spec.optimizer.learning_rate == 3e-3 for run in runs)
    spectral = spec("quack.spectral", "mla", None).interventions[1]
    assert (spectral["norm"], spectral["tau"]) == ("spectral", 1.0)
    for method in ("default.latent_norm", "quack.latent_norm"):
        assert spec(method, "mla", None).model.slot("projections").options["latent_norm"] is True
    assert [spec(f"quack_tau_{name}", eta=None).interventions[1]["tau"] for name in ("0p001", "100")] == [0.001, 100]
    assert [entry["tau"] for entry in (PUBLISHED.claim("suggested_tau_wide"),)] == [[0.001, *TAUS, 100]]


def test_a_cache_of_latents_is_smaller_than_one_of_keys() -> None:
    """14 layers of 256 + 64 numbers a token, against 14 of 2 x 32 x 64 and, made again, of 2 x 32 x 128."""
    mha, mla = (find_model(study_at(), scale) for scale in PARAMETERS)
    assert count_cached_bytes(mha) == count_materialised_bytes(mha) == 14 * 2 * 32 * 64 * 2
    assert count_cached_bytes(mla) == 14 * (256 + 64) * 2 and count_materialised_bytes(mla) == 14 * 2 * 32 * 128 * 2


def test_each_interpretation_has_an_alternative_or_a_reason() -> None:
    interpretations = study_at().definition["interpretations"]
    assert len({interpretation["id"] for interpretation in interpretations}) == len(interpretations) >= 35
    bare = [interpretation["id"] for interpretation in interpretations if not interpretation["alternatives"]]
    assert bare == [
        "separate_matrices", "initial_norms", "lemma_shapes", "qk_clip",
    ]  # fmt: skip
    variants = {f"{name}.{variant}" for name, entry in study_at().definition["methods"].items() for variant in
             entry.get("variants", {})}  # fmt: skip
    alternatives = {text for interpretation in interpretations for text in interpretation["alternatives"] if
    text.partition(".")[0] in
             study_at().definition["methods"] and "/s" not in text}  # fmt: skip
    assert alternatives <= variants and variants - alternatives == {
        "quack.spectral"
    }  # of which the summary itself speaks
    assert min(SCALES) < 1 < max(SCALES)
