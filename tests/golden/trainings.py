"""Short trainings for what is not a slot of the model: optimizers, schedules, interventions, and probes that read while
a run trains. On a CPU, on the tokens of the other golden runs, with the trainer's own parts.

In addition to the loss they keep what interventions and probes read: of those that change nothing it is all there is.
"""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from plumbline.evaluate.probes import read_all
from plumbline.model.decoder import Decoder, create
from plumbline.model.distributed import RankGroup
from plumbline.model.numerics import autocast
from plumbline.specs.spec import RunSpec
from plumbline.train.interventions import Intervention, InterventionInputs, build
from plumbline.train.interventions.qk_clip import CLIPPED
from plumbline.train.learning_rate import make_schedule
from plumbline.train.monitoring.run_metrics import OnlineProbes
from plumbline.train.run_optimizer import RunOptimizer
from tests.golden.method_runs import SEQUENCES, tokens
from tests.model_specs import BASELINE, RUN, run_spec

#: What a training keeps: name -> numbers, to six digits, in the order in which they came.
Curves = dict[str, list[float]]
LOSS = "training loss"

STEPS = 10

#: A probe value that is a count, which on another CPU may differ by a whole one; what is counted is in the losses.
COUNTS = {CLIPPED}

#: Weights start large enough for attention to be sharp: what acts on queries and keys is then felt in ten steps.
SMALL: dict[str, Any] = BASELINE | {"width": 32, "heads": 4, "ffn_width": 48, "init_std": 0.2}
LATENT: dict[str, Any] = SMALL | {
    "key_value_heads": 4,
    "projections": {"name": "latent", "query_latent": 12, "key_value_latent": 10, "rotary_width": 4},
}
FEW: dict[str, Any] = RUN["train"] | {"steps": STEPS, "batch_tokens": SEQUENCES * SMALL["context"]}
MUON: dict[str, Any] = RUN["optimizer"] | {"name": "muon", "learning_rate": 0.02, "adamw_learning_rate_ratio": 0.15}
KEY_NORMS: dict[str, Any] = MUON | {"coefficients": "polar_express", "decay_matrices": False, "gradient_clip": 0.0}
#: Scores after 0, 1 ... 5 steps, a window from 2 to 5, a ramp of 3 steps.
WINDOW = {"every": 0.1, "window_start": 0.2, "window_end": 0.5, "ramp": 0.3, "sequences": 2}


def _intervention(name: str, **options: Any) -> dict[str, Any]:
    return {"interventions": [{"name": name, **options}]}


