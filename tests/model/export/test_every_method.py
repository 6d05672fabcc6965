"""Every model of every study, loaded by transformers where Plumbline cannot be imported: the same logits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer, models
from torch.nn.functional import cross_entropy

from plumbline.core.files import canonical_json
from plumbline.model.decoder import Decoder, create
from plumbline.model.export import hf_export, write_export
from plumbline.specs import study_config
from plumbline.specs.spec import ModelSpec
from plumbline.specs.yaml_files import studies

VOCABULARY, LENGTH = 97, 12


def find_models() -> dict[str, ModelSpec]:
    """One run's name for each model that any study has at smoke, except for sizes, and its spec with fewer words."""
    specs: dict[str, ModelSpec] = {}
    names: dict[str, str] = {}
    for study in studies():
        for run in study_config.load(study, "smoke").runs.values():
            spec = run.spec.model
            same = canonical_json([spec.slots, spec.tied_embeddings, spec.heads == spec.key_value_heads])
            name = names.setdefault(same, run.key.rpartition("/")[0].replace("/", "-"))
            specs.setdefault(name, spec.resize(vocabulary=VOCABULARY, context=32, layers=3))
    return specs


MODELS = find_models()
OWN = [name for name, spec in MODELS.items() if hf_export.beyond_llama(spec)]
#: One whose state grows with its depth, which transformers itself writes once more before it is loaded.
SAVED_AGAIN = "transfer-base-attnres"
#: What looks at the length of a call, so that it bears neither padding nor a cache; and what only keeps no cache.
OF_LENGTHS = {
    f"transfer-base-{name}" for name in ("sigmoid_attn.sequence", "sigmoid_attn.original_sequence", "softpick.sequence")
}
UNCACHED = "transfer-base-selective_attn.original"


def cover_components() -> set[str]:
    """Those above, and as few others as hold every component of every slot."""
    components = {name: {(slot, choice["name"]) for slot, choice in MODELS[name].slots.items()} for name in OWN}
    cover = {SAVED_AGAIN, UNCACHED, *OF_LENGTHS}
    remaining = set().union(*components.values()).difference(*(components[name] for name in cover))
    while remaining:
        name = max(OWN, key=lambda each: len(components[each] & remaining))
        cover.add(name)
        remaining -= components[name]
    return cover


COVER = cover_components()


def lively(spec: ModelSpec) -> Decoder:
    """A model with every parameter off its start, so that nothing is switched off."""
    model, generator = create(spec, 0).eval(), torch.Generator().manual_seed(1)
    for value in model.parameters():
        value.data += 0.1 * torch.randn(value.shape, generator=generator)
    return model


def tokens() -> torch.Tensor:
    return torch.randint(VOCABULARY, (2, LENGTH), generator=torch.Generator().manual_seed(2))


def stream_before(model: Decoder, layer: int, tokens_BT: torch.Tensor) -> torch.Tensor:
    """What a layer is given."""
    streams: list[torch.Tensor] = []
    hook = model.blocks[layer].register_forward_pre_hook(lambda _, inputs: streams.append(inputs[0][0]))
    model(tokens_BT)
    hook.remove()
    return streams[0]


@pytest.fixture(scope="module")
def vocab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("words") / "tokenizer.json"
    tokenizer = Tokenizer(models.WordLevel({f"w{index}": index for index in range(90)}, unk_token="w0"))
    tokenizer.add_special_tokens(["<|endoftext|>"])
    tokenizer.save(str(path))
    return path


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory, vocab: Path) -> dict[str, torch.Tensor]:
    """What transformers computes of those that cover the others, loaded in one process."""
    return compute_outside(tmp_path_factory.mktemp("exported"), sorted(COVER), vocab)


@pytest.fixture(scope="module")
def others_outside(tmp_path_factory: pytest.TempPathFactory, vocab: Path) -> dict[str, torch.Tensor]:
    """What it computes of the others."""
    return compute_outside(tmp_path_factory.mktemp("exported"), sorted(set(OWN) - COVER), vocab)


