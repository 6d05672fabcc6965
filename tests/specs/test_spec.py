"""RunSpec: the run's identity."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from plumbline import NUMERICS
from plumbline.core.errors import PlumblineError
from plumbline.specs.spec import ModelSpec, RunSpec, require_present_code
from tests.model_specs import BASELINE, run


@pytest.fixture
def fields() -> dict[str, Any]:
    """A run spec as a file holds it, options left out."""
    return run(
        preset="demo",
        method="layerscale",
        model=copy.deepcopy(BASELINE) | {"residual": {"name": "layer_scale"}},
        train__steps=50,
        train__validation_sequences=32,
        data__tokenizer_vocabulary=90,
    )


def flat(value: Any, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    """Leaves of nested dicts by path."""
    if not isinstance(value, dict):
        return {path: value}
    return {key: leaf for name, inner in value.items() for key, leaf in flat(inner, (*path, name)).items()}


def other(value: Any) -> Any:
    """A different value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value * 2 or 1
    return [*value, {"name": "x"}] if isinstance(value, list) else value + "x"


def test_there_and_back(fields):
    spec = RunSpec.from_dict(fields)
    again = RunSpec.from_json(spec.to_json())
    assert again == spec
    assert again.run_id == spec.run_id
    assert len(spec.run_id) == 16
    assert json.loads(spec.to_json())["numerics"] == NUMERICS


def test_from_a_file(fields, tmp_path):
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(fields, indent=2))
    assert RunSpec.from_json(str(path)) == RunSpec.from_dict(fields)
    with pytest.raises(PlumblineError, match="--spec: there is no file"):
        RunSpec.from_json(str(tmp_path / "absent.json"))
    with pytest.raises(PlumblineError, match="--spec is not JSON"):
        RunSpec.from_json("{")


def test_canonical(fields):
    """The order of keys, the spelling of numbers and options left at their defaults do not matter."""
    spec = RunSpec.from_dict(fields)
    shuffled = json.loads(json.dumps(fields), object_pairs_hook=lambda pairs: dict(reversed(pairs)))
    shuffled["model"]["residual"] = {"initial": 0.0001, "vectors": 1, "name": "layer_scale"}
    shuffled["schedule"]["floor"] = 1e-1
    shuffled["optimizer"]["gradient_clip"] = 1
    shuffled["interventions"], shuffled["probes"] = [], []
    again = RunSpec.from_dict(shuffled)
    assert again.to_json() == spec.to_json()
    assert again.run_id == spec.run_id
    assert " " not in spec.to_json()


def test_every_field_is_part_of_the_identity(fields):
    spec = RunSpec.from_dict(fields)
    plain = spec.to_dict()
    ids = {spec.run_id}
    checked = 0
    for path, value in flat(plain).items():
        changed = copy.deepcopy(plain)
        place = changed
        for name in path[:-1]:
            place = place[name]
        place[path[-1]] = other(value)
        try:
            run_id = RunSpec.from_dict(changed).run_id
        except PlumblineError:
            continue  # no such component, or sizes that do not fit
        assert run_id not in ids, path
        ids.add(run_id)
        checked += 1
    assert checked >= 35


def test_every_option_is_explicit(fields):
    plain = RunSpec.from_dict(fields).to_dict()
    assert plain["model"]["residual"] == {"name": "layer_scale", "vectors": 1, "initial": 1e-4}
    assert plain["model"]["positions"] == {"name": "rotary", "base": 10000.0}
    assert plain["interventions"] == plain["probes"] == []


