"""How numbers are computed: what torch would guard against by itself is seen here instead, once, not in each step."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.utils.deterministic

from plumbline.core.errors import PlumblineError
from plumbline.core.numeric_environment import list_recorded
from plumbline.evaluate.score_models import score
from plumbline.model.decoder import create
from plumbline.model.distributed import join_ranks
from plumbline.model.export.write_export import compare_logits
from plumbline.model.next_token_loss import ROWS
from plumbline.model.numerics import float32_error, numerics, require_float32
from plumbline.results.measurements.run_measurement import measure
from plumbline.specs import study_config
from plumbline.specs.spec import ModelSpec
from tests.golden.method_runs import tokens
from tests.model.transfer_methods import ALL, overlay
from tests.model_specs import run_spec
from tests.operator_calls import Calls
from tests.train.small_runs import read, settings, train


@pytest.fixture
def _as_in_training(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A CPU's numerics, without its settings of the allocator, which are the process's."""
    monkeypatch.setattr("plumbline.model.numerics.keep_memory", lambda: None)
    filled, mode = torch.utils.deterministic.fill_uninitialized_memory, torch.get_deterministic_debug_mode()
    numerics(torch.device("cpu"))
    yield
    torch.utils.deterministic.fill_uninitialized_memory = filled
    torch.set_deterministic_debug_mode(mode)


#: Five spans of queries where attention is made in spans, and two parts of the loss.
CONTEXT = 160


def loss_and_gradients(method: str) -> list[torch.Tensor]:
    """Of one batch."""
    spec = ModelSpec.from_dict(overlay(method) | {"context": CONTEXT})
    model = create(spec, init_seed=42)
    batch_BT = tokens(1, spec.vocabulary, CONTEXT)
    assert batch_BT[:, 1:].numel() > ROWS
    loss = model(batch_BT, loss=True)
    loss.backward()
    return [loss.detach(), *(value.grad for value in model.parameters() if value.grad is not None)]


@pytest.mark.usefixtures("_as_in_training")
def test_torch_would_fill_new_memory_with_nan():
    """That the next test could fail."""
    assert not torch.utils.deterministic.fill_uninitialized_memory
    torch.utils.deterministic.fill_uninitialized_memory = True
    assert torch.empty(3).isnan().all()


@pytest.mark.usefixtures("_as_in_training")
@pytest.mark.parametrize("method", ALL)
def test_no_step_reads_memory_that_nobody_wrote(method: str):
    unfilled = loss_and_gradients(method)
    torch.utils.deterministic.fill_uninitialized_memory = True
    filled = loss_and_gradients(method)
    assert len(unfilled) == len(filled) > 1
    assert all(value.isfinite().all() for value in filled)
    assert all(torch.equal(first, other) for first, other in zip(unfilled, filled, strict=True))


def test_the_embeddings_gradient_sorts_no_tokens():
    """A look-up's gradient in place of an index's, which a GPU makes by sorting; the same bits."""
    spec = ModelSpec.from_dict(overlay("baseline"))
    model, batch_BT = create(spec, init_seed=42), tokens(1, spec.vocabulary, spec.context)
    with Calls() as calls:
        hidden_BTD = model.hidden(batch_BT, model.context(batch_BT, None, None))
        gradient = torch.autograd.grad(hidden_BTD.square().sum(), model.embedding)[0]
    assert "embedding_dense_backward" in calls.names and not {"index_put", "_index_put_impl_"} & calls.names
    hidden_BTD = model.carried(model.embedding[batch_BT], model.context(batch_BT, None, None))
    assert torch.equal(gradient, torch.autograd.grad(hidden_BTD.square().sum(), model.embedding)[0])


