"""Twenty steps of each of the transfer study's methods and of their other variants, on a CPU, on made-up tokens."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from plumbline.model.decoder import create
from plumbline.specs.spec import ModelSpec, OptimizerSpec, ScheduleSpec
from plumbline.train.learning_rate import make_schedule
from plumbline.train.run_optimizer import RunOptimizer
from tests.model.transfer_methods import overlay

FILE = Path(__file__).with_name("losses.json")

#: Losses are near 4; another CPU's order of summation (SSE, AVX2, AVX-512) moves them by up to 2e-6 in twenty steps.
TOLERANCE = 1e-5

#: Of what multiplies in bfloat16: a processor without such products rounds elsewhere, which moved its ten losses by
#: 9e-5. Attention in bfloat16 as well moves them by 2.4e-4, and everything in float32 by 5e-4.
#: Softpick as its authors define it divides e^z - 1 by the sum of its sizes. Scores start near 0, and what is left of
#: them there is rounded the most: another order of summation moves its losses by up to 6e-3 (next method: 4e-2).
TOLERANCES = {"precision.bfloat16_products": 1.5e-4, "precision.bfloat16_inputs": 1.5e-4, "softpick.original": 1e-2}

STEPS = 20
SEQUENCES = 4
OPTIMIZER = OptimizerSpec(
    name="adamw",
    learning_rate=3e-3,
    weight_decay=0.1,
    decay_embeddings=True,
    decay_norms=False,
    decay_scalars=False,
    gradient_clip=1.0,
    options={"beta1": 0.9, "beta2": 0.95, "eps": 1e-8},
)
SCHEDULE = ScheduleSpec(name="cosine", warmup_steps=4, options={"floor": 0.1})


def tokens(step: int, vocabulary: int, context: int) -> torch.Tensor:
    """A batch (B, T) to learn something from: each row repeats a random phrase of its own, with some noise."""
    generator = torch.Generator().manual_seed(step)
    phrase = torch.randint(0, vocabulary // 4, (SEQUENCES, context // 4), generator=generator)
    rows = phrase.repeat(1, 4)
    noise = torch.randint(0, vocabulary, rows.shape, generator=generator)
    return torch.where(torch.rand(rows.shape, generator=generator) < 0.1, noise, rows)


def losses(method: str) -> list[float]:
    """The training loss before each step."""
    spec = ModelSpec.from_dict(overlay(method))
    model = create(spec, init_seed=42)
    optimizer = RunOptimizer(model, model.parameter_roles, OPTIMIZER)
    share = make_schedule(SCHEDULE, STEPS)
    values = []
    for step in range(1, STEPS + 1):
        batch_BT = tokens(step, spec.vocabulary, spec.context)
        loss = model(batch_BT, loss=True) / batch_BT[:, 1:].numel()
        loss.backward()
        optimizer.clip()
        optimizer.step(step, OPTIMIZER.learning_rate * share(step))
        optimizer.zero_grad()
        values.append(round(loss.item(), 6))
    return values


def gap(first: list[float], other: list[float]) -> float:
    """The largest difference of two runs' losses."""
    return max(abs(a - b) for a, b in zip(first, other, strict=True))


def load_all() -> dict:
    """What is kept: the number of the numerics, the losses by method, and the numbers of `trainings`."""
    return json.loads(FILE.read_text(encoding="utf-8"))
