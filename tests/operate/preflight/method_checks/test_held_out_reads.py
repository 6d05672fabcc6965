"""Leaks that no cut of an input shows: a few places, a few tokens, other seeds, tokens that were learned by heart."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from plumbline.data.loader import Pack, batch_indices
from plumbline.model import component, decoder
from plumbline.model.decoder import Decoder, create
from plumbline.model.mixers.softmax import Softmax
from plumbline.model.residual.standard import Standard
from plumbline.operate.preflight.method_checks import (
    checks_report,
    decoded_losses,
    finished_run_checks,
    leaks,
    trained_size_checks,
)
from plumbline.operate.preflight.method_checks.finished_run_checks import TrainedRun, describe_missing_gain
from plumbline.specs.spec import RunSpec
from tests.model_specs import run_spec, small
from tests.operate.preflight.method_checks.test_leaks import (
    SIZE,
    InTheProcessThatTrains,
    Leak,
    check_trained,
    tiny,
    trained,
    uses,
    works,
)

__all__ = ["trained", "uses", "works"]  # fixtures


class InAWindowAtTheTrainedWidth(Leak):
    """Leaks at places 51 to 61, where no input is cut, if its heads are as wide as those that are trained."""

    def opens(self, out: torch.Tensor) -> bool:
        return out.shape[2] > 61 and out.shape[-1] == 16

    def shown(self, following: torch.Tensor) -> torch.Tensor:
        part = torch.zeros_like(following)
        part[:, :, 51:62] = following[:, :, 51:62]
        return part


class AtOnePlaceOfTheTrainedContext(Standard):
    """Adds the embedding of the next token at one place of the trained context, as it is validated."""

    def start(self, x_BTD):
        return (x_BTD, x_BTD)

    def finish(self, state):
        x_BTD, embedded_BTD = state
        if self.training or x_BTD.shape[1] != 32:
            return x_BTD
        x_BTD = x_BTD.clone()
        x_BTD[:, 20] += 30 * embedded_BTD[:, 21]
        return x_BTD


def test_window_of_places_at_trained_width_is_refused(uses: Callable[[type], None]) -> None:
    uses(InAWindowAtTheTrainedWidth)
    whole = small(layers=6, width=64, heads=4, head_width=16, context=SIZE.context, vocabulary=1024)
    assert not set(range(52, 63)) & set(leaks.list_cuts(SIZE.context))
    assert trained_size_checks.run_checks(tiny(), SIZE) == {}
    failures = trained_size_checks.run_checks(tiny(), SIZE, [whole])
    assert f"{SIZE.rows} is predicted otherwise from {SIZE.context}" in failures["causality"]
    assert failures["causality"].endswith("with the 6 layers of the width 64 that are trained")


def test_one_place_of_the_trained_context(trained: Callable[[type], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    load: Any = component.load
    other = AtOnePlaceOfTheTrainedContext
    monkeypatch.setattr(component, "load", lambda slot, name: other if slot == "residual" else load(slot, name))
    leak = check_trained(trained(Softmax)).leak or ""
    assert leak.startswith("causality: read at once, 248 tokens ")
    assert "token 21" in leak


def test_losses_by_numpy_are_those_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    model = create(small(layers=1, context=16), 5).eval()
    tokens_BT = torch.randint(0, 97, (3, 16))
    logits_BTV = model(tokens_BT)[:, :-1].detach()
    expected = torch.nn.functional.cross_entropy(logits_BTV.mT, tokens_BT[:, 1:], reduction="none").numpy()
    monkeypatch.setattr(torch.nn.functional, "cross_entropy", lambda *_, **__: torch.zeros(()))
    assert np.allclose(decoded_losses.compute_losses_at_once(model, tokens_BT), expected, rtol=1e-5)
    decoded = decoded_losses.decode_losses(model, tokens_BT)
    assert decoded.places == tuple(range(1, 16)) and np.allclose(decoded.losses_BP, expected, rtol=1e-4)


def test_a_large_model_is_decoded_in_parts() -> None:
    sizes = decoded_losses.cut_into_parts(1024, 10**9)
    assert sum(sizes) == 1024 and len(sizes) == 20 and len(set(sizes)) > 5
    assert decoded_losses.cut_into_parts(128, 10**6) == [1] * 128


def test_every_run_has_its_loss_computed(trained: Callable[[type], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """What opens for other seeds than the first alone was in the gain, and not checked."""
    work = trained(InTheProcessThatTrains)
    spec = run_spec()
    honest, leaking = TrainedRun(folder=work / "honest", spec=spec), TrainedRun(folder=work / "out", spec=spec)
    shutil.copytree(leaking.folder, honest.folder)
    monkeypatch.setattr(InTheProcessThatTrains, "training_goes_on", False)
    model = Decoder(spec.model).eval()
    model.load_state_dict(load_file(honest.folder / "model.safetensors"))
    rows_BT = torch.from_numpy(Pack(finished_run_checks.locate_held_out_pack(work, spec)).rows(np.arange(10)))
    mean = decoded_losses.compute_losses_at_once(model, rows_BT).mean()
    outcome = json.loads((honest.folder / "outcome.json").read_text())
    (honest.folder / "outcome.json").write_text(json.dumps(outcome | {"validation_loss": float(mean)}))
    assert finished_run_checks.check_arm([honest], work, None).leak is None
    result = finished_run_checks.check_arm([honest, leaking], work, None)
    assert (result.leak or "").startswith("loss: the mean over all 10 sequences") and result.key == spec.key


def fit_rows(work: Path, spec: RunSpec, rows_BT: torch.Tensor, name: str) -> TrainedRun:
    """The run of `trained`, and then a few steps on some sequences."""
    model = Decoder(spec.model)
    weights = load_file(work / "out/model.safetensors")
    model.load_state_dict(weights)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(80):
        optimizer.zero_grad()
        (model(rows_BT, loss=True) / rows_BT[:, 1:].numel()).backward()
        optimizer.step()
    (work / name).mkdir()
    save_file(dict(model.state_dict()), work / name / "model.safetensors")
    return TrainedRun(folder=work / name, spec=spec)


def test_a_gain_on_the_sequences_of_the_loss_alone_is_refused(trained: Callable[[type], Path]) -> None:
    """Held-out tokens that an optimizer or an intervention trained on leave a loss that its weights do have."""
    work = trained(Softmax)
    spec = run_spec(train__validation_sequences=16)
    start = TrainedRun(folder=work / "out", spec=spec)
    held_out = Pack(finished_run_checks.locate_held_out_pack(work, spec))
    training = finished_run_checks.locate_training_pack(work, spec)
    training.parent.mkdir(parents=True)
    for file in ("train.json", "train.bin"):
        shutil.copy(held_out.path.parent / file, training.with_name(file))
    shutil.copy(training.with_name("train.json"), training)
    on_read = torch.from_numpy(Pack(training).rows(batch_indices(Pack(training), 0, 0, 96)))
    honest = finished_run_checks.check_gain_elsewhere([fit_rows(work, spec, on_read, "honest")], start, work)
    assert honest.leak is None
    assert " 24 held-out sequences " in honest.text and " 84 training sequences " in honest.text
    thief = fit_rows(work, spec, torch.from_numpy(held_out.rows(np.arange(16))), "thief")
    result = finished_run_checks.check_gain_elsewhere([thief], start, work)
    assert (result.leak or "").startswith(f"held-out tokens: its gain over {spec.key} is ")
    assert "on 16 sequences" in (result.leak or "")


def test_a_gain_elsewhere_is_chance_in_most_worlds() -> None:
    draw = np.random.default_rng(0)
    refused = sum(
        describe_missing_gain(draw.normal(0.02, 0.1, 64), draw.normal(0.02, 0.1, 64)) is not None for _ in range(2000)
    )
    assert refused <= 8, "one in a thousand at most by design, and only where the gain is half as large"
    assert describe_missing_gain(draw.normal(0.1, 0.02, 64), draw.normal(0.0, 0.02, 64)) is not None
    assert describe_missing_gain(draw.normal(0.1, 0.02, 8), draw.normal(0.0, 0.02, 64)) is None


def test_code_that_a_component_replaces_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    before = checks_report.list_functions()
    assert checks_report.describe_replaced(before) is None
    other: Any = lambda *_: None  # noqa: E731
    with monkeypatch.context() as patched:
        patched.setattr(decoder, "next_token_loss", other)
        assert "plumbline.model.decoder.next_token_loss is replaced" in (checks_report.describe_replaced(before) or "")
    with monkeypatch.context() as patched:
        patched.setattr(Decoder, "logits", other)
        assert "plumbline.model.decoder.Decoder.logits is replaced" in (checks_report.describe_replaced(before) or "")
    with monkeypatch.context() as patched:
        patched.setattr(torch.nn.functional, "cross_entropy", other)
        assert "torch.nn.functional.cross_entropy is replaced" in (checks_report.describe_replaced(before) or "")
    assert checks_report.describe_replaced(before) is None


def test_torchs_compiler_replaces_no_code_of_ours() -> None:
    """A component that mentions it imports it, and it replaces `torch.manual_seed`; a start of training does not."""
    code = """
        import sys
        import plumbline.train.pretrain
        assert "torch._dynamo" not in sys.modules
        from plumbline.operate.preflight.method_checks import checks_report
        before = checks_report.list_functions()
        import torch
        @torch.compiler.disable
        def step():
            pass
        print(checks_report.describe_replaced(before))
        """
    process = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True)
    assert process.stdout == "None\n", process.stderr
