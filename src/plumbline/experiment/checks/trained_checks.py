"""Checks causality again of finished runs, with the weights that they were trained to: a leak may open in training.

The whole model, at its trained context: in evaluation mode, and in training mode with gradients, in the precision that
it was trained in. One run of each arm and scale, that of the first seed that completed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from plumbline.core.errors import PlumblineError
from plumbline.core.run_files import REMEDY
from plumbline.experiment.checks import leaks
from plumbline.experiment.checks.leaks import TRAINED, Mode
from plumbline.model.decoder import Decoder
from plumbline.model.model_folder import load_weights
from plumbline.specs.own_methods_file import OwnMethodsFile
from plumbline.specs.spec import RunSpec

#: Rows of a batch: one pair, of a model of any size.
ROWS = 2


def leak(folder: Path, spec: RunSpec) -> str | None:
    """Look for a leak of a finished run's model; returns words, or None where there is none.

    Raises:
        PlumblineError: its weights cannot be read, or are not those of its spec.
    """
    model = Decoder(spec.model).eval()
    load_weights(model, folder / "model.safetensors", f"the spec of {spec.key}", REMEDY)
    for value in model.parameters():
        value.requires_grad_(False)  # only the gradient by the embedded tokens is asked for
    half = spec.train.precision != "float32"
    context = spec.model.context
    calls = [(mode, ROWS) for mode in dict.fromkeys((Mode(), TRAINED[False], TRAINED[half]))]
    shown = leaks.searched(model, calls, context)
    if shown is None:
        return None
    return f"{shown.check}: {leaks.smallest(model, calls, shown, 1, context).words}"


def causality(mine: OwnMethodsFile, work: Path, completed: Callable[[str, str], Sequence[str]]) -> dict[str, str]:
    """Look at one run of each arm and scale; returns words for the page, by scale and arm.

    `completed`: gives the runs of a scale and arm that did not diverge.

    Raises:
        PlumblineError: one has a leak, which is named with its run; or a run did not finish.
    """
    seen: dict[str, str] = {}
    scales = [mine.scale, *([mine.larger] if mine.larger else [])]
    for scale in scales:
        for arm in mine.compared:
            runs = [run for run in mine.runs(scale, arm) if run.key in completed(scale, arm)]
            if not runs:
                continue
            run = runs[0]
            words = leak(work / "runs" / run.key, run.spec)
            if words is not None:
                raise PlumblineError(
                    f"{mine.path}: {arm}: with the weights that it was trained to ({run.key}), {words}; it has no "
                    "verdict: what it gained may be the tokens that it was to predict"
                )
            seen[f"{scale}/{arm}"] = f"held at {run.spec.model.context:,} tokens ({run.key})"
    return seen
