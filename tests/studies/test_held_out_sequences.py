"""Of held-out sequences that an intervention reads no validation loss is computed, at any preset of any study."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from plumbline.model.decoder import Decoder, on_meta
from plumbline.specs import corpus, study_config
from plumbline.specs.spec import RunSpec
from plumbline.specs.yaml_files import PRESETS, studies
from plumbline.train import held_out_loss
from plumbline.train.batches.packs import restrict_validation
from plumbline.train.interventions import InterventionInputs, build
from tests.train.intervention_cases import Silent


class NotesRows:
    """A validation pack of so many sequences; notes which ones are read."""

    context = vocabulary = separator = None
    path = Path("validation.json")

    def __init__(self, sequences: int) -> None:
        self.sequences = sequences
        self.read: set[int] = set()

    def rows(self, indices: np.ndarray) -> np.ndarray:
        assert max(indices) < self.sequences
        self.read |= {int(index) for index in indices}
        return np.zeros((len(indices), 2), dtype=np.int64)


def of_the_loss(spec: RunSpec, sequences: int) -> set[int]:
    pack: Any = NotesRows(sequences)
    ranks = SimpleNamespace(rank=0, world=1, device=torch.device("cpu"), poll=lambda stop: None, sum=lambda one: one)
    model = SimpleNamespace(eval=lambda: None, train=lambda: None)
    parts: Any = SimpleNamespace(
        spec=spec, ranks=ranks, model=model, stop=None, validation=pack, batching=SimpleNamespace(micro_batch=100),
        forward=lambda tokens_BT, loss: torch.zeros(()),
    )  # fmt: skip
    held_out_loss.loss(parts)
    return pack.read


def of_interventions(spec: RunSpec, model: Decoder | None, sequences: int) -> set[int]:
    pack: Any = NotesRows(sequences)
    ranks: Any = SimpleNamespace(device=torch.device("cpu"))
    for hook in build(spec.interventions):
        if hook.held_out == "none":
            continue  # it is handed what refuses to be read
        limited_pack = restrict_validation(hook, pack, spec.train.validation_sequences)
        inputs = {"spec": spec, "model": model, "ranks": ranks, "progress": Silent()}
        hook.attach(InterventionInputs(validation=limited_pack, **inputs))
    return pack.read


@pytest.mark.parametrize(
    ("study", "preset"),
    [(study, preset) for study in studies() for preset in PRESETS if study_config.has_preset(study, preset)],
)
def test_interventions_read_no_sequence_of_the_validation_loss(study: str, preset: str) -> None:
    whole = study_config.load(study, preset)
    validation = corpus.load(whole.corpus, preset).validation
    assert validation is not None
    specs = [run.spec for run in whole.runs.values()]
    models = {
        str(run_spec.model): on_meta(run_spec.model)
        for run_spec in {str(run_spec.model): run_spec for run_spec in specs if run_spec.interventions}.values()
    }
    some_read = False
    for spec in {
        (str(run_spec.model), str(run_spec.interventions), run_spec.train): run_spec for run_spec in specs
    }.values():
        read, loss = of_interventions(spec, models.get(str(spec.model)), validation), of_the_loss(spec, validation)
        assert loss == set(range(spec.train.validation_sequences))
        assert not read & loss
        assert len(read) <= spec.sequences_apart, "what budgets leave out of the loss"
        some_read = some_read or bool(read)
    assert some_read == (study in ("premature", "quack"))
