"""Export to the Hugging Face Llama format: the same logits, the same tokens."""

from __future__ import annotations

import json

import pytest
import torch

from plumbline.core.errors import PlumblineError
from plumbline.model.decoder import create
from plumbline.model.export.hf_export import export
from tests.model_specs import small

TEXT = "A plumb line hangs straight; a wall does not.\n\tNaïve café 12345 — twice twice.<|endoftext|>Next"


@pytest.fixture(scope="module")
def tokenizer_path(tmp_path_factory):
    """A byte-level BPE with one special token, as the data stage makes."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=["<|endoftext|>"], initial_alphabet=alphabet)
    tokenizer.train_from_iterator([TEXT] * 3, trainer)
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    tokenizer.save(str(path))
    return path


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"tied_embeddings": False, "projections": {"name": "grouped_query", "bias": True}},
        {"ffn": {"name": "swiglu", "bias": True}},
        {"head_width": 12, "positions": {"name": "rotary", "base": 500.0}, "norm_eps": 1e-3},
    ],
)
def test_same_logits(changed, tokenizer_path, tmp_path):
    transformers = pytest.importorskip("transformers")
    model = create(small(vocabulary=320, init_std=0.05, **changed), 0)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, value in model.named_parameters():
            if name.endswith(("gain", "bias")):
                value.uniform_(0.5, 1.5, generator=generator)
    export(model, tokenizer_path, tmp_path)
    theirs, report = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, output_loading_info=True)
    assert not report["missing_keys"] and not report["unexpected_keys"]
    tokens = torch.randint(0, 320, (2, 32), generator=generator)
    with torch.no_grad():
        torch.testing.assert_close(theirs(tokens).logits, model(tokens), rtol=1e-5, atol=1e-5)


def test_same_tokens(tokenizer_path, tmp_path):
    transformers = pytest.importorskip("transformers")
    from tokenizers import Tokenizer

    export(create(small(vocabulary=320), 0), tokenizer_path, tmp_path)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    ours = Tokenizer.from_file(str(tokenizer_path))
    ids = ours.encode(TEXT).ids
    assert theirs(TEXT)["input_ids"] == ids
    assert theirs.decode(ids) == TEXT
    assert theirs.eos_token_id == ours.token_to_id("<|endoftext|>")
    assert theirs.model_max_length == 32


def test_type_of_the_weights_is_kept(tokenizer_path, tmp_path):
    transformers = pytest.importorskip("transformers")
    export(create(small(vocabulary=320), 0).bfloat16(), tokenizer_path, tmp_path)
    assert transformers.AutoModelForCausalLM.from_pretrained(tmp_path).dtype == torch.bfloat16
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}


def test_names_every_component_that_llama_lacks(tokenizer_path, tmp_path):
    model = create(small(vocabulary=320, ffn={"name": "geglu"}, query_key={"name": "qk_norm"}), 0)
    with pytest.raises(PlumblineError) as raised:
        export(model, tokenizer_path, tmp_path / "out")
    assert "model.query_key 'qk_norm' (Llama has 'identity')" in str(raised.value)
    assert "model.ffn 'geglu' (Llama has 'swiglu')" in str(raised.value)
    assert not (tmp_path / "out").exists()


def test_another_models_tokenizer(tokenizer_path, tmp_path):
    with pytest.raises(PlumblineError, match=r"ids up to \d+, model\.vocabulary is 97"):
        export(create(small(), 0), tokenizer_path, tmp_path)
    with pytest.raises(PlumblineError, match="there is no tokenizer"):
        export(create(small(), 0), tmp_path / "absent.json", tmp_path)


def test_overwrites_an_export(tokenizer_path, tmp_path):
    for seed in (0, 1):
        export(create(small(vocabulary=320), seed), tokenizer_path, tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["vocab_size"] == 320
