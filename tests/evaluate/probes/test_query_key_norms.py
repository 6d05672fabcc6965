"""Query and key norms: oracles at full width, a naive computation in float64, and what a pass leaves as it was."""

from __future__ import annotations

import math

import pytest
import torch

from plumbline.evaluate.probes import Probe, ProbeValue, build, read
from plumbline.evaluate.probes.query_key_norms import QueryKeyNorms
from plumbline.model.decoder import Decoder, create
from plumbline.specs.spec import ProbeSpec
from tests.evaluate.probes.naive_computations import has_hooks
from tests.model_specs import small


def tokens(model: Decoder, sequences: int = 2) -> torch.Tensor:
    generator = torch.Generator().manual_seed(3)
    return torch.randint(0, model.spec.vocabulary, (sequences, model.spec.context), generator=generator)


def norms(model: Decoder, sequences: int = 2) -> dict[tuple[str, int | None, int | None], ProbeValue]:
    values = read(model, [QueryKeyNorms()], tokens(model, sequences), "float32")
    return {(probe_value.probe, probe_value.layer, probe_value.head): probe_value for probe_value in values}


def test_a_unit_gain_norm_gives_one_length() -> None:
    """The key norms study's shape: 22 layers, 8 query and 4 key heads of 64; every norm starts at 8.0."""
    spec = small(layers=22, width=512, heads=8, key_value_heads=4, head_width=64, ffn_width=1024,
                 query_key={"name": "qk_norm"})  # fmt: skip
    model = create(spec, init_seed=42)
    values = norms(model, 1)
    assert len(values) == 22 * (8 + 4)
    for probe_value in values.values():
        assert probe_value.null == 8.0 and probe_value.value == pytest.approx(8.0, rel=1e-4)
    with torch.no_grad():
        for block in model.blocks:
            block.attention.query_key.key_norm.gain.fill_(0.3)
    for (probe, _, _), probe_value in norms(model, 1).items():
        assert probe_value.value == pytest.approx(2.4 if probe == "key_norm" else 8.0, rel=1e-4)


def test_without_a_norm_there_is_no_null() -> None:
    """Of a normalised input, each coordinate is N(0, width x std^2) at the start: norms near sqrt(64 x 0.2048)."""
    model = create(small(layers=2, width=512, heads=8, key_value_heads=4, head_width=64), init_seed=42)
    values = norms(model)
    assert all(probe_value.null is None for probe_value in values.values())
    mean = sum(probe_value.value for probe_value in values.values()) / len(values)
    assert mean == pytest.approx(math.sqrt(64 * 512 * 0.02**2), rel=0.05)


@pytest.mark.parametrize("query_key", ["qk_norm", "identity"])
def test_as_computed_naively_in_float64(query_key: str) -> None:
    """Token by token, from the projections on: the transform by hand, for each head and group by itself."""
    model = create(small(query_key={"name": query_key}), init_seed=1).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1 + torch.rand(parameter.shape, generator=torch.Generator().manual_seed(5)))
    batch_BT = tokens(model)
    outputs: dict[int, tuple[torch.Tensor, ...]] = {}
    hooks = [
        block.attention.projections.register_forward_hook(lambda _, __, out, layer=layer: outputs.update({layer: out}))
        for layer, block in enumerate(model.blocks)
    ]
    model(batch_BT[:, :-1])
    for hook in hooks:
        hook.remove()
    values = norms(model)
    checked = 0
    for layer, block in enumerate(model.blocks):
        for name, x_BHTW in zip(("query_norm", "key_norm"), outputs[layer][:2]):
            heads = {"query_norm": model.spec.heads, "key_norm": model.spec.key_value_heads}[name]
            for head in range(heads):
                lengths = []
                for vector in x_BHTW[:, head].flatten(0, 1).tolist():
                    if query_key == "qk_norm":
                        norm = block.attention.query_key.get_submodule(name)
                        root = math.sqrt(sum(value**2 for value in vector) / len(vector) + norm.eps)
                        vector = [gain * value / root for gain, value in zip(norm.gain.tolist(), vector)]
                    lengths.append(math.sqrt(sum(value**2 for value in vector)))
                expected = sum(lengths) / len(lengths)
                assert values[name, layer, head].value == pytest.approx(expected, rel=1e-12)
                checked += 1
    assert checked == len(values) == model.spec.layers * (model.spec.heads + model.spec.key_value_heads)
    exact, half = norms(model), norms(model.float())
    assert all(half[key].value == pytest.approx(probe_value.value, rel=1e-5) for key, probe_value in exact.items())


def test_rotary_positions_leave_the_norms_as_they_are() -> None:
    model = create(small(), init_seed=1)
    entered: list[torch.Tensor] = []
    model.blocks[2].attention.mixer.register_forward_hook(lambda _, inputs, __: entered.extend(inputs[:2]))
    values = norms(model, 1)
    for name, x_BHTW in zip(("query_norm", "key_norm"), entered):
        for head, value in enumerate(x_BHTW.double().norm(dim=-1).mean(dim=(0, 2)).tolist()):
            assert values[name, 2, head].value == pytest.approx(value, rel=1e-6)


def test_one_pass_serves_all_probes() -> None:
    model = create(small(), init_seed=1)
    calls: list[bool] = []
    model.register_forward_hook(lambda *_: calls.append(model.training))

    class Deaf(Probe):
        def probe_values(self, model: Decoder) -> list[ProbeValue]:
            return [ProbeValue(probe="deaf", value=1.0)]

    first, second = build([ProbeSpec(name="query_key_norms", at=(0.5,))] * 2)
    values = read(model, [first, Deaf(), second], tokens(model, 3), "float32")
    assert calls == [False] * 3, "each sequence once, in evaluation mode"
    assert model.training and not has_hooks(model.blocks)
    share = (len(values) - 1) // 2
    assert values[:share] == values[share + 1 :] and values[share] == ProbeValue(probe="deaf", value=1.0)
    model.eval()
    read(model, [Deaf()], tokens(model, 1), "float32")
    assert not model.training


def test_autocast_reads_the_numbers_that_the_run_computes_with() -> None:
    model = create(small(), init_seed=1)
    whole, half = (read(model, [QueryKeyNorms()], tokens(model), precision) for precision in ("float32", "bfloat16"))
    assert [probe_value.value for probe_value in whole] != [probe_value.value for probe_value in half]
    for full, other in zip(whole, half):
        assert full.value == pytest.approx(other.value, rel=1e-2)
