"""What the tests of interventions share: a small model with biases, and a window that 24 steps can hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from plumbline.model.decoder import create
from plumbline.model.distributed import RankGroup
from plumbline.model.roles import ParameterRole
from plumbline.specs.spec import RunSpec
from plumbline.train.interventions import Intervention, InterventionInputs, build
from tests.model_specs import BASELINE, RUN, run_spec

MODEL = BASELINE | {
    "layers": 4,
    "width": 32,
    "heads": 4,
    "ffn_width": 48,
    "projections": {"name": "grouped_query", "bias": True},
}
#: Of 24 steps: evaluations after 0, 2, 4 ... 12 steps, a window from 4 to 12, a ramp of 6 steps.
WINDOW = {"every": 1 / 12, "window_start": 1 / 6, "window_end": 0.5, "ramp": 0.25, "sequences": 4}
#: A score that always, and one that never, reaches 1.4 (or any) times its null.
ALWAYS, NEVER = {"threshold_over_null": 0.0}, {"threshold_over_null": 1e9}


def spec(*interventions: dict[str, Any], **overrides: Any) -> RunSpec:
    return run_spec(model=MODEL, interventions=list(interventions), **({"train__steps": 24} | overrides))


def slow(**options: Any) -> dict[str, Any]:
    return {"name": "slow_query_key"} | WINDOW | options


def weights(work: Path) -> dict[str, torch.Tensor]:
    return load_file(work / "out/model.safetensors")


def roles(run: RunSpec) -> dict[str, ParameterRole]:
    return create(run.model, 0).parameter_roles


def is_upper_query_or_key(role: ParameterRole) -> bool:
    return role.layer in (2, 3) and bool({role.role, role.owner} & {"query", "key"})


#: Sizes and slots of the kinds of projections, by what is special: every head its own keys, keys that two heads share,
#: and latent attention; the first two with biases.
MANY_HEADS = MODEL | {"layers": 2, "key_value_heads": 4}
SHARED_KEYS = MODEL | {"layers": 2, "key_value_heads": 2}
LATENT = MANY_HEADS | {"projections": {"name": "latent", "query_latent": 12, "key_value_latent": 10, "rotary_width": 4}}
KINDS = {"many_heads": MANY_HEADS, "shared_keys": SHARED_KEYS, "latent": LATENT}
ADAMW = RUN["optimizer"]
MUON = ADAMW | {"name": "muon", "learning_rate": 0.02, "matrices": "separate"}


class Silent:
    """Progress that nobody sees."""

    def say(self, text: str) -> None:
        """Drop it."""


def attach_hooks(chosen: RunSpec, model: torch.nn.Module, validation: Any = None) -> list[Intervention]:
    """The interventions of a spec on a bare model of one process."""
    hooks = build(chosen.interventions)
    ranks = RankGroup(rank=0, world=1, device=torch.device("cpu"))
    for hook in hooks:
        hook.attach(InterventionInputs(spec=chosen, model=model, ranks=ranks, validation=validation, progress=Silent()))
    return hooks


def parameter(model: torch.nn.Module, role: str, layer: int = 0) -> torch.nn.Parameter:
    """The one matrix of a role in a layer."""
    (name,) = (name for name, own in model.parameter_roles.items() if (own.role, own.layer) == (role, layer))
    return model.get_parameter(name)
