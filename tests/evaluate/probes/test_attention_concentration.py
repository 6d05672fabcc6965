"""Concentration: by hand, naively for every mixer of the study, oracles, and logits that no cap hides."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from plumbline.evaluate.probes import _scores, read
from plumbline.evaluate.probes._scores import AttentionScores, AttentionWeights
from plumbline.evaluate.probes.attention_concentration import AttentionConcentration
from plumbline.model.attention_mask import AttentionMask
from plumbline.model.decoder import create
from plumbline.model.mixers._base import Mixer
from tests.evaluate.probes.naive_computations import Largest, keyed, scramble, tokens, trace
from tests.model.transfer_methods import ALL
from tests.model_specs import small

#: Every mixer of a method or variant, as an overlay.
MIXERS = {str(given["mixer"]): {"mixer": given["mixer"]} for given in ALL.values() if "mixer" in given} | {
    "softmax": {}
}

BOUND = 1.5


def read_part(weighed: AttentionWeights, beyond: float = 50.0) -> dict[str, Any]:
    """The values of one part of one layer."""
    probe = AttentionConcentration(beyond=beyond)
    probe.weights(0, lambda: iter([weighed]))
    return {name: probe_value for (name, _, head), probe_value in keyed(probe.probe_values(None)).items() if head == 0}


def by_hand(weights: list[list[float]], logits: list[list[float]] | None = None, **options: Any) -> dict[str, Any]:
    w_QK = torch.tensor(weights)
    z_QK = w_QK if logits is None else torch.tensor(logits)
    visible_QK = torch.ones(w_QK.shape, dtype=torch.bool).tril(w_QK.shape[1] - w_QK.shape[0])
    return read_part(
        AttentionWeights(visible=visible_QK[None, None], logits=z_QK[None, None], weights=w_QK[None, None]), **options
    )


def test_by_hand() -> None:
    """Rows may have signs, sum to anything, or be empty; the row of one key does not count."""
    values = by_hand([[9.0, 0, 0, 0], [-0.3, 0.1, 0, 0], [0, 0, 0, 0], [0.1, 0.1, 0.1, 0.1]])
    assert values["concentration"].value == pytest.approx((0.75 + 0.0 + 0.25) / 3)
    assert values["largest_weight"].value == pytest.approx((0.3 + 0.0 + 0.1) / 3)
    assert values["weight_sum"].value == pytest.approx((0.4 + 0.0 + 0.4) / 3)
    assert values["concentration"].null == values["largest_weight"].null == pytest.approx((1 / 2 + 1 / 3 + 1 / 4) / 3)


def test_the_share_of_logits_beyond_is_of_visible_keys() -> None:
    """Of six visible keys: 50 itself is not beyond; what is not a number is."""
    logits = [[60.0, 99, 99], [-51.0, 50.0, 99], [0.0, -50.0, math.nan]]
    assert by_hand([[1.0, 0, 0], [1, 0, 0], [1, 0, 0]], logits)["logits_beyond"].value == pytest.approx(3 / 6)
    assert by_hand([[1.0, 0, 0], [1, 0, 0], [1, 0, 0]], logits, beyond=49.0)["logits_beyond"].value == 5 / 6


def test_weights_that_are_no_numbers_give_no_number() -> None:
    values = by_hand([[1.0, 0], [math.nan, 0.5]])
    assert all(math.isnan(values[name].value) for name in ("concentration", "largest_weight", "weight_sum"))


def test_one_key_alone_has_logits_and_nothing_to_concentrate() -> None:
    values = read(create(small(), init_seed=1), [AttentionConcentration()], tokens(create(small(), init_seed=1))[:, :2])
    assert {probe_value.probe for probe_value in values} == {"logits_beyond"}


def whole(model: Any, batch_BT: torch.Tensor) -> Iterator[tuple[Mixer, torch.Tensor, torch.Tensor]]:
    """Of each layer its mixer, and logits and weights of all queries at once."""
    for block, ((q, k, _, attention_mask, *_), _) in zip(
        model.blocks, trace(model, lambda block: block.attention.mixer, batch_BT), strict=True
    ):
        mixer = block.attention.mixer
        with torch.no_grad():
            yield mixer, mixer.logits(q, k, attention_mask), mixer.weights(q, k, attention_mask)


@pytest.mark.parametrize("name", sorted(MIXERS))
def test_as_computed_naively_for_every_mixer(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Row by row over whole matrices, while the probe sees them in chunks."""
    monkeypatch.setattr(Mixer, "smallest_chunk", 5)
    model = scramble(**copy.deepcopy(MIXERS[name]))
    batch_BT = tokens(model, 2)
    values = keyed(read(model, [AttentionConcentration(beyond=BOUND)], batch_BT))
    for layer, (mixer, logits_BMQK, weights_BHQK) in enumerate(whole(model, batch_BT)):
        heads, maps = weights_BHQK.shape[1], logits_BMQK.shape[1] // weights_BHQK.shape[1]
        assert heads == mixer.output_heads or "official" in name
        for head in range(heads):
            rows = [row[: i + 1].abs() for w_QK in weights_BHQK[:, head] for i, row in enumerate(w_QK) if i]
            shares = [float(row.max() / row.sum()) if row.sum() else 0.0 for row in rows]
            own = logits_BMQK[:, head * maps : (head + 1) * maps].flatten(0, 1)
            every = torch.cat([row[: i + 1] for z_QK in own for i, row in enumerate(z_QK)])
            expected = {
                "concentration": sum(shares) / len(shares),
                "largest_weight": sum(float(row.max()) for row in rows) / len(rows),
                "weight_sum": sum(float(row.sum()) for row in rows) / len(rows),
                "logits_beyond": float((every.abs() > BOUND).double().mean()),
            }
            for probe_value, value in expected.items():
                assert values[probe_value, layer, head].value == pytest.approx(value, rel=1e-9), (
                    probe_value,
                    layer,
                    head,
                )
            assert 0 < expected["logits_beyond"] < 1, "logits must be on both sides for this to test anything"


