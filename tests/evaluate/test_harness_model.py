"""The adapter against one-request-at-a-time arithmetic."""

from __future__ import annotations

import pytest
import torch
from lm_eval.api.instance import Instance
from tokenizers import Tokenizer, models

from plumbline.core.errors import PlumblineError
from plumbline.evaluate.harness_model import CheckpointLM
from plumbline.model.decoder import Decoder, create

from .conftest import VOCABULARY, prose, spec

CONTEXT = 64


@pytest.fixture(scope="module")
def decoder() -> Decoder:
    model = create(spec().model, 1).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(10)
    return model


@pytest.fixture
def model(decoder: Decoder, tokenizer: Tokenizer) -> CheckpointLM:
    return CheckpointLM(decoder, tokenizer, context=CONTEXT, batch_tokens=200)


def requests(*pairs: tuple[str, ...]) -> list[Instance]:
    kind = "loglikelihood" if len(pairs[0]) == 2 else "loglikelihood_rolling"
    return [Instance(kind, {}, pair, index) for index, pair in enumerate(pairs)]


@torch.no_grad()
def naive(decoder: Decoder, context: list[int], continuation: list[int]) -> tuple[float, bool]:
    """The definition: one sequence, no padding, the last tokens' log-probabilities."""
    tokens = torch.tensor([(context + continuation)[-(CONTEXT + 1) :]])
    logprobs = decoder(tokens[:, :-1]).log_softmax(-1)[0, -len(continuation) :]
    targets = tokens[0, -len(continuation) :]
    return float(logprobs.gather(1, targets[:, None]).sum()), bool((logprobs.argmax(-1) == targets).all())


def encode_pair(model: CheckpointLM, context: str, answer: str) -> tuple[list[int], list[int]]:
    """Tokens of a context, and those that follow them in the whole text."""
    first, whole = model.tok_encode(context), model.tok_encode(context + answer)
    return first, whole[len(first) :]


def test_batched_padded_and_shared_equals_one_at_a_time(model: CheckpointLM, decoder: Decoder):
    words = prose(2)[0].split(" ")
    pairs = [(" ".join(words[:n]), " " + " ".join(words[n : n + m])) for n in (1, 3, 9, 20, 60) for m in (1, 2, 7)]
    pairs += [("Answer:", f" {letter}") for letter in "ABCD"]  # one context, four answers of one token
    scored = model.loglikelihood(requests(*pairs))
    for (context, continuation), (logprob, greedy) in zip(pairs, scored):
        expected = naive(decoder, *encode_pair(model, context, continuation))
        assert logprob == pytest.approx(expected[0], abs=2e-4)
        assert greedy == expected[1]
    assert model.truncated == 3


def test_the_size_of_a_batch_changes_nothing(decoder: Decoder, tokenizer: Tokenizer):
    pairs = [("a b", " " + word) for word in prose(1)[0].split(" ")[:20]]
    small, large = (
        CheckpointLM(decoder, tokenizer, context=CONTEXT, batch_tokens=size).loglikelihood(requests(*pairs))
        for size in (1, 10_000)
    )
    assert [value for value, _ in small] == pytest.approx([value for value, _ in large], abs=1e-4)


def test_an_answer_without_a_token_is_refused(model: CheckpointLM):
    """It would be certain, and so be chosen."""
    with pytest.raises(PlumblineError, match="'a' and '' together"):
        model.loglikelihood(requests(("a", "")))


def test_greedy_is_the_likeliest(model: CheckpointLM, decoder: Decoder, tokenizer: Tokenizer) -> None:
    for context in prose(1)[0].split(" ")[:20]:
        logits_V = decoder(torch.tensor([model.tok_encode(context)]))[0, -1, :VOCABULARY]
        best, worst = (tokenizer.decode([int(token)]) for token in (logits_V.argmax(), logits_V.argmin()))
        if all(len(encode_pair(model, context, answer)[1]) == 1 for answer in (best, worst)):
            break  # both are an answer of one token here
    else:
        pytest.fail("no context has such answers")
    (_, right), (_, wrong) = model.loglikelihood(requests((context, best), (context, worst)))
    assert right
    assert not wrong


@pytest.mark.parametrize(("context", "scored"), [("", "harbour"), ("  ", "  harbour")])
def test_an_empty_context_is_the_end_of_text_token(model: CheckpointLM, decoder: Decoder, context: str, scored: str):
    """And one of blanks, which the harness takes for a part of the answer."""
    ((logprob, _),) = model.loglikelihood(requests((context, "harbour")))
    assert logprob == pytest.approx(naive(decoder, [model.eot_token_id], model.tok_encode(scored))[0], abs=2e-4)


def test_overlong_continuation_is_scored_whole_each_token_once(model: CheckpointLM, decoder: Decoder):
    first_word, *words = prose(1)[0].split(" ")
    texts = first_word, " " + " ".join(words[:65])
    context, continuation = encode_pair(model, *texts)
    assert CONTEXT < len(continuation) <= 2 * CONTEXT
    ((logprob, _),) = model.loglikelihood(requests(texts))
    first = naive(decoder, context[-1:], continuation[:CONTEXT])[0]
    rest = naive(decoder, continuation[:CONTEXT], continuation[CONTEXT:])[0]
    assert logprob == pytest.approx(first + rest, abs=5e-4)


def test_rolling_scores_every_token_of_a_text(model: CheckpointLM, decoder: Decoder):
    text = "harbour lantern meadow"
    (value,) = model.loglikelihood_rolling(requests((text,)))
    assert value == pytest.approx(naive(decoder, [model.eot_token_id], model.tok_encode(text))[0], abs=2e-4)


def test_generation_and_tokenizers_without_end_are_refused(model: CheckpointLM, decoder: Decoder):
    with pytest.raises(PlumblineError, match="generate"):
        model.generate_until([])
    with pytest.raises(PlumblineError, match="tokenizer has none of"):
        CheckpointLM(decoder, Tokenizer(models.BPE()), context=CONTEXT)


def test_the_end_of_documents_may_be_another_entry(decoder: Decoder, tokenizer: Tokenizer):
    """Of token files: the one that stood between the documents that the model read."""
    model = CheckpointLM(decoder, tokenizer, context=CONTEXT, document_end=7)
    ((logprob, _),) = model.loglikelihood(requests(("", "harbour")))
    assert logprob == pytest.approx(naive(decoder, [7], model.tok_encode("harbour"))[0], abs=2e-4)
    assert CheckpointLM(decoder, Tokenizer(models.BPE()), context=CONTEXT, document_end=7).eot_token_id == 7