def test_the_gradient_of_learned_positions_sorts_none():
    """As the embedding's; positions that come again in every sequence of the batch, and padding, get the same bits."""
    spec = ModelSpec.from_dict(overlay("baseline", positions={"name": "learned"}))
    model, batch_BT = create(spec, init_seed=42), tokens(1, spec.vocabulary, spec.context)
    learned, padding_BT = model.positions, torch.zeros_like(batch_BT, dtype=torch.bool)
    padding_BT[0, :3] = True
    context = model.context(batch_BT, padding_BT, None)
    x_BTD = torch.randn(*batch_BT.shape, spec.width)
    with Calls() as calls:
        found_BTD = learned.embed(x_BTD, context)
        gradient = torch.autograd.grad(found_BTD.square().sum(), learned.embedding)[0]
    assert "embedding_dense_backward" in calls.names and not {"index", "index_put", "_index_put_impl_"} & calls.names
    expected_BTD = x_BTD + learned.embedding[context.attention_mask.query_positions_BQ.clamp(min=0)]
    assert torch.equal(found_BTD, expected_BTD)
    assert torch.equal(gradient, torch.autograd.grad(expected_BTD.square().sum(), learned.embedding)[0])


@pytest.mark.parametrize(
    ("device", "before", "after"),
    [
        ("cpu", {}, {}),
        ("cuda", {}, {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}),
        ("auto", {}, {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}),
        ("cuda", {"PYTORCH_ALLOC_CONF": "backend:native"}, {"PYTORCH_ALLOC_CONF": "backend:native"}),
    ],
)
def test_a_gpus_memory_grows_by_segments_unless_it_is_configured(monkeypatch, device, before, after):
    """Before anything is asked of CUDA, which reads it once."""

    def read_variables() -> dict[str, str]:
        return {name: value for name, value in os.environ.items() if name.endswith("_ALLOC_CONF")}

    def check_variables() -> bool:
        assert read_variables() == after
        return True

    for name in read_variables():
        monkeypatch.delenv(name)
    for name in after:
        monkeypatch.setenv(name, "")  # so that it goes when the test ends
        monkeypatch.delenv(name)
    for name, value in before.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(torch.cuda, "is_available", check_variables)
    monkeypatch.setattr(torch.cuda, "set_device", lambda number: check_variables())
    with join_ranks(device):
        assert read_variables() == after


def test_a_product_is_probed_without_moving_any_random_state(monkeypatch: pytest.MonkeyPatch):
    before = torch.get_rng_state()
    error = float32_error(torch.device("cpu"))
    assert 0 < error < 5e-7 and torch.equal(torch.get_rng_state(), before)
    for narrow, size in ((torch.bfloat16, 3e-4), (torch.float16, 3e-5)):  # float16 and TF32 have as many bits

        def multiply_narrow(x_XI: torch.Tensor, y_OI: torch.Tensor, narrow: torch.dtype = narrow) -> torch.Tensor:
            return x_XI.to(narrow).float() @ y_OI.to(narrow).float().T

        for library in ("product", "_multiply_by_torch"):
            with monkeypatch.context() as patched:
                patched.setattr(f"plumbline.model.numerics.{library}", multiply_narrow)
                assert float32_error(torch.device("cpu")) > size
                with pytest.raises(PlumblineError, match=r"^float32.*products.*and start again$"):
                    require_float32(torch.device("cpu"))


def test_an_environment_that_narrows_products(packs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert train(run_spec(), settings(packs, tmp_path / "plain")) == 0
    manifest = read(tmp_path / "plain/out/manifest.json")
    assert 0 < manifest["float32_error"] < 5e-7 and manifest["environment"] == list_recorded()
    assert manifest["environment"]["OMP_NUM_THREADS"] == os.environ["OMP_NUM_THREADS"]
    monkeypatch.setenv("ONEDNN_DEFAULT_FPMATH_MODE", "BF16")
    for compute in (
        lambda: train(run_spec(), settings(packs, tmp_path / "narrow")),
        lambda: numerics(torch.device("cpu")),  # probes
        lambda: score(None, "name", None, "acc", "cpu"),
        lambda: compare_logits(tmp_path, None, code=False, absent=()),
        lambda: measure(study_config.load("quack", "demo"), "step_time", tmp_path / "step_time.parquet", print),
    ):
        with pytest.raises(PlumblineError, match="ONEDNN_DEFAULT_FPMATH_MODE=BF16 in the environment"):
            compute()
    assert not (tmp_path / "narrow/out").exists()
