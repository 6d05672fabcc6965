"""Oracles of selective attention."""

from __future__ import annotations

import pytest
import torch

from plumbline.core.errors import PlumblineError
from plumbline.model.decoder import create
from tests.model.attention_cases import GROUPS, HEADS, inputs, mixer, padded, plain, scores, with_scores
from tests.model_specs import small

PER_GROUP = HEADS // GROUPS


def naive(z: torch.Tensor, masking: dict[int, int]) -> torch.Tensor:
    """Rows by the formula: head h's scores less those of head masking[h], without first key and diagonal."""
    length, rows = z.shape[-1], []
    for head, mask_head in masking.items():
        row = []
        for i in range(length):
            logits = z[:, head, i, : i + 1].clone()
            for j in range(1, i):
                logits[:, j] -= z[:, mask_head, i, j].clamp(min=0)
            weights = torch.zeros(z.shape[0], length, dtype=z.dtype)
            weights[:, : i + 1] = logits.softmax(-1)
            row.append(weights)
        rows.append(torch.stack(row, dim=1))
    return torch.stack(rows, dim=1)


def test_masking_heads_is_the_formula() -> None:
    q, k, _ = inputs(7)
    attending = {head: head - head % PER_GROUP for head in range(HEADS) if head % PER_GROUP}
    expected = naive(scores(q, k), attending)
    torch.testing.assert_close(mixer("selective").weights(q, k, plain(7)), expected)
    assert expected.shape[1] == mixer("selective").output_heads == 6


def test_halved_key_values_is_the_formula() -> None:
    built = mixer("selective", variant="halved_key_values")
    assert (built.groups, built.output_heads) == (1, HEADS)
    q, k, _ = inputs(7, groups=1)
    expected = naive(scores(q, k), dict.fromkeys(range(HEADS), 0))
    torch.testing.assert_close(built.weights(q, k, plain(7)), expected)


def test_original_sums_over_earlier_queries() -> None:
    q, k, _ = inputs(7)
    z = scores(q, k)
    logits = z.clone()
    for i in range(7):
        for earlier in range(i):
            for j in range(1, earlier):
                logits[:, :, i, j] -= z[:, :1, earlier, j].clamp(min=0)
    mask = torch.ones(7, 7).tril().bool()
    expected = logits.masked_fill(~mask, float("-inf")).softmax(-1)
    torch.testing.assert_close(mixer("selective", variant="original").weights(q, k, plain(7)), expected)


@pytest.mark.parametrize("variant", ["masking_heads", "halved_key_values", "original"])
def test_a_selection_never_raises_a_score(variant: str) -> None:
    built = mixer("selective", variant=variant)
    q, k, _ = inputs(9, groups=built.groups)
    for attention_mask in (plain(9), padded(9, left=3, right=2)):
        selection = built.selection(q, k, attention_mask)
        query, key = (
            attention_mask.query_positions_BQ[:, None, :, None],
            attention_mask.key_positions_BK[:, None, None, :],
        )
        assert (selection >= 0).all() and (selection > 0).any()
        spared = (key <= 0) | (key >= query)
        assert not (selection * spared).any()


@pytest.mark.parametrize("mask", ["before", "after"])
def test_silent_masking_heads_leave_plain_attention(mask: str) -> None:
    q, k, v = inputs(9)
    q = q.detach().clone()
    q[:, ::PER_GROUP] = 0
    attending = [head for head in range(HEADS) if head % PER_GROUP]
    expected = mixer("softmax")(q, k, v, plain(9))[:, attending]
    torch.testing.assert_close(mixer("selective", mask=mask)(q, k, v, plain(9)), expected)


@pytest.mark.parametrize("variant", ["masking_heads", "halved_key_values", "original"])
def test_after_the_softmax_the_mask_is_a_gate_on_its_weights(variant: str) -> None:
    """softmax(z) e^-S: never more than plain attention, the same at the first key and at the query itself, and with its
    rows normalised again the mask before the softmax."""
    before, after = mixer("selective", variant=variant), mixer("selective", variant=variant, mask="after")
    q, k, _ = inputs(9, groups=before.groups)
    for attention_mask in (plain(9), padded(9, left=3, right=2)):
        real_BQ = (attention_mask.query_positions_BQ >= 0).expand(2, -1)
        masked, plainly = after.weights(q, k, attention_mask), softmax_of(after, q, k, attention_mask)
        assert (masked <= plainly).all() and (masked < plainly - 1e-3).any()
        query, key = (
            attention_mask.query_positions_BQ[:, None, :, None],
            attention_mask.key_positions_BK[:, None, None, :],
        )
        spared = ((key == 0) | (key == query)).expand_as(masked)
        assert torch.equal(masked[spared], plainly[spared])
        again = masked / masked.sum(-1, keepdim=True)
        expected = before.weights(q, k, attention_mask)
        rows = real_BQ[:, None, :, None]
        torch.testing.assert_close((again * rows).nan_to_num(), expected * rows)


def softmax_of(built, q: torch.Tensor, k: torch.Tensor, attention_mask) -> torch.Tensor:
    """Plain attention's weights in the resulting heads."""
    per_group = HEADS // built.groups
    heads = [head for head in range(HEADS) if built.variant != "masking_heads" or head % per_group]
    plainly = mixer("softmax")
    plainly.groups = built.groups
    return plainly.weights(q, k, attention_mask)[:, heads]


def test_three_tokens_by_hand() -> None:
    """The third query scores its keys log 1, log 2, log 3; of its masking head's log 5, log 4, log 7 the middle one
    alone masks: (1, 2, 3) / 6 becomes (1, 2 / 4, 3) / 6 after the softmax, (1, 2 / 4, 3) / 4.5 before it."""
    z = torch.zeros(HEADS, 3, 3, dtype=torch.float64)
    z[:, 2] = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64).log()
    z[::PER_GROUP, 2] = torch.tensor([5.0, 4.0, 7.0], dtype=torch.float64).log()
    parts = torch.tensor([1.0, 0.5, 3.0], dtype=torch.float64)
    for mask, total in (("after", 6.0), ("before", 4.5)):
        weights = mixer("selective", mask=mask).weights(*with_scores(z), plain(3))
        torch.testing.assert_close(weights[0, :, 2], (parts / total).expand(6, 3))
        torch.testing.assert_close(weights[0, :, 1, :2], torch.full((6, 2), 0.5, dtype=torch.float64))


def test_masking_heads_do_not_attend_but_learn() -> None:
    q, k, v = inputs(9)
    (gradient,) = torch.autograd.grad(mixer("selective")(q, k, v, plain(9)).sin().sum(), q)
    assert gradient[:, ::PER_GROUP].abs().max() > 0


def test_sizes_that_do_not_fit_are_named() -> None:
    with pytest.raises(PlumblineError, match="query head"):
        create(small(key_value_heads=8, mixer={"name": "selective"}), 1)
    with pytest.raises(PlumblineError, match="1 is odd"):
        create(small(key_value_heads=1, mixer={"name": "selective", "variant": "halved_key_values"}), 1)
