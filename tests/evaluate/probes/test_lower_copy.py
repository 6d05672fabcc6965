"""The lower-copy score: the naive computation in float64, oracles, separators, and the function for training."""

from __future__ import annotations

import math

import pytest
import torch

from plumbline.evaluate.probes import ProbedDecoder, observe, read
from plumbline.evaluate.probes._scores import AttentionScores
from plumbline.evaluate.probes.attention_statistics import AttentionStatistics
from plumbline.evaluate.probes.lower_copy import LowerCopy, find_nearest_earlier, lower_copy_score
from plumbline.model.decoder import create
from tests.evaluate.probes.naive_computations import Largest, has_hooks, keyed, naive_scores, scramble, tokens
from tests.model_specs import small


def by_hand(sequence: list[int], left_out: int | None = None) -> dict[int, int]:
    """Position -> the last one before it with the same token."""
    nearest = {}
    for i, token in enumerate(sequence):
        earlier = [j for j in range(i) if sequence[j] == token]
        if earlier and token != left_out:
            nearest[i] = max(earlier)
    return nearest


@pytest.mark.parametrize("layers", [2, 5])
@pytest.mark.parametrize("separator", [None, 4])
@pytest.mark.parametrize("key_value_heads", [2, 8])
def test_as_computed_naively_in_float64(layers: int, separator: int | None, key_value_heads: int) -> None:
    model = scramble(layers=layers, key_value_heads=key_value_heads)
    batch_BT = tokens(model, 3, vocabulary=9)
    by_key = keyed(read(model, [LowerCopy()], batch_BT, separator=separator))
    weights, uniform = {layer: [] for layer in range(layers // 2)}, []
    for layer, z_BHTT in enumerate(naive_scores(model, batch_BT)[: layers // 2]):
        for sequence, z_HTT in zip(batch_BT[:, :-1].tolist(), z_BHTT):
            for i, j in by_hand(sequence, separator).items():
                weights[layer] += [float(z_TT[i].softmax(0)[j]) for z_TT in z_HTT]
                uniform.append(1 / (i + 1))
    null = sum(uniform) / len(uniform)
    assert len(by_key) == layers // 2 + 1
    for layer, values in weights.items():
        probe_value = by_key["lower_copy", layer, None]
        assert probe_value.value == pytest.approx(sum(values) / len(values), rel=1e-11)
        assert probe_value.null == pytest.approx(null, rel=1e-12)
    everything = [value for values in weights.values() for value in values]
    score = by_key["lower_copy", None, None]
    assert score.value == pytest.approx(sum(everything) / len(everything), rel=1e-11)
    assert score.null == pytest.approx(null, rel=1e-12)


def test_separators_count_where_asked_for() -> None:
    model = scramble()
    batch_BT = tokens(model, vocabulary=9)
    everything, without = (
        observe(ProbedDecoder(model), [probe], batch_BT, 4) for probe in (LowerCopy(count_separators=True), LowerCopy())
    )
    assert everything == read(model, [LowerCopy()], batch_BT) != without


def test_nearest_earlier_occurrence() -> None:
    tokens_BT = torch.tensor([[5, 5, 7, 5, 7, 1], [1, 2, 3, 4, 5, 6]])
    assert find_nearest_earlier(tokens_BT).tolist() == [[-1, 0, -1, 1, 2, -1], [-1] * 6]
    drawn_BT = torch.randint(0, 30, (4, 200), generator=torch.Generator().manual_seed(1))
    for sequence, nearest in zip(drawn_BT.tolist(), find_nearest_earlier(drawn_BT).tolist()):
        assert {i: j for i, j in enumerate(nearest) if j >= 0} == by_hand(sequence)


def test_uniform_attention_has_the_null_exactly() -> None:
    model = create(small(), init_seed=1)
    with torch.no_grad():
        for block in model.blocks:
            block.attention.projections.query.weight.zero_()
    for probe_value in read(model, [LowerCopy()], tokens(model, vocabulary=9)):
        assert probe_value.value == pytest.approx(probe_value.null, rel=1e-6)


def test_attention_to_nothing_but_the_earlier_token_scores_one() -> None:
    """Made by hand: each query points at its own j(i), keys are one-hot positions."""
    probe, subject = LowerCopy(), ProbedDecoder(create(small(layers=2), init_seed=1))
    inputs_BT = torch.randint(0, 9, (1, 150), generator=torch.Generator().manual_seed(2))
    probe.begin(subject, None)
    probe.sequence(inputs_BT, inputs_BT)
    positions = torch.eye(150)
    q_TW = 1e4 * positions[find_nearest_earlier(inputs_BT)[0].clamp(min=0)]
    probe.scores(0, AttentionScores(q_TW[None, None], positions[None, None], 1.0))
    assert [probe_value.value for probe_value in probe.probe_values(subject)] == [1.0, 1.0]


def test_a_text_without_repeats_has_no_score() -> None:
    model = create(small(), init_seed=1)
    batch_BT = torch.arange(32).expand(2, 32)
    assert read(model, [LowerCopy()], batch_BT) == []
    score, null = lower_copy_score(model, batch_BT)
    assert math.isnan(score) and math.isnan(null) and not score >= 0.0
    # Nor one whose only repeats are separators.
    batch_BT = torch.where(torch.arange(32) % 5 == 0, 0, batch_BT)
    assert math.isnan(lower_copy_score(model, batch_BT, separator=0)[0])
    assert lower_copy_score(model, batch_BT)[0] > 0


def test_the_null_at_a_context_of_1024_and_on_a_text_with_a_law() -> None:
    """Every position valid: the mean of 1 / (i + 1) over i from 1; and Zipf texts of 256 tokens."""
    model = create(small(context=1025), init_seed=1)
    [*_, score] = read(model, [LowerCopy()], torch.zeros(1, 1025, dtype=torch.long))
    assert score.null == pytest.approx(sum(1 / (i + 1) for i in range(1, 1024)) / 1023, rel=1e-12)
    frequencies = 1 / torch.arange(1, 50_001).double()
    texts = torch.multinomial(frequencies, 200 * 257, replacement=True, generator=torch.Generator().manual_seed(1))
    probe = LowerCopy()
    for sequence in texts.view(200, 1, 257):
        probe.sequence(sequence[:, :-1], sequence[:, 1:])
    assert 0.010 < float(probe.uniform.mean("uniform", 0)) < 0.013


def test_training_may_ask_for_the_score_and_goes_on_as_it_was() -> None:
    model = create(small(), init_seed=1)
    batch_BT = tokens(model, vocabulary=9)
    [*_, expected] = read(model, [LowerCopy()], batch_BT, "bfloat16", separator=3)
    before = torch.get_rng_state()
    score, null = lower_copy_score(model, batch_BT, precision="bfloat16", separator=3)
    assert (score, null) == (expected.value, expected.null) and expected.layer is None
    assert model.training and torch.equal(torch.get_rng_state(), before)
    assert all(parameter.grad is None for parameter in model.parameters())
    assert not has_hooks(model)


def test_no_matrix_of_all_queries_and_keys_is_made() -> None:
    probe, subject = LowerCopy(), ProbedDecoder(create(small(layers=2), init_seed=1))
    inputs_BT = torch.randint(0, 99, (1, 2048))
    probe.begin(subject, None)
    probe.sequence(inputs_BT, inputs_BT)
    with Largest() as largest:
        probe.scores(0, AttentionScores(torch.randn(1, 2, 2048, 4), torch.randn(1, 1, 2048, 4), 0.5))
    assert largest.elements == 2 * 128 * 2048


def test_beside_the_statistics_it_reads_the_same() -> None:
    """Either may be first to ask for what they share."""
    model = scramble()
    batch_BT = tokens(model, vocabulary=9)
    alone = read(model, [LowerCopy()], batch_BT)
    before = read(model, [LowerCopy(), AttentionStatistics()], batch_BT)[: len(alone)]
    after = read(model, [AttentionStatistics(), LowerCopy()], batch_BT)[-len(alone) :]
    for probe_values in (before, after):
        assert [probe_value.value for probe_value in probe_values] == pytest.approx([r.value for r in alone], rel=1e-12)
