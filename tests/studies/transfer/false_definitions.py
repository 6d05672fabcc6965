"""Code, sizes and printed numbers of which one thing that the paper states without training is false; or is so where
the paper's own numbers contradict each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from plumbline.model.mixers._base import masked_softmax
from plumbline.model.mixers.softpick import Softpick
from plumbline.model.residual.hyper_connections import HyperConnections
from plumbline.model.roles import ConstantInit, NormalInit, ParameterRole
from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.specs.study_config import Study
from plumbline.studies.transfer.claims import sizes_and_definitions
from tests.studies.transfer.synthetic_results import PUBLISHED

Patch = Callable[[pytest.MonkeyPatch], object]

#: What claims of this kind read of modules at paper size, and of the real ones: to build others for each statement
#: would take a minute.
REAL: dict[str, Any] = {
    name: getattr(sizes_and_definitions, name)
    for name in ("table4_cell", "parameter_roles", "find_model", "build_decoder")
}


def instead(name: str, function: Callable[..., Any]) -> Patch:
    """Another function in its place."""
    return lambda monkeypatch: monkeypatch.setattr(sizes_and_definitions, name, function)


def cells(method: str, **values: float) -> Patch:
    """Other numbers in a method's row of Table 4."""

    def cell(e, of: str, column: str) -> Any:
        return values[column] if of == method and column in values else REAL["table4_cell"](e, of, column)

    return instead("table4_cell", cell)


def one_more(method: str, role: str, layer: int) -> Patch:
    """A method has one more parameter."""
    more = ParameterRole(role=role, layer=layer, init=ConstantInit(value=0.5))
    return instead(
        "parameter_roles", lambda e, of: REAL["parameter_roles"](e, of) | ({"more": more} if of == method else {})
    )


def constants(*values: float) -> Patch:
    """What a method adds starts elsewhere."""
    return instead("list_start_constants", lambda e, method: list(values))


def _twice_the_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    def cell(e, method: str, column: str) -> Any:
        return REAL["table4_cell"](e, method, column) * (2 if column == "step_flops_counted" else 1)

    monkeypatch.setattr(sizes_and_definitions, "table4_cell", cell)


def _another_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes_and_definitions, "list_starts", lambda e, method, role=None: [NormalInit(std=0.05)])
    model = lambda e, method: msgspec.structs.replace(REAL["find_model"](e, method), norm_eps=1e-6)  # noqa: E731
    monkeypatch.setattr(sizes_and_definitions, "find_model", model)


def _another_schedule(monkeypatch: pytest.MonkeyPatch) -> None:
    starts = [0.5 - 0.4 * 0.9**layer for layer in range(24)]
    blocks = [SimpleNamespace(attention=SimpleNamespace(mixer=SimpleNamespace(lambda_init=value))) for value in starts]
    monkeypatch.setattr(sizes_and_definitions, "build_decoder", lambda study, method: SimpleNamespace(blocks=blocks))


def _softmax(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = lambda mixer, q, k, attention_mask: masked_softmax(mixer.scores(q, k), attention_mask)  # noqa: E731
    monkeypatch.setattr(Softpick, "weights", weights)


def _move_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    write_before = HyperConnections.write

    def write(self, state, sublayer, inputs, branch_BTD):
        x_BTD, slow_BTD = write_before(self, state, sublayer, inputs, branch_BTD)
        return x_BTD + 0.1 * slow_BTD, slow_BTD

    monkeypatch.setattr(HyperConnections, "write", write)


class AnotherTable2(PrintedNumbers):
    """HybridNorm is not an improver."""

    def table(self, name: str, key=None):
        """The printed table with another z."""
        table = super().table(name, key)
        if name == "table2":
            table.loc["hybrid_norm", "z"] = "1.00"
        return table


#: Claim -> what is otherwise where it is false.
FALSE: dict[str, Patch] = {
    "fwer": lambda monkeypatch: monkeypatch.setattr(Study, "m", 12),
    "params_baseline": cells("baseline", params_b=1.3),
    "params_band": cells("selective_attn", delta_params_pct=-3.0),
    "gated_overhead": cells("gated_attn_qknorm", delta_flops_pct=0.25),
    "selective_zero_params": one_more("selective_attn", "scalar", 3),
    "denseformer_params": cells("denseformer", parameters=1_216_711_256),
    "sandwich_params": one_more("sandwich_norm", "query", 3),
    "geglu_same_cost": cells("geglu_ffn", delta_flops_counted_pct=0.5),
    "relu2_width": instead("inner_width", lambda e, method: 5632 if method == "baseline" else 7509),
    "flops_formula": _twice_the_operations,
    "cost_3b": instead("count_operations", lambda model: model.width * model.context),
    "ssmax_init": constants(3.0),
    "layer0_value_residual": one_more("value_residual", "scalar", 0),
    "layerscale_init": constants(0.1),
    "attnres_init": _another_start,
    "softpick_zeros": _softmax,
    "hyper_identity_init": _move_lane,
    "diff_lambda": _another_schedule,
}

#: The paper contradicts itself: claim -> what is otherwise where it is so.
SO: dict[str, Patch] = {"params_band": cells("gated_attn_qknorm", delta_flops_pct=0.1295)}

#: Statements about printed numbers alone: claim -> printed numbers with which it is false, and with which it is so.
PRINTED_FALSE: dict[str, PrintedNumbers] = {"extra_runs_needed": AnotherTable2(PUBLISHED.directory)}
PRINTED_SO: dict[str, dict[str, float]] = {"tokens_1p2b": {"log2_batch": 19}, "tokens_3b": {"log2_batch": 19}}


def change_printed(claim, values: dict[str, float]):
    """A claim that prints other values."""
    return replace(claim, values=claim.values | values)
