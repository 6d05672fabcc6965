"""Tries what the paper says without training: its theorems, and the scores that models start with.

Source: query_free study, sections 3 and 4, appendix 8. Theorems are tried by its folder `theory` on random weights;
scores are those of the first layer of models as the study's specs build them, at the paper's size.
"""

from __future__ import annotations

import json
from functools import cache

import msgspec
import numpy as np
import torch

from plumbline.core.files import canonical_json
from plumbline.model.decoder import create
from plumbline.specs import study_config
from plumbline.specs.spec import ModelSpec
from plumbline.specs.study_config import Study

from .run_values import BASELINE, find_spec
from .theory import initial_scores, norm_semiconjugacy, query_elimination_checks, skip_absorption
from .theory.initial_scores import InitialScoreSd
from .theory.theorem_check import TheoremCheck

#: Draws whose mean is taken: a printed digit of a standard deviation needs more than one.
DRAWS = 8

#: Tokens of a drawn sequence, and entries of the vocabulary that it is drawn from.
TOKENS = 64


@cache
def load_paper(study: str) -> Study:
    """The study at the paper's own size."""
    return study_config.load(study, "paper")


def find_model(study: str, method: str = BASELINE) -> ModelSpec:
    """A method's model at the paper's size."""
    return find_spec(load_paper(study), method).model


@cache
def theorems() -> dict[str, TheoremCheck]:
    """Every statement that is tried, in the paper's order, by its short name."""
    checks = [
        *query_elimination_checks.query_elimination_checks(),
        *norm_semiconjugacy.checks(),
        *skip_absorption.checks(),
    ]
    return {check.id: check for check in checks}


def by_formula(model: ModelSpec, length: float = 1.0) -> InitialScoreSd:
    """Standard deviations of appendix 8.2 for inputs of a length, not yet divided by sqrt(d_k)."""
    return initial_scores.expect_spread(width=model.width, heads=model.heads, init_std=model.init_std, length=length)


@cache
def _mean_spread(width: int, heads: int, init_std: float) -> InitialScoreSd:
    sizes = {"width": width, "heads": heads, "init_std": init_std, "length": 1.0}
    spreads = [initial_scores.measure_spread(**sizes, seed=seed) for seed in range(DRAWS)]
    standard, reduced = ([getattr(spread, name) for spread in spreads] for name in ("standard", "reduced"))
    return InitialScoreSd(standard=float(np.mean(standard)), reduced=float(np.mean(reduced)))


def draw_spread(model: ModelSpec, length: float = 1.0) -> InitialScoreSd:
    """The same of drawn weights and inputs, the mean of several draws. (Scores go by the square of the length.)"""
    return _mean_spread(model.width, model.heads, model.init_std).divide(1 / length**2)


def first_scores(model: ModelSpec, seed: int = 0) -> torch.Tensor:
    """Scores (B, H, Q, K) with which a model's first layer starts, before any mask, on a drawn sequence."""
    small = msgspec.structs.replace(model, layers=1, ffn_width=1, vocabulary=TOKENS, context=TOKENS)
    decoder = create(small, seed)
    scores: list[torch.Tensor] = []

    def note(mixer: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
        scores.append(mixer.scores(inputs[0], inputs[1]))

    decoder.blocks[0].attention.mixer.register_forward_pre_hook(note)
    with torch.no_grad():
        decoder(torch.randperm(TOKENS, generator=torch.Generator().manual_seed(seed))[None])
    return scores[0]


@cache
def _first_spread(model: str) -> float:
    spec = ModelSpec.from_dict(json.loads(model))
    return float(np.mean([float(first_scores(spec, seed).std()) for seed in range(DRAWS)]))


def first_spread(model: ModelSpec) -> float:
    """The standard deviation of a model's first scores over heads and pairs of tokens, the mean of several draws."""
    return _first_spread(canonical_json(model.to_dict()))