def _probe(name: str, **options: Any) -> dict[str, Any]:
    return {"probes": [{"name": name, "every": STEPS // 2, "sequences": 2, **options}]}


#: Training -> what it changes of the small run: options as in the studies, and some of the others once.
TRAININGS: dict[str, dict[str, Any]] = {
    "optimizer.muon": {"optimizer": MUON},
    "optimizer.muon.key_norms": {"optimizer": KEY_NORMS, "schedule": {"name": "constant", "warmup_steps": 0}},
    "optimizer.muon.moonlight": {
        "optimizer": MUON | {"matrices": "separate", "scale": "match_rms_adamw", "nesterov": False}
    },
    "precision.bfloat16_inputs": {
        "model": SMALL | {"init_std": 0.02}, "train": FEW | {"precision": "bfloat16_inputs"}
    },
    "precision.bfloat16_products": {
        "model": SMALL | {"init_std": 0.02}, "train": FEW | {"precision": "bfloat16_products"}
    },
    "schedule.constant": {"schedule": {"name": "constant", "warmup_steps": 3}},
    "intervention.none": _intervention("none"),
    "intervention.freeze": _intervention("freeze", role="norm"),
    "intervention.query_key_rate": _intervention("query_key_rate", tau=0.5),
    "intervention.learning_rate_factor": _intervention("learning_rate_factor", factor=0.5),
    "intervention.learning_rate_factor.released": _intervention(
        "learning_rate_factor", factor=0.5, scale_weight_decay=False, release="fixed", release_at=0.3, ramp=0.3
    ),
    "intervention.slow_query_key": _intervention("slow_query_key", threshold_over_null=0.0, **WINDOW),
    "intervention.slow_query_key.forced": _intervention(
        "slow_query_key", threshold_over_null=1e9, half="all", **WINDOW
    ),
    "intervention.slow_query_key.fixed": _intervention("slow_query_key", release="fixed", release_at=0.3, ramp=0.3),
    "intervention.entropy_floor": _intervention(
        "entropy_floor", floor=0.9, weight=0.5, after_release="ramp", **WINDOW
    ),
    "intervention.entropy_floor.off": _intervention(
        "entropy_floor", floor=0.9, weight=0.5, after_release="off", **WINDOW
    ),
    "intervention.qk_clip": _intervention("qk_clip", threshold=1.0),
    "intervention.qk_clip.latent": {"model": LATENT, **_intervention("qk_clip", threshold=0.3)},
    "intervention.quack": {
        "optimizer": MUON | {"matrices": "separate"}, **_intervention("quack", tau=0.5, largest_ratio=1.1)
    },
    "intervention.quack.latent": {"model": LATENT, **_intervention("quack", norm="spectral")},
    "intervention.logit_change": _intervention("logit_change", every=5, sequences=2),
    "probe.attention_statistics": _probe("attention_statistics"),
    "probe.attention_concentration": _probe("attention_concentration", beyond=1.0),
    "probe.bilinear": _probe("bilinear"),
    "probe.ffn_write": _probe("ffn_write"),
    "probe.lower_copy": _probe("lower_copy"),
    "probe.query_key_norms": _probe("query_key_norms"),
    "probe.upper_ablation": _probe("upper_ablation"),
}  # fmt: skip


def spec(training: str) -> RunSpec:
    """The run that a training is of."""
    return run_spec(**({"model": SMALL, "train": FEW} | TRAININGS[training]))


def curves(training: str) -> Curves:
    """The loss before each step, and what interventions and probes read and report."""
    run = spec(training)
    model = create(run.model, run.init_seed)
    hooks = _attach_hooks(run, model)
    optimizer = RunOptimizer(model, model.parameter_roles, run.optimizer, hooks)
    online = OnlineProbes(run)
    share = make_schedule(run.schedule, STEPS)
    result: Curves = {LOSS: []}
    for step in range(1, STEPS + 1):
        for hook in hooks:
            hook.begin(step)
        batch_BT = tokens(step, run.model.vocabulary, run.model.context)
        with autocast(run.train.precision, batch_BT.device):
            loss = model(batch_BT, loss=True) / batch_BT[:, 1:].numel()
        extra = [term for hook in hooks if (term := hook.extra_loss(step, batch_BT)) is not None]
        sum(extra, loss).backward()
        optimizer.clip()
        optimizer.step(step, run.optimizer.learning_rate * share(step))
        optimizer.zero_grad()
        for hook in hooks:
            hook.end(step)
        result[LOSS].append(loss.item())
        for probe_value in read_all(
            model, online.list_due(step), _draw_validation(run), "float32", init_seed=run.init_seed
        ):
            result.setdefault(probe_value.probe, []).append(probe_value.value)
    for _, name, value, _ in (probe_value for hook in hooks for probe_value in hook.measurements()):
        if name not in COUNTS:
            result.setdefault(name, []).append(value)
    assert all(math.isfinite(value) for values in result.values() for value in values), training
    return {name: [round(value, 6) for value in values] for name, values in result.items()}


def apart(first: Curves, other: Curves) -> float:
    """The largest difference of two trainings' numbers, of those above 1 in parts of themselves; infinite where they do
    not keep the same ones."""
    if {name: len(values) for name, values in first.items()} != {name: len(values) for name, values in other.items()}:
        return math.inf
    pairs = [pair for name, values in first.items() for pair in zip(values, other[name], strict=True)]
    return max(abs(a - b) / max(1.0, abs(b)) for a, b in pairs)


def _attach_hooks(run: RunSpec, model: Decoder) -> list[Intervention]:
    hooks = build(run.interventions)
    ranks = RankGroup(rank=0, world=1, device=torch.device("cpu"))
    rows_BT = _draw_validation(run).numpy()
    # As much of a pack and of a run's progress as interventions use.
    pack: Any = SimpleNamespace(
        sequences=len(rows_BT), separator=None, path="made up", rows=lambda indices: rows_BT[np.asarray(indices)]
    )
    silent: Any = SimpleNamespace(say=lambda text: None, event=lambda *args, **details: None)
    for hook in hooks:
        hook.attach(InterventionInputs(spec=run, model=model, ranks=ranks, validation=pack, progress=silent))
    return hooks


def _draw_validation(run: RunSpec) -> torch.Tensor:
    """Sequences (B, T) that are not trained on."""
    return tokens(0, run.model.vocabulary, run.model.context)