def _difference(mixer: Any, softmax: torch.Tensor) -> torch.Tensor:
    return softmax[:, ::2] - mixer.differential_lambda() * softmax[:, 1::2]


#: Mixer -> its weights from its logits, masked with -inf: what a logit is, said once more.
WEIGHTS: dict[str, Callable[[Any, torch.Tensor], torch.Tensor]] = {
    "softmax": lambda mixer, z: z.softmax(-1),
    "ssmax": lambda mixer, z: z.softmax(-1),
    "selective": lambda mixer, z: z.softmax(-1),
    "scaled_softmax": lambda mixer, z: z.softmax(-1),
    "softmax_cap": lambda mixer, z: torch.where(z.isneginf(), z, z.clamp(-mixer.cap, mixer.cap)).softmax(-1),
    "tanh_cap": lambda mixer, z: torch.where(z.isneginf(), z, mixer.cap * (z / mixer.cap).tanh()).softmax(-1),
    "sigmoid": lambda mixer, z: z.sigmoid() / (1 if mixer.bias is None else mixer.context),
    "softpick": lambda mixer, z: (z.softmax(-1) - 1 / z.isfinite().sum(-1, keepdim=True)).relu(),
    "differential": lambda mixer, z: _difference(mixer, z.softmax(-1)),
}  # fmt: skip
#: Readings whose weights are another function of the same logits.
OTHERWISE = ("'n': ", "'mask': 'after'", "'variant': 'masked_negative'", "{'name': 'softpick', 'variant': 'original'}")


@pytest.mark.parametrize("name", sorted(name for name in MIXERS if not any(part in name for part in OTHERWISE)))
def test_logits_are_what_weights_are_fingerprint(name: str) -> None:
    model = scramble(**copy.deepcopy(MIXERS[name]))
    weights_of = WEIGHTS[MIXERS[name].get("mixer", {"name": "softmax"})["name"]]
    for mixer, logits_BMQK, weights_BHQK in whole(model, tokens(model, 1)):
        hidden_QK = torch.ones(logits_BMQK.shape[-2:], dtype=torch.bool).triu(1)
        again = weights_of(mixer, logits_BMQK.masked_fill(hidden_QK, float("-inf")))
        torch.testing.assert_close(again, weights_BHQK, rtol=1e-9, atol=1e-12)


