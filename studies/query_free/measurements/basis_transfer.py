"""Runs Figure 2's experiment: an MLP with a skip fitted to one in another basis, and the best linear map next to it.

Source: query_free study, appendix 8.4. What is fitted to what: `theory.basis_transfer`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from typing import Annotated, Any, Literal

import pandas as pd
import torch
from msgspec import Meta, Struct

from plumbline.specs.spec import Count, Fraction, Positive, convert
from plumbline.specs.study_config import Study

from ..theory.basis_transfer import (
    FitSettings,
    TargetFunction,
    best_linear,
    draw_target,
    fit_mlp,
    fit_quality,
    inputs,
    ridge,
)

#: The targets, by what their arms' names end in: X is subtracted (Eq. 14), or left to Z (Eq. 13).
TARGETS = {"eq_14": "", "eq_13": "_eq_13"}

#: arm, step (None: it has none), quantity, value.
Row = tuple[str, int | None, str, float]


class BasisTransferConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of `measurements.basis_transfer` in the study's YAML, by preset.

    `widths` are the paper's h. `samples` held-out points are what everything is read on; `ridge_samples` points are
    what the linear map is fitted on, with strength `ridge`. `targets` are names of `TARGETS`. The others are those of
    `FitSettings`.
    """

    widths: Annotated[tuple[Count, ...], Meta(min_length=1)]
    seeds: Annotated[tuple[Annotated[int, Meta(ge=0)], ...], Meta(min_length=1)]
    steps: Count
    batch: Count
    learning_rate: Positive
    weight_decay: Fraction
    gradient_clip: Positive
    ridge: Fraction
    ridge_samples: Count
    samples: Count
    targets: Annotated[tuple[Literal["eq_14", "eq_13"], ...], Meta(min_length=1)]
    evaluations: Count = 10
    tf32: bool = False

    def __post_init__(self) -> None:
        for name in ("widths", "seeds", "targets"):
            values = getattr(self, name)
            if len(set(values)) < len(values):
                raise ValueError(f"`{name}` names one of {list(values)} twice")

    @property
    def fit(self) -> FitSettings:
        """How the MLP is fitted."""
        return FitSettings(
            steps=self.steps,
            batch=self.batch,
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            gradient_clip=self.gradient_clip,
            evaluations=min(self.evaluations, self.steps),
            tf32=self.tf32,
        )


def basis_transfer(study: Study, options: dict[str, Any], say: Callable[[str], None]) -> pd.DataFrame:
    """One row for each quantity that was read: h, seed, arm, step, quantity, value.

    Arms are mlp and linear, and mlp_eq_13 and linear_eq_13 of the target from which X is not subtracted.

    Quantities are those of `FitQuality`. The linear map has no step; beside what is read of it on the held-out points
    stand some with `exact_` before the name: those of the best linear map, by its closed form.

    Raises:
        PlumblineError: an option is unknown, missing or cannot be meant; the fit diverged.
    """
    where = f"studies/{study.name}/study.yaml: measurements.basis_transfer.{study.preset}"
    chosen: BasisTransferConfig = convert(BasisTransferConfig, options, where)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    rows: list[tuple[int, int, *Row]] = []
    for width, seed, name in itertools.product(chosen.widths, chosen.seeds, chosen.targets):
        target = draw_target(width, seed, device, subtracts_input=name == "eq_14")
        held_out = list(inputs(width, seed, "held out", device, samples=chosen.samples))
        for kind, step, quantity, value in itertools.chain(
            _linear(target, chosen, seed, held_out), _mlp(target, chosen, seed, held_out)
        ):
            arm = f"{kind}{TARGETS[name]}"
            rows.append((width, seed, arm, step, quantity, value))
            if quantity == "relative_l2":
                at = "" if step is None else f", step {step}/{chosen.steps}"
                say(f"h {width}, seed {seed}, {arm} on {device}{at}: relative L2 error {value:.4f}")
    frame = pd.DataFrame.from_records(rows, columns=["h", "seed", "arm", "step", "quantity", "value"])
    return frame.astype({"step": "Int64"})


def _linear(
    target: TargetFunction, chosen: BasisTransferConfig, seed: int, held_out: list[torch.Tensor]
) -> Iterator[Row]:
    points = inputs(target.width, seed, "ridge", held_out[0].device, samples=chosen.ridge_samples)
    map_DD = ridge(((x_ND, target(x_ND)) for x_ND in points), chosen.ridge)
    quality = asdict(fit_quality((x_ND.double() @ map_DD.T, target(x_ND)) for x_ND in held_out))
    yield from _rows("linear", None, quality.items())
    exact = best_linear(target)
    for name in ("relative_l2", "relative_l2_intercept", "cosine_population"):
        yield "linear", None, f"exact_{name}", getattr(exact, name)


def _mlp(target: TargetFunction, chosen: BasisTransferConfig, seed: int, held_out: list[torch.Tensor]) -> Iterator[Row]:
    for step, quality in fit_mlp(target, chosen.fit, seed, held_out):
        yield from _rows("mlp", step, asdict(quality).items())


def _rows(arm: str, step: int | None, quantities: Iterable[tuple[str, float]]) -> Iterator[Row]:
    return ((arm, step, quantity, value) for quantity, value in quantities)
