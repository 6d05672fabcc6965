"""Attention residuals and the n-stream hyper-connections: neither has a single residual stream."""

from __future__ import annotations

import pytest
import torch

from plumbline.core.errors import PlumblineError
from plumbline.model.component import build
from plumbline.model.decoder import Decoder, create, on_meta
from plumbline.model.residual._sources import SourceMixture, SourceScores
from plumbline.model.roles import collect_roles
from tests.model.test_residual_streams import TOKENS, residual, run_by_hand, streams
from tests.model_specs import small

#: Without an eps a mean and a sum are the same to the norm that follows.
SHARP = {"norm_eps": 1e-12}


def logits64(spec) -> torch.Tensor:
    """Logits of a freshly initialised model with double-precision weights."""
    return create(spec, 0).double()(TOKENS)


class TestAttentionResiduals:
    @pytest.mark.parametrize("queries", ["per_sublayer", "per_layer"])
    @pytest.mark.parametrize("sources", ["sublayers", "layers"])
    @pytest.mark.parametrize("scaled", [True, False])
    def test_zero_queries_are_the_baseline(self, queries, sources, scaled):
        """The mean of all outputs is their sum over their number, which each pre-norm and the final norm remove."""
        chosen = {"name": "attention_residuals", "queries": queries, "query_std": 0.0, "inverse_sqrt_width": scaled}
        chosen["sources"] = sources
        difference = logits64(small(residual=chosen, **SHARP)) - logits64(small(**SHARP))
        assert difference.abs().max() < 5e-6

    def test_zero_queries_differ_by_the_eps_otherwise(self):
        """The norm's eps weighs more on a mean than on a sum, so the identity is not exact at eps 1e-5."""
        chosen = {"name": "attention_residuals", "query_std": 0.0}
        difference = logits64(small(residual=chosen)) - logits64(small())
        assert 1e-3 < difference.abs().max() < 1

    def test_zero_queries_read_plain_means(self):
        module, _ = residual(name="attention_residuals", query_std=0.0)
        x, *branches = streams(9)
        reads, end = run_by_hand(module, x, branches)
        sources = [x, *branches]
        assert torch.equal(reads[0], x)
        for sublayer, read in enumerate(reads):
            torch.testing.assert_close(read, torch.stack(sources[: sublayer + 1]).mean(dim=0))
        torch.testing.assert_close(end, torch.stack(sources).mean(dim=0))

    def test_whole_layers_are_one_source_each(self):
        module, _ = residual(name="attention_residuals", query_std=0.0, sources="layers")
        x, *branches = streams(9)
        reads, end = run_by_hand(module, x, branches)
        layers = [branches[i] + branches[i + 1] for i in range(0, 8, 2)]
        for layer in range(4):
            whole = [x, *layers[:layer]]
            torch.testing.assert_close(reads[2 * layer], torch.stack(whole).mean(dim=0))
            torch.testing.assert_close(reads[2 * layer + 1], torch.stack([*whole, branches[2 * layer]]).mean(dim=0))
        torch.testing.assert_close(end, torch.stack([x, *layers]).mean(dim=0))

    @pytest.mark.parametrize("scaled", [True, False])
    def test_against_the_formula(self, scaled):
        module, spec = residual(name="attention_residuals", query_std=1.0, inverse_sqrt_width=scaled)
        with torch.no_grad():
            module.gains[3].uniform_(0.5, 2.0, generator=torch.Generator().manual_seed(0))
        x, *branches = streams(9)
        reads, _ = run_by_hand(module, x, branches)
        sources = torch.stack([x, *branches[:3]])
        normalised = sources / (sources.square().mean(-1, keepdim=True) + spec.norm_eps).sqrt() * module.gains[3]
        scores = normalised @ module.queries[3] * (spec.width**-0.5 if scaled else 1.0)
        torch.testing.assert_close(reads[3], (scores.softmax(dim=0)[..., None] * sources).sum(dim=0))

    def test_written_gradients_are_the_derivatives(self):
        generator = torch.Generator().manual_seed(2)
        shapes = ((2, 3, 8), (4, 8), (2, 3, 2), (2, 3, 8), (2, 3, 8))
        v, query, weights, *sources = (
            torch.randn(shape, generator=generator, dtype=torch.float64, requires_grad=True) for shape in shapes
        )
        assert torch.autograd.gradcheck(lambda *args: SourceScores.apply(*args, 1e-3), (v, query))
        assert torch.autograd.gradcheck(SourceMixture.apply, (weights, *sources))

    def test_weights_sum_to_one_and_ignore_the_sources_size(self):
        module, _ = residual(name="attention_residuals", query_std=1.0)
        x, *branches = streams(4)
        state = module.start(x)
        scaled = module.start(7 * x)
        for sublayer, branch in enumerate(branches):
            inputs = module.layer_inputs(sublayer // 2)
            state = module.write(state, sublayer % 2, inputs, branch)
            scaled = module.write(scaled, sublayer % 2, inputs, 0.3 * branch)
        weights = module.weights(state, 5)
        assert weights.shape == (2, 5, 4)
        torch.testing.assert_close(weights.sum(-1), torch.ones(2, 5))
        torch.testing.assert_close(weights, module.weights(scaled, 5), rtol=1e-3, atol=1e-4)
        assert weights.std() > 0.01

    def test_queries_start_small(self):
        model = create(small(width=256, heads=32, residual={"name": "attention_residuals"}), 0)
        stacked = torch.stack(list(model.residual.queries))
        assert stacked.std().item() == pytest.approx(0.02, rel=0.05)

    @pytest.mark.parametrize(
        ("options", "count"),
        [({}, 200_704), ({"final_mix": False}, 196_608), ({"queries": "per_layer", "final_mix": False}, 98_304)],
    )
    def test_count_at_24_layers(self, options, count):
        spec = small(layers=24, width=2048, residual={"name": "attention_residuals"} | options)
        with torch.device("meta"):
            module = build("residual", spec)
        assert sum(parameter.numel() for parameter in module.parameters()) == count

    def test_without_a_final_mix_the_sum_is_read(self):
        module, _ = residual(name="attention_residuals", final_mix=False)
        x, *branches = streams(9)
        torch.testing.assert_close(run_by_hand(module, x, branches)[1], x + sum(branches))

    def test_roles(self):
        roles = collect_roles(on_meta(small(residual={"name": "attention_residuals"})))
        queries = [role for name, role in roles.items() if name.startswith("residual.queries.")]
        gains = [role for name, role in roles.items() if name.startswith("residual.gains.")]
        assert {role.role for role in queries} == {"pseudo_query"}
        assert {role.role for role in gains} == {"norm"}
        assert [role.layer for role in queries] == [0, 0, 1, 1, 2, 2, 3, 3, None]

    def test_bfloat16_outputs_are_mixed_in_float32(self):
        module, _ = residual(name="attention_residuals")
        x, *branches = streams(9)
        _, end = run_by_hand(module, x, [branch.bfloat16() for branch in branches])
        assert end.dtype == torch.float32


class TestStreams:
    def test_each_sublayer_starts_at_its_own_stream(self):
        module, _ = residual(name="hyper_connections", variant="official")
        streams_BTSD = torch.stack(streams(4), dim=2)
        for sublayer in range(8):
            state = (streams_BTSD, module.connections[sublayer].weights(streams_BTSD))
            read = module.read(state, sublayer % 2, module.layer_inputs(sublayer // 2))
            assert torch.equal(read, streams_BTSD[:, :, sublayer % 4])

    def test_against_the_sums_written_out(self):
        module, spec = residual(name="hyper_connections", variant="official", streams=3)
        connection = module.connections[2]
        with torch.no_grad():
            for index, parameter in enumerate(connection.parameters()):
                parameter.normal_(generator=torch.Generator().manual_seed(index))
        streams_BTSD, branch = torch.stack(streams(3), dim=2), streams(4)[3]
        state = (streams_BTSD, connection.weights(streams_BTSD))
        inputs = module.layer_inputs(1)
        read, written = module.read(state, 0, inputs), module.write(state, 0, inputs, branch)[0]
        batch, time = 1, 3
        h = streams_BTSD[batch, time]
        norm = h / (h.square().mean(-1, keepdim=True) + spec.norm_eps).sqrt() * connection.norm.gain
        reads = connection.read_static + connection.read_scale * torch.tanh(norm @ connection.read_dynamic)[:, 0]
        mix = connection.mix_static + connection.mix_scale * torch.tanh(norm @ connection.mix_dynamic)
        writes = connection.write_static + connection.write_scale * torch.tanh(norm @ connection.write_dynamic)[:, 0]
        torch.testing.assert_close(read[batch, time], sum(reads[s] * h[s] for s in range(3)))
        for target in range(3):
            expected = sum(mix[s, target] * h[s] for s in range(3)) + writes[target] * branch[batch, time]
            torch.testing.assert_close(written[batch, time, target], expected)

    def test_dynamic_maps_learn_from_the_start(self):
        model = create(small(residual={"name": "hyper_connections", "variant": "official"}), 0)
        (model(TOKENS) * torch.randn(97, generator=torch.Generator().manual_seed(0))).sum().backward()
        assert (model.residual.connections[3].write_dynamic.grad != 0).any()
        assert (model.residual.connections[3].mix_static.grad != 0).any()

    def test_rejects_no_streams(self):
        with pytest.raises(PlumblineError, match=r"model\.residual\.streams: 0"):
            Decoder(small(residual={"name": "hyper_connections", "variant": "official", "streams": 0}))


@pytest.mark.parametrize(
    "residual_spec", [{"name": "attention_residuals"}, {"name": "hyper_connections", "variant": "official"}]
)
def test_no_stream_to_normalise(residual_spec):
    with pytest.raises(PlumblineError, match="normalises the residual stream"):
        Decoder(small(placement={"name": "hybrid_norm"}, residual=residual_spec))


RESIDUALS = [
    {"name": "standard"},
    {"name": "layer_scale"},
    {"name": "dense_former"},
    {"name": "dense_former", "variant": "official"},
    {"name": "hyper_connections"},
    {"name": "hyper_connections", "variant": "official"},
    {"name": "attention_residuals"},
]


@pytest.mark.parametrize("chosen", RESIDUALS)
def test_streams_stay_in_float32_under_autocast(chosen):
    model = create(small(residual=chosen), 0)
    kinds = set()
    for block in model.blocks:
        block.register_forward_hook(lambda _module, _inputs, state: kinds.update(x.dtype for x in state))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(TOKENS)
    assert kinds == {torch.float32}
    torch.testing.assert_close(logits, model(TOKENS), rtol=0, atol=0.02)
    logits.square().mean().backward()
    assert all(value.grad is not None and value.grad.isfinite().all() for value in model.parameters())


@pytest.mark.parametrize("chosen", RESIDUALS)
def test_runs_with_weights_in_bfloat16(chosen):
    model = create(small(residual=chosen), 0)
    wide = model(TOKENS)
    torch.testing.assert_close(model.bfloat16()(TOKENS), wide, rtol=0, atol=0.03)
