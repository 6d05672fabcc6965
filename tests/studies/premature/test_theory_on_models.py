"""The theory on steps of a model in training: real streams, weights, losses and rows of attention.

The model is the study's biasless block without positions (interpretation theory_head); its upper layer's heads are
watched."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from plumbline.model.decoder import Decoder, create
from plumbline.specs.spec import ModelSpec
from plumbline.studies.premature.gradient_step_on_scores import DirectedHead, causal_softmax, frobenius, suppression
from plumbline.studies.premature.theorem_numbers import slack
from tests.model_specs import BASELINE

BIASLESS = {"norm": {"name": "layer_norm"}, "ffn": {"name": "gelu"}}
SIZES = {
    "layers": 2,
    "width": 48,
    "heads": 3,
    "key_value_heads": 3,
    "head_width": 16,
    "ffn_width": 192,
    "init_std": 0.09,
}


class NoPositions(nn.Module):
    """Queries and keys as they are."""

    def embed(self, x_BTD, context):
        return x_BTD

    def prepare(self, width, context):
        pass

    def rotate(self, x_BHTW, context, splits=1):
        return x_BHTW


@dataclass
class Seen:
    """A backward pass of one sequence, at the upper layer."""

    loss: float
    x_TD: np.ndarray
    scores_HTT: np.ndarray
    adjoint_HTT: np.ndarray
    gradients: tuple[np.ndarray, np.ndarray]
    weights: tuple[np.ndarray, np.ndarray]


def text(seed: int, length: int = 48) -> torch.Tensor:
    """A sequence with frequent and rare tokens, and a phrase that comes again between the others."""
    draw = torch.Generator().manual_seed(seed)

    def some(count: int) -> torch.Tensor:
        return (97 * torch.rand(count, generator=draw) ** 3).long()

    phrase = some(8)
    return torch.cat([phrase if number % 2 else some(4) for number in range(12)])[:length][None]


def watch_loss(model: Decoder, tokens_BT: torch.Tensor) -> Seen:
    """Loss, and what the theorem is about, of the last layer."""
    attention, activations = model.blocks[-1].attention, {}
    before = attention.mixer.forward

    def forward(q_BHQW, k_BGKW, v_BGKW, attention_mask, cache=None):
        activations["z"] = attention.mixer.scores(q_BHQW, k_BGKW)
        activations["z"].retain_grad()
        hidden = torch.ones(activations["z"].shape[-2:], dtype=torch.bool).triu(1)
        return activations["z"].masked_fill(hidden, -math.inf).softmax(-1) @ v_BGKW

    handle = attention.register_forward_pre_hook(lambda _, inputs: activations.update(x=inputs[0].detach()))
    attention.mixer.forward = forward
    try:
        model.zero_grad()
        logits_BTV = model(tokens_BT[:, :-1])
        loss = cross_entropy(logits_BTV.flatten(0, 1), tokens_BT[:, 1:].flatten())
        loss.backward()
    finally:
        handle.remove()
        attention.mixer.forward = before
    maps = [attention.projections.query, attention.projections.key]
    return Seen(
        loss=float(loss.detach()),
        x_TD=activations["x"][0].double().numpy(),
        scores_HTT=activations["z"][0].detach().double().numpy(),
        adjoint_HTT=activations["z"].grad[0].double().numpy(),
        gradients=tuple(layer.weight.grad.double().numpy() for layer in maps),
        weights=tuple(layer.weight.detach().double().numpy() for layer in maps),
    )


def heads(record: Seen, basis_DR: np.ndarray) -> list[DirectedHead]:
    """The heads of the layer, with weights as the paper has them (width x head width)."""
    width = SIZES["head_width"]
    query, key = ([weight[h * width : (h + 1) * width].T for h in range(SIZES["heads"])] for weight in record.weights)
    return [
        DirectedHead(
            x_TD=record.x_TD, query_DW=query[h], key_DW=key[h], adjoint_TT=record.adjoint_HTT[h], basis_DR=basis_DR
        )
        for h in range(SIZES["heads"])
    ]


@pytest.fixture(scope="module", params=[0, 25, 100], ids=lambda steps: f"after {steps} steps")
def trained(request) -> Decoder:
    model = create(ModelSpec.from_dict(BASELINE | SIZES | BIASLESS), init_seed=1)
    model.positions = NoPositions()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    first = None
    for step in range(request.param):
        optimizer.zero_grad()
        tokens_BT = torch.cat([text(8 * step + row) for row in range(8)])
        loss = cross_entropy(model(tokens_BT[:, :-1]).flatten(0, 1), tokens_BT[:, 1:].flatten())
        loss.backward()
        first = first or float(loss.detach())
        optimizer.step()
    assert request.param < 100 or float(loss.detach()) < 0.9 * first
    return model


@pytest.fixture(scope="module")
def record(trained) -> Seen:
    return watch_loss(trained, text(10_000))


def drift(model: Decoder, record: Seen, share: float = 0.9) -> np.ndarray:
    """Directions in which the stream still moves: a basis of `share` of what ten more steps of SGD change."""
    state = {name: value.clone() for name, value in model.state_dict().items()}
    for step in range(10):
        watch_loss(model, text(20_000 + step))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.3 * parameter.grad
    later = watch_loss(model, text(10_000)).x_TD
    model.load_state_dict(state)
    _, values, right = np.linalg.svd(later - record.x_TD, full_matrices=False)
    rank = int((np.cumsum(values**2) < share * (values**2).sum()).sum()) + 1
    return right[:rank].T


def random_basis(rank: int) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(0).standard_normal((SIZES["width"], rank)))[0]


def test_the_gradients_are_those_of_eq_16(record):
    width = SIZES["head_width"]
    for number, head in enumerate(heads(record, random_basis(4))):
        assert np.allclose(causal_softmax(record.scores_HTT[number]).sum(axis=1), 1)
        for ours, whole in zip(head.gradients, record.gradients, strict=True):
            theirs = whole[number * width : (number + 1) * width].T
            assert frobenius(ours - theirs) < 1e-4 * frobenius(theirs)


def test_the_scores_are_those_of_eq_14(record):
    for number, head in enumerate(heads(record, random_basis(4))):
        scores = (head.x_TD @ head.query_DW) @ (head.x_TD @ head.key_DW).T / math.sqrt(head.width)
        assert np.abs(scores - record.scores_HTT[number]).max() < 1e-4


@pytest.mark.parametrize("rate", [1e-3, 0.3, 30.0])
def test_theorem_1_bounds_measured_steps(trained, record, rate):
    """The step is the model's own: its weights after it, compared with what the theorem allows."""
    width, root = SIZES["head_width"], math.sqrt(SIZES["head_width"])
    new = [weight - rate * gradient for weight, gradient in zip(record.weights, record.gradients, strict=True)]
    for basis_DR in (drift(trained, record), random_basis(5), np.eye(SIZES["width"])):
        for number, head in enumerate(heads(record, basis_DR)):
            query, key = (new_weight[number * width : (number + 1) * width].T for new_weight in new)
            inside = head.chosen_TR @ basis_DR.T
            moved = frobenius(inside @ (query @ key.T - head.query_DW @ head.key_DW.T) @ inside.T / root)
            bound = head.bound(rate, rate)
            assert moved <= bound <= min(head.unconditional_bound(rate, rate), head.bound_by_localisation(rate, rate))
            assert moved == pytest.approx(frobenius(head.score_change(rate, rate)), rel=1e-3)
        if rate < 1:  # not a bound that anything would keep: a thousandth of it is too little for some head
            directed_heads = heads(record, basis_DR)
            assert any(
                frobenius(head.score_change(rate, rate)) > 1e-3 * head.bound(rate, rate) for head in directed_heads
            )


def test_corollary_3_quarter_of_rate_is_quarter_of_step(record):
    for head in heads(record, random_basis(5)):
        assert suppression(head, 0.25, 1e-4) == pytest.approx(0.25, abs=1e-3)
        assert suppression(head, 0.125, 1e-4) == pytest.approx(0.125, abs=1e-3)


def test_the_range_of_real_rows_is_what_their_sharpness_needs(record):
    """Every row of every head: of scores that a trained model gave."""
    slacks = [slack(scores_TT[row, : row + 1]) for scores_TT in record.scores_HTT for row in range(1, len(scores_TT))]
    assert min(slacks) > -1e-9 and len(slacks) == SIZES["heads"] * (len(record.x_TD) - 1)
    # With two keys there is no slack: the other key has all of the rest.
    assert max(abs(slack(scores_TT[1, :2])) for scores_TT in record.scores_HTT) < 1e-9