def test_uniform_attention_has_the_null() -> None:
    model = create(small(), init_seed=1)
    batch_BT = tokens(model)

    def with_queries(change: Callable[[torch.Tensor], torch.Tensor]) -> list[Any]:
        hooks = [
            block.attention.mixer.register_forward_pre_hook(lambda _, args: (change(args[0]), *args[1:]))
            for block in model.blocks
        ]
        values = read(model, [AttentionConcentration()], batch_BT)
        for hook in hooks:
            hook.remove()
        return [probe_value for probe_value in values if probe_value.probe == "concentration"]

    for probe_value in with_queries(torch.zeros_like):
        assert probe_value.value == pytest.approx(probe_value.null, rel=1e-6)
        assert probe_value.null == pytest.approx(sum(1 / i for i in range(2, 32)) / 30)
    for probe_value in with_queries(lambda q: 1e12 * q):
        assert probe_value.value == pytest.approx(1.0, abs=1e-6)


def test_a_cap_does_not_hide_what_it_clips() -> None:
    """The same weights with a cap and without one have the same logits in the first layer, and other attention."""
    shares, attention = [], []
    for mixer in ({"name": "softmax"}, {"name": "softmax_cap", "cap": 0.5}):
        model = scramble(mixer=mixer)
        values = keyed(read(model, [AttentionConcentration(beyond=0.5)], tokens(model)))
        shares.append([values["logits_beyond", 0, head].value for head in range(model.spec.heads)])
        attention.append([values["concentration", 0, head].value for head in range(model.spec.heads)])
    assert shares[0] == shares[1] and min(shares[0]) > 0.1
    assert all(capped < free for free, capped in zip(*attention, strict=True))


def test_scores_weigh_as_the_softmax_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a model in Hugging Face form is read through."""
    monkeypatch.setattr(_scores, "ROWS", 7)
    model = scramble()
    (q, k, _, attention_mask, *_), _ = trace(model, lambda block: block.attention.mixer, tokens(model, 1))[0]
    mixer, parts = (
        model.blocks[0].attention.mixer,
        list(AttentionScores(q, k, model.blocks[0].attention.mixer.scale).iterate_weights()),
    )
    assert len(parts) == 5 and [part.visible.sum() for part in parts[:2]] == [28, 77]
    for number, part in enumerate(parts):
        rows = attention_mask.rows(7 * number, 7 * number + part.weights.shape[2])
        inputs = (q[:, :, 7 * number : 7 * number + part.weights.shape[2]], k[:, :, : part.weights.shape[3]], rows)
        torch.testing.assert_close(part.weights, mixer.weights(*inputs))
        assert part.visible.equal(rows.mask_B1QK)


class Unweighed(Mixer):
    """A mixer of a kind that weighs no keys."""

    def forward(
        self, q: Any, k: Any, v: torch.Tensor, attention_mask: AttentionMask, cache: Any = None
    ) -> torch.Tensor:
        return v.repeat_interleave(q.shape[1] // v.shape[1], dim=1)


def test_a_mixer_without_weights_gives_no_values() -> None:
    model = create(small(), init_seed=1)
    for layer, block in enumerate(model.blocks):
        block.attention.mixer = Unweighed(model.spec, layer)
    assert read(model, [AttentionConcentration()], tokens(model)) == []


def test_no_matrix_of_all_queries_and_keys_is_made() -> None:
    """A quarter of the queries at a time."""
    model = create(small(layers=1, context=1025), init_seed=1)
    with Largest() as largest:
        read(model, [AttentionConcentration()], tokens(model, 1))
    assert largest.elements == model.spec.heads * 256 * 1024