def test_the_callers_dict_is_left_alone(fields):
    before = copy.deepcopy(fields)
    RunSpec.from_dict(fields)
    assert fields == before


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (
            ("optimiser",),
            {},
            "transfer/base/layerscale.*unknown key 'optimiser'.*'optimizer'",
        ),
        (("optimizer", "lr"), 1e-3, "transfer/base/layerscale.*'adamw'.*no option 'lr'"),
        (("model", "depth"), 3, r"model: unknown key 'depth'"),
        (("train", "precision"), "fp8", r"train\.precision: 'fp8' is not one"),
        (("train", "steps"), 50.5, r"train\.steps: 50.5 is not a whole"),
        (("train", "steps"), True, r"train\.steps: True"),
        (("model", "tied_embeddings"), 1, r"model\.tied_embeddings: 1 is not true"),
        (("optimizer", "eps"), "1e-8", r"optimizer\.eps: '1e-8' is not float"),
        (
            ("train", "batch_tokens"),
            100,
            r"transfer/base/layerscale/s42: train\.batch_tokens \(100\) is not a multiple",
        ),
        (("data", "tokenizer_vocabulary"), 98, r"98 entries, model\.vocabulary only 97"),
        (("model", "key_value_heads"), 3, r"model\.heads \(8\).*model\.key_value_heads \(3\)"),
        (("model", "layers"), 0, r"model\.layers: 0.*not a whole.*>= 1"),
        (("model", "key_value_heads"), 0, r"model\.key_value_heads: 0.*not a whole.*>= 1"),
        (("model", "ffn"), {"name": "swigllu"}, r"transfer/base/layerscale: model\.ffn\.name: .*did you mean 'swiglu'"),
    ],
)
def test_mistakes(fields, path, value, message):
    place = fields
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    with pytest.raises(PlumblineError, match=message):
        RunSpec.from_dict(fields)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (("optimizer",), r"run spec: 'optimizer' is missing"),
        (("model",), r"run spec: 'model' is missing"),
        (("init_seed",), r"run spec: 'init_seed' is missing"),
        (("train", "steps"), r"train: 'steps' is missing"),
        (("model", "width"), r"model: 'width' is missing"),
        (("model", "ffn"), r"no component chosen for \['ffn'\]"),
    ],
)
def test_missing_keys(fields, path, message):
    place = fields
    for name in path[:-1]:
        place = place[name]
    del place[path[-1]]
    with pytest.raises(PlumblineError, match=message):
        RunSpec.from_dict(fields)


def test_not_a_number_has_no_identity(fields):
    fields["model"]["norm_eps"] = float("nan")
    with pytest.raises(ValueError, match="not JSON compliant"):
        _ = RunSpec.from_dict(fields).run_id


def test_derived_values(fields):
    spec = RunSpec.from_dict(fields)
    assert spec.key == "transfer/base/layerscale/s42"
    assert spec.sequences_per_batch == 256 // 32
    assert spec.model.slot("residual").options == {"vectors": 1, "initial": 1e-4}
    assert ModelSpec.from_dict(spec.model.to_dict()) == spec.model


def test_a_probe_reads_at_fractions_or_every_so_many_steps(fields):
    for probes, message in (
        ([{"name": "query_key_norms"}], "either `at`"),
        ([{"name": "query_key_norms", "at": [0.5], "every": 3}], "either `at`"),
        ([{"name": "query_key_norms", "at": [0.5, 0.1]}], r"probes\[0\].at: \[0.5, 0.1\] must rise"),
        ([{"name": "query_key_norms", "at": [1.5]}], r"probes\[0\].at"),
        ([{"name": "query_key_nroms", "at": [0.5]}], "did you mean 'query_key_norms'"),
        ([{"name": "query_key_norms", "evry": 5}], "no option 'evry'; did you mean 'every'"),
        ([{"name": "query_key_norms", "at": [1.0], "sequences": 33}], "sequences .33. is more than"),
    ):
        with pytest.raises(PlumblineError, match=message):
            RunSpec.from_dict(fields | {"probes": probes})


def test_code_of_components_is_part_of_the_identity(fields):
    spec = RunSpec.from_dict(fields)
    assert {"model.mixer", "model.residual", "optimizer", "schedule"} <= spec.components.keys()
    require_present_code(spec)
    edited = RunSpec.from_dict(spec.to_dict() | {"components": spec.components | {"model.mixer": "0" * 16}})
    assert edited.run_id != spec.run_id
    with pytest.raises(PlumblineError, match=r"model\.mixer differs"):
        require_present_code(edited)
