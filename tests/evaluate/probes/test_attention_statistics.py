"""Attention statistics: the naive computation in float64, oracles, and the values where training starts."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from plumbline.core.errors import PlumblineError
from plumbline.evaluate.probes import _scores, read
from plumbline.evaluate.probes._scores import AttentionScores
from plumbline.evaluate.probes.attention_statistics import AttentionStatistics
from plumbline.model.decoder import create
from tests.evaluate.probes.naive_computations import Largest, has_hooks, keyed, naive_scores, scramble, tokens
from tests.model.study_architectures import KEY_NORMS, PREMATURE
from tests.model_specs import small


@pytest.mark.parametrize("rows", [1, 7, 128])
@pytest.mark.parametrize(
    "overrides",
    [{"key_value_heads": 1}, {"key_value_heads": 2}, {"key_value_heads": 8} | PREMATURE["gpt"], KEY_NORMS],
    ids=["one_key_head", "grouped", "gpt", "key_norms"],
)
def test_as_computed_naively_in_float64(monkeypatch: pytest.MonkeyPatch, rows: int, overrides: dict[str, Any]) -> None:
    """Whole matrices, head by head and query by query, over all sequences at once."""
    monkeypatch.setattr(_scores, "ROWS", rows)
    model = scramble(**overrides)
    batch_BT = tokens(model, 3)
    values = keyed(read(model, [AttentionStatistics()], batch_BT))
    assert len(values) == 5 * model.spec.layers * model.spec.heads
    for layer, z_BHTT in enumerate(naive_scores(model, batch_BT)):
        for head in range(model.spec.heads):
            lines = [row[: index + 1] for z_TT in z_BHTT[:, head] for index, row in enumerate(z_TT)]
            every = torch.cat(lines)
            entropies = []
            for line in lines:
                p = line.softmax(0)
                if len(line) > 1:
                    entropies.append(float(-(p * p.log()).sum()) / math.log(len(line)))
            expected = {
                "logit_mean_abs": float(every.abs().mean()),
                "logit_rms": float(every.square().mean().sqrt()),
                "logit_row_max": sum(float(line.max()) for line in lines) / len(lines),
                "logit_max": float(every.max()),
                "entropy": sum(entropies) / len(entropies),
            }
            for name, value in expected.items():
                assert values[name, layer, head].value == pytest.approx(value, rel=1e-11), (name, layer, head)
            assert values["entropy", layer, head].null == 1.0
            assert 0.1 < expected["entropy"] < 0.95, "attention must be sharp for this to test anything"


def test_where_training_starts_at_width_of_premature_study() -> None:
    """A normalised input of width 960, weights N(0, 0.02^2), heads of 64, 1024 tokens. Rotary positions change nothing
    of it. The numbers were drawn without this code: z is nearly N(0, 0.385^2)."""
    spec = small(layers=1, width=960, heads=15, key_value_heads=15, head_width=64, ffn_width=64, vocabulary=8192,
                 context=1025, norm_eps=1e-12)  # fmt: skip
    model = create(spec, init_seed=42)
    result = read(model, [AttentionStatistics()], tokens(model, 2))

    def mean(name: str) -> float:
        values = [probe_value.value for probe_value in result if probe_value.probe == name]
        assert len(values) == 15
        return sum(values) / 15

    assert mean("logit_mean_abs") == pytest.approx(0.3061, abs=0.002)
    assert mean("logit_rms") == pytest.approx(0.3852, abs=0.003)
    assert mean("logit_row_max") == pytest.approx(1.12, abs=0.02)
    assert max(probe_value.value for probe_value in result if probe_value.probe == "logit_max") == pytest.approx(
        2.06, abs=0.3
    )
    assert mean("entropy") == pytest.approx(0.9871, abs=0.0005)


def entropy(q_TW: torch.Tensor, k_TW: torch.Tensor) -> torch.Tensor:
    return AttentionScores(q_TW[None, None], k_TW[None, None], 1.0).rows.entropy[0, 0]


@pytest.mark.parametrize("score", [0.0, 3.0, -1000.0, 1000.0])
def test_equal_scores_are_uniform_attention(score: float) -> None:
    q_TW, k_TW = torch.full((300, 1), score), torch.ones(300, 1)
    torch.testing.assert_close(entropy(q_TW, k_TW), torch.arange(1, 301).float().log(), rtol=1e-5, atol=2e-6)


def test_attention_to_one_key_has_no_entropy() -> None:
    one_hot = torch.eye(200)
    assert entropy(1e4 * one_hot, one_hot).abs().max() == 0.0


def test_large_scores_lose_no_digits_in_float32() -> None:
    """A row of scores around 1000 has the entropy that it has around 0."""
    k_TW = torch.randn(150, 4, generator=torch.Generator().manual_seed(1))
    ones = torch.ones(150, 1)
    near = entropy(ones.expand(150, 5), torch.cat([k_TW, 0 * ones], dim=1))
    far = entropy(ones.expand(150, 5), torch.cat([k_TW, 1000 * ones], dim=1))
    torch.testing.assert_close(near, far, rtol=0, atol=2e-4)  # the scores themselves have 24 bits


def test_no_matrix_of_all_queries_and_keys_is_made() -> None:
    q_BHTW, k_BGTW = torch.randn(1, 2, 1024, 4), torch.randn(1, 1, 1024, 4)
    with Largest() as largest:
        scores = AttentionScores(q_BHTW, k_BGTW, 1.0)
        assert scores.lse_BHT.shape == scores.rows.lse.shape == (1, 2, 1024)
    assert largest.elements == 2 * _scores.ROWS * 1024 < 2 * 1024 * 1024 / 4
    torch.testing.assert_close(AttentionScores(q_BHTW, k_BGTW, 1.0).lse_BHT, scores.rows.lse)


def test_a_mixer_that_is_no_softmax_is_refused() -> None:
    model = create(small(mixer={"name": "sigmoid"}), init_seed=1)
    with pytest.raises(PlumblineError, match=r"model.mixer 'sigmoid': what probes read"):
        read(model, [AttentionStatistics()], tokens(model))
    assert model.training and not has_hooks(model)


def test_a_single_token_has_scores_but_no_entropy() -> None:
    model = create(small(), init_seed=1)
    reads = read(model, [AttentionStatistics()], tokens(model)[:, :2])
    assert {probe_value.probe for probe_value in reads} == {"logit_mean_abs", "logit_rms", "logit_row_max", "logit_max"}
