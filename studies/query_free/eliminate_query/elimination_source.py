"""Opens the model whose W_Q is to be taken out: a run of ours, one of its probe points, a model of ours, or a GPT-2."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from plumbline.core.errors import PlumblineError
from plumbline.core.run_files import POINTS, POINTS_INDEX, TOKENIZER, read_points_index, require_unchanged_export
from plumbline.model import model_folder
from plumbline.model.decoder import Decoder
from plumbline.model.finished_run import FinishedRun
from plumbline.specs.spec import ModelSpec, Precision, RunSpec, require_present_code

from .equal_logits import Logits, at_precision, in_double


@dataclass(frozen=True, kw_only=True, slots=True)
class OriginalModel:
    """The model as it was: its decoder in this package's terms, and its own logits, in float64 and at its precision.

    The logits of a GPT-2 are the library's, so that what is shown equal is what the library computes.
    """

    decoder: Decoder
    in_double: Logits
    as_used: Logits


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckpointOfKnownArchitecture:
    """A checkpoint of known architecture, whose model `open` loads. `run` and `outcome` are None unless it is a run.

    `trained_on`: what the run's manifest says of its tokenizer and training pack.
    """

    path: Path
    kind: str
    spec: ModelSpec
    precision: Precision
    open: Callable[[], OriginalModel]
    run: RunSpec | None = None
    outcome: dict[str, Any] | None = None
    trained_on: dict[str, Any] = field(default_factory=dict)


def open_source(path: Path) -> CheckpointOfKnownArchitecture:
    """Open a checkpoint by its folder, or by the file of a run's probe point.

    Raises:
        PlumblineError: it is neither, or something in it is not what it should be.
    """
    if path.is_file() and path.parent.name == POINTS:
        return _point(path)
    if (path / "manifest.json").is_file():
        run = _run(path)
        return _of_run(path, run, _outcome(path), run.model)
    if (path / model_folder.SPEC).is_file():
        decoder = model_folder.read_model(path)
        return CheckpointOfKnownArchitecture(
            path=path,
            kind="a model of this package",
            spec=decoder.spec,
            precision="float32",
            open=lambda: _ours(decoder, "float32"),
        )
    if (path / "config.json").is_file():
        return _hugging_face(path)
    raise PlumblineError(
        f"{path} holds neither manifest.json (a run of ours), {model_folder.SPEC} (a model of ours) nor config.json (a "
        f"model in Hugging Face form), and is no file of a run's {POINTS}/"
    )


def _run(folder: Path) -> FinishedRun:
    run = FinishedRun.read(folder)
    require_present_code(run.spec)
    return run


def _outcome(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "outcome.json").read_text(encoding="utf-8"))


def _of_run(
    path: Path, run: FinishedRun, outcome: dict[str, Any], load: Callable[[], Decoder]
) -> CheckpointOfKnownArchitecture:
    return CheckpointOfKnownArchitecture(
        path=path,
        kind="a run of this package",
        spec=run.spec.model,
        precision=run.spec.train.precision,
        open=lambda: _ours(load(), run.spec.train.precision),
        run=run.spec,
        outcome=outcome,
        trained_on={key: run.manifest[key] for key in (TOKENIZER, "data_fingerprint") if key in run.manifest},
    )


def _point(path: Path) -> CheckpointOfKnownArchitecture:
    """A file of weights in the folder of points of a finished run, which its index names with its checksum."""
    from plumbline.evaluate.probes._offline import load_point

    folder = path.parent.parent
    run = _run(folder)
    run.require_file(f"{POINTS}/{POINTS_INDEX}")
    entries = [entry for entry in read_points_index(folder)["points"] if entry["file"] == path.name]
    if not entries:
        raise PlumblineError(f"{path} is not in the index of probe points next to it; give a file that it names")
    entry = entries[0]

    def load() -> Decoder:
        decoder = Decoder(run.spec.model)
        load_point(decoder, folder, entry["file"], entry["sha256"])
        return decoder.float()

    return _of_run(path, run, _outcome(folder) | {"weights_step": entry["step"]}, load)


def _ours(decoder: Decoder, precision: Precision) -> OriginalModel:
    return OriginalModel(decoder=decoder, in_double=in_double(decoder), as_used=at_precision(decoder, precision))


def _hugging_face(folder: Path) -> CheckpointOfKnownArchitecture:
    from transformers.utils import logging

    from plumbline.evaluate.probes import _transformers
    from plumbline.model.hf_import import CONVERTERS, spec_of

    logging.disable_progress_bar()  # of no use in a log
    require_unchanged_export(folder)
    config = _transformers.read_config(folder)

    def load() -> OriginalModel:
        convert = CONVERTERS.get(config.model_type)
        if convert is None:
            raise PlumblineError(
                f"{folder}: weights are converted from {sorted(CONVERTERS)} alone, not from {config.model_type!r}"
            )
        theirs = _transformers.load(folder).module
        double = copy.deepcopy(theirs).double()
        return OriginalModel(decoder=convert(theirs), in_double=_library(double), as_used=_library(theirs))

    return CheckpointOfKnownArchitecture(
        path=folder, kind=config.model_type, spec=spec_of(config), precision="float32", open=load
    )


def _library(model: torch.nn.Module) -> Logits:
    model.eval()
    return lambda tokens_BT: model(input_ids=tokens_BT, use_cache=False).logits
