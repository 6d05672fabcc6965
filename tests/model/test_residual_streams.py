"""LayerScale, DenseFormer and the two-lane HyperConnections against the baseline and against loops by hand."""

from __future__ import annotations

import pytest
import torch

from plumbline.model.decoder import Decoder, create, on_meta
from plumbline.model.roles import collect_roles
from tests.model_specs import small

TOKENS = torch.randint(0, 97, (2, 16), generator=torch.Generator().manual_seed(0))


def residual(**chosen):
    """One residual component by itself, initialised."""
    spec = small(residual=chosen)
    module = create(spec, 0).residual
    return module, spec


def streams(count: int, width: int = 64) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(2, 5, width, generator=generator) for _ in range(count)]


def run_by_hand(module, x, branches):
    """Drive a residual through given sublayer outputs; returns what each sublayer read, and the end."""
    state, reads = module.start(x), []
    for sublayer, branch in enumerate(branches):
        inputs = module.layer_inputs(sublayer // 2)
        if sublayer % 2 == 0:
            state = module.begin_layer(state, inputs)
        reads.append(module.read(state, sublayer % 2, inputs))
        state = module.write(state, sublayer % 2, inputs, branch)
        if sublayer % 2 == 1:
            state = module.end_layer(state, inputs)
    return reads, module.finish(state)


@pytest.fixture(scope="module")
def baseline() -> Decoder:
    return create(small(), 0)


def set_all(parameters, value: float) -> None:
    with torch.no_grad():
        for parameter in parameters:
            parameter.fill_(value)


class TestLayerScale:
    def test_gamma_one_is_the_baseline(self, baseline):
        model = create(small(residual={"name": "layer_scale", "initial": 1.0}), 0)
        assert torch.equal(model(TOKENS), baseline(TOKENS))

    def test_gamma_zero_is_the_embedding_path(self):
        model = create(small(residual={"name": "layer_scale", "initial": 0.0}), 0)
        alone = model.logits(model.final_norm(model.embedding[TOKENS]))
        assert torch.equal(model(TOKENS), alone)

    def test_starts_near_the_embedding_path(self):
        model = create(small(residual={"name": "layer_scale"}), 0)
        alone = model.logits(model.final_norm(model.embedding[TOKENS]))
        difference = (model(TOKENS) - alone).abs().max()
        assert 0 < difference < 1e-2

    def test_one_vector_is_shared_by_both_sublayers(self):
        single, spec = residual(name="layer_scale")
        two, _ = residual(name="layer_scale", vectors=2)
        assert [tuple(p.shape) for p in single.parameters()] == [(spec.width,)] * spec.layers
        assert [tuple(p.shape) for p in two.parameters()] == [(spec.width,)] * (2 * spec.layers)
        with torch.no_grad():
            single.gammas[1].fill_(3.0)
            two.gammas[2].fill_(3.0)
            two.gammas[3].fill_(3.0)
            for parameter in (*single.gammas[2:], *two.gammas[4:], single.gammas[0], *two.gammas[:2]):
                parameter.fill_(0.5)
        x, *branches = streams(9)
        expected = x + 0.5 * sum(branches[:2]) + 3 * sum(branches[2:4]) + 0.5 * sum(branches[4:])
        for module in (single, two):
            torch.testing.assert_close(run_by_hand(module, x, branches)[1], expected)

    def test_small_writes_survive_a_bfloat16_branch(self):
        module, _ = residual(name="layer_scale")
        x = torch.ones(1, 1, 64)
        after = module.write((x,), 0, module.layer_inputs(0), torch.ones(1, 1, 64, dtype=torch.bfloat16))[0]
        assert after.dtype == torch.float32
        torch.testing.assert_close(after, x + 1e-4, rtol=0, atol=1e-7)

    def test_roles(self):
        model = on_meta(small(residual={"name": "layer_scale", "vectors": 2}))
        roles = {name: role for name, role in collect_roles(model).items() if name.startswith("residual.")}
        assert {role.role for role in roles.values()} == {"scalar"}
        assert [role.layer for role in roles.values()] == [0, 0, 1, 1, 2, 2, 3, 3]


class TestDenseFormer:
    @pytest.mark.parametrize("variant", ["input_side", "official"])
    def test_only_the_first_source(self, variant):
        """With all weight on the embedding, every layer reads it, whatever the layers before have written."""
        module, _ = residual(name="dense_former", variant=variant)
        set_all(module.parameters(), 0.0)
        with torch.no_grad():
            for weights in module.weights:
                weights[0] = 1.0
        x, *branches = streams(9)
        reads, end = run_by_hand(module, x, branches)
        for layer in range(4):
            assert torch.equal(reads[2 * layer], x)
            torch.testing.assert_close(reads[2 * layer + 1], x + branches[2 * layer])
        torch.testing.assert_close(end, x if variant == "official" else x + branches[6] + branches[7])

    @pytest.mark.parametrize("variant", ["input_side", "official"])
    def test_against_the_sum_written_out(self, variant):
        module, _ = residual(name="dense_former", variant=variant)
        with torch.no_grad():
            for layer, weights in enumerate(module.weights):
                weights.normal_(generator=torch.Generator().manual_seed(layer))
        x, *branches = streams(9)
        reads, end = run_by_hand(module, x, branches)
        outputs = [x]
        current = x
        for layer in range(4):
            if variant == "input_side":
                current = sum(module.weights[layer][j] * outputs[j] for j in range(layer + 1))
            torch.testing.assert_close(reads[2 * layer], current)
            outputs.append(current + branches[2 * layer] + branches[2 * layer + 1])
            current = outputs[-1]
            if variant == "official":
                current = sum(module.weights[layer][j] * outputs[j] for j in range(layer + 2))
        torch.testing.assert_close(end, current)

    def test_every_weight_gets_a_gradient(self):
        model = create(small(residual={"name": "dense_former"}), 0)
        model(TOKENS).square().sum().backward()
        for layer, weights in enumerate(model.residual.weights):
            # Layer 0 reads a multiple of the embedding: its norm removes the scale, but not the stream's later sums.
            assert weights.shape == (layer + 1,)
            assert (weights.grad != 0).all()


class TestHyperConnections:
    @pytest.mark.parametrize("variant", ["per_sublayer", "per_layer", "at_output"])
    def test_starts_as_the_baseline_but_learns(self, baseline, variant):
        model = create(small(residual={"name": "hyper_connections", "variant": variant}), 0)
        logits = model(TOKENS)
        assert torch.equal(logits, baseline(TOKENS))
        logits.square().sum().backward()
        assert all((alpha.grad != 0).all() for alpha in model.residual.alphas)

    def test_starting_rate(self):
        module, _ = residual(name="hyper_connections")
        assert module.beta_logits[0].sigmoid().item() == pytest.approx(0.0998, abs=5e-5)

    def test_rate_one_doubles_the_write(self):
        """beta -> 1: the slow lane is the last output, so x + (1 + alpha) f."""
        module, _ = residual(name="hyper_connections")
        set_all(module.beta_logits, 100.0)
        set_all(module.alphas, 0.25)
        x, *branches = streams(9)
        torch.testing.assert_close(run_by_hand(module, x, branches)[1], x + 1.25 * sum(branches))

    def test_rate_zero_never_fills_the_slow_lane(self):
        module, _ = residual(name="hyper_connections")
        set_all(module.beta_logits, -100.0)
        set_all(module.alphas, 5.0)
        x, *branches = streams(9)
        torch.testing.assert_close(run_by_hand(module, x, branches)[1], x + sum(branches))

    def test_against_the_moving_average_written_out(self):
        module, _ = residual(name="hyper_connections")
        set_all(module.alphas, 0.5)
        x, *branches = streams(9)
        beta, slow, stream = torch.sigmoid(torch.tensor(-2.2)), torch.zeros_like(x), x
        for branch in branches:
            slow = (1 - beta) * slow + beta * branch
            stream = stream + branch + 0.5 * slow
        torch.testing.assert_close(run_by_hand(module, x, branches)[1], stream)

    def test_at_output_lane_enters_once_and_no_sublayer_reads_it(self):
        module, _ = residual(name="hyper_connections", variant="at_output")
        set_all(module.alphas, 0.5)
        x, *branches = streams(9)
        reads, end = run_by_hand(module, x, branches)
        beta, slow = torch.sigmoid(torch.tensor(-2.2)), torch.zeros_like(x)
        for branch in branches:
            slow = (1 - beta) * slow + beta * branch
        torch.testing.assert_close(end, x + sum(branches) + 0.5 * slow)
        for sublayer, read in enumerate(reads):
            torch.testing.assert_close(read, x + sum(branches[:sublayer]))

    def test_a_pair_for_a_layer_is_used_by_both_of_its_sublayers(self):
        module, _ = residual(name="hyper_connections", variant="per_layer")
        set_all(module.beta_logits, 100.0)
        with torch.no_grad():
            module.alphas[1].fill_(1.0)
        x, *branches = streams(9)
        torch.testing.assert_close(run_by_hand(module, x, branches)[1], x + sum(branches) + sum(branches[2:4]))