def compute_outside(folders: Path, names: list[str], vocab: Path) -> dict[str, torch.Tensor]:
    for name in names:
        write_export.write_code(folders / name, lively(MODELS[name]), vocab)
    (folders / "models.json").write_text(json.dumps({name: name == SAVED_AGAIN for name in names}))
    (folders / "tokens.json").write_text(json.dumps(tokens().tolist()))
    command = [
        sys.executable,
        "-P",
        str(Path(__file__).with_name("load_without_plumbline.py")),
        str(folders),
        str(folders / "out"),
    ]
    environment = os.environ | {"HF_MODULES_CACHE": str(folders / "cache"), "HF_HUB_OFFLINE": "1"}
    process = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert process.returncode == 0, process.stderr[-3000:]
    return load_file(folders / "out")


@pytest.mark.parametrize("name", sorted(COVER))
def test_the_same_logits_loss_and_tokens(name: str, outside: dict[str, torch.Tensor]) -> None:
    check_what_is_computed(name, outside)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(OWN) - COVER))
def test_the_same_of_every_other_model(name: str, others_outside: dict[str, torch.Tensor]) -> None:
    check_what_is_computed(name, others_outside)


@torch.inference_mode()
def check_what_is_computed(name: str, outside: dict[str, torch.Tensor]) -> None:
    theirs = {key.removeprefix(f"{name}/"): value for key, value in outside.items() if key.startswith(f"{name}/")}
    model, tokens_BT = lively(MODELS[name]), tokens()
    logits_BTV = model(tokens_BT)
    assert torch.equal(theirs["logits"], logits_BTV)
    counted = torch.cat([logits_BTV[0, 2:-1], logits_BTV[1, :-1]])
    targets = torch.cat([tokens_BT[0, 3:], tokens_BT[1, 1:]])
    torch.testing.assert_close(theirs["loss"], cross_entropy(counted, targets))
    # Greedy, each token from a whole new reading.
    written_BT = tokens_BT[:, :5]
    for _ in range(4):
        written_BT = torch.cat([written_BT, model(written_BT)[:, -1:].argmax(dim=-1)], dim=1)
    assert torch.equal(theirs["written"], written_BT)
    if "recomputed" in theirs:
        assert torch.equal(theirs["recomputed"], written_BT)
        assert torch.equal(theirs["written_padded"][1:, 2:], theirs["written_short"])
    else:
        assert theirs["refused_cache"]
    assert torch.equal(theirs["from_embeddings"], logits_BTV) and torch.equal(theirs["weight"], model.embedding)
    assert theirs["refused_attentions"] and theirs["refused_size"]
    if model.residual.single_stream:
        hidden_LBTD = theirs["hidden"]
        assert len(hidden_LBTD) == model.spec.layers + 1
        assert torch.equal(model.logits(hidden_LBTD[-1]), logits_BTV), "the last is what the head reads"
        assert torch.equal(hidden_LBTD[0], stream_before(model, 0, tokens_BT))
        assert torch.equal(hidden_LBTD[-2], stream_before(model, model.spec.layers - 1, tokens_BT))
    else:
        assert theirs["refused_hidden"]
    if "padded" in theirs:
        size = logits_BTV.abs().max().item()
        torch.testing.assert_close(theirs["padded"], logits_BTV, rtol=0, atol=1e-5 * size)
    else:
        assert theirs["refused_padding"]


def test_a_search_over_continuations_gives_the_same_with_a_cache(outside: dict[str, torch.Tensor]) -> None:
    beams = outside[f"{SAVED_AGAIN}/beams"]
    assert torch.equal(beams, outside[f"{SAVED_AGAIN}/beams_recomputed"])


def test_a_mixer_of_the_whole_call_bears_no_cache_or_padding(outside: dict[str, torch.Tensor]) -> None:
    unpadded = {name for name in COVER if f"{name}/refused_padding" in outside}
    uncached = {name for name in COVER if f"{name}/refused_cache" in outside}
    assert (unpadded, uncached) == (OF_LENGTHS, {*OF_LENGTHS, UNCACHED})


@pytest.mark.slow
def test_every_other_model_bears_both(others_outside: dict[str, torch.Tensor]) -> None:
    assert not [key for key in others_outside if key.endswith(("/refused_padding", "/refused_cache"))]


@pytest.mark.parametrize("name", sorted(set(MODELS) - set(OWN)))
@torch.inference_mode()
def test_what_is_a_llama_is_one(name: str, vocab: Path, tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    model = lively(MODELS[name])
    hf_export.export(model, vocab, tmp_path)
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path)
    expected = model(tokens())
    torch.testing.assert_close(theirs(tokens()).logits, expected, rtol=0, atol=1e-5 * expected.abs().max().item())
