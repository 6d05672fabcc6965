"""Checks a model before it is trained: repeatability, causality, prefill = decode, padding, rows of a batch, gradients,
start.

Each check is a function of a method's small model and of its baseline's. It returns None, or words for what does not
hold with the smallest input that shows it: inputs are tried from two tokens on, in the order of their length, up to the
context.

Models are moved off their start (`create_moved_model`), so that nothing is switched off by a gate at zero. What a
component may do in training only is examined in training mode too.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import numpy as np
import torch

from plumbline.model.cache import DecodingCache
from plumbline.model.decoder import Decoder, create
from plumbline.model.roles import collect_roles
from plumbline.operate.preflight.method_checks import leaks, trained_size_checks
from plumbline.operate.preflight.method_checks.leaks import LONG, create_moved_model
from plumbline.specs.checked_models import TrainedSize
from plumbline.specs.spec import ModelSpec

#: Lengths that are tried one by one; longer ones come after them.
SHORT = range(2, 9)
#: How many tokens are decoded at a time where one at a time would take long.
STRIDE = 7

#: What is reported as failed if something is raised at the trained size.
AT_SIZE = "trained size"

Check = Callable[[ModelSpec, ModelSpec], str | None]


def check_repeatable(spec: ModelSpec, baseline: ModelSpec) -> str | None:
    """Check that a model gives one input the same logits, bit by bit, whatever it read between: no noise, no state of
    calls.
    """
    model, other_BT = create_moved_model(spec), _make_tokens(spec, 9, seed=8)
    for length in (2, 9):
        tokens_BT = _make_tokens(spec, length)
        with torch.no_grad():
            logits = []
            for mode in _set_modes(model):
                first = model(tokens_BT)
                if not torch.equal(model(tokens_BT), first):
                    finding = f"read twice{mode}, {_describe_tokens(tokens_BT)} get different logits"
                    return f"{finding}: noise, or state that is kept between calls"
                model(other_BT)
                model(other_BT[:, :3])
                before = _read_counters(model)
                model(other_BT[:, :3])
                for name, value in _read_counters(model).items():
                    if value != before.get(name):
                        return f"{name} is {before.get(name)} and then {value}{mode}: it changes with every call"
                if not torch.equal(model(tokens_BT), first):
                    return (
                        f"{_describe_tokens(tokens_BT)} get different logits{mode} after another input was read: "
                        "state is kept between calls"
                    )
                logits.append(first)
            if not torch.equal(model.eval()(tokens_BT), logits[0]):
                return (
                    f"{_describe_tokens(tokens_BT)} get different logits after the model ran in training mode: state "
                    "is kept"
                )
    return None


def check_causality(spec: ModelSpec, baseline: ModelSpec) -> str | None:
    """Check that a token changes nothing at the tokens before it."""
    model = create_moved_model(spec)
    for tokens_BT in _make_inputs(spec):
        length = tokens_BT.shape[1]
        for mode in _set_modes(model):
            expected = model(tokens_BT)
            for place in range(1, length) if length in SHORT else (length - 1, length // 2):
                changed_BT = tokens_BT.clone()
                changed_BT[0, place] = (changed_BT[0, place] + spec.vocabulary // 2) % spec.vocabulary
                off = leaks.find_difference(model(changed_BT)[:, :place], expected[:, :place])
                if off is not None:
                    changed = f"token {place} of {_describe_tokens(tokens_BT)} changed to {int(changed_BT[0, place])}"
                    moved = f"moves the logits at token {off[0]}, which comes before it, by {off[1]:.2g}"
                    return f"{changed} {moved}{mode}"
    return None


def check_decoding(spec: ModelSpec, baseline: ModelSpec) -> str | None:
    """Check that tokens read one at a time, or a few, give the logits that they give all at once, to the end of the
    context.
    """
    model = create_moved_model(spec)
    for tokens_BT in _make_inputs(spec, LONG, spec.context):
        length = tokens_BT.shape[1]
        expected = model(tokens_BT)
        for size in (1, 3) if length <= LONG else (STRIDE,):
            if size < length:
                cache = DecodingCache()
                parts = [model(part, cache=cache) for part in tokens_BT.split(size, dim=1)]
                off = leaks.find_difference(torch.cat(parts, dim=1), expected)
                if off is not None:
                    stride_text = "one at a time" if size == 1 else f"{size} at a time"
                    return (
                        f"{_describe_tokens(tokens_BT)}, decoded {stride_text}, have other logits at token {off[0]} "
                        f"than read at once (off by {off[1]:.2g})"
                    )
    return None


def check_padding(spec: ModelSpec, baseline: ModelSpec) -> str | None:
    """Check that padding, on the left or on the right, changes nothing at real tokens."""
    model = create_moved_model(spec)
    for tokens_BT in _make_inputs(spec, LONG, spec.context - 3):  # with its padding no longer than a model has to take
        expected = model(tokens_BT)
        for before, after in ((1, 0), (0, 1), (3, 0), (0, 3)):
            padded_BT = torch.nn.functional.pad(tokens_BT, (before, after))
            padding_BT = torch.nn.functional.pad(torch.zeros_like(tokens_BT), (before, after), value=1).bool()
            padded_1TV = model(padded_BT, padding_BT=padding_BT)[:, before : before + tokens_BT.shape[1]]
            off = leaks.find_difference(padded_1TV, expected)
            if off is not None:
                side = "left" if before else "right"
                return (
                    f"{before + after} of padding on the {side} of {_describe_tokens(tokens_BT)} moves the logits at "
                    f"token {off[0]} by {off[1]:.2g}"
                )
    return None


def check_rows(spec: ModelSpec, baseline: ModelSpec) -> str | None:
    """Check that a row of a batch has the logits that it has alone."""
    model = create_moved_model(spec)
    for length in sorted({1, 2, 9, spec.context}):
        rows_BT = torch.cat([_make_tokens(spec, length, seed=seed) for seed in (7, 8, 9)])
        for mode in _set_modes(model):
            logits_BTV = model(rows_BT)
            for row, alone_BT in enumerate(rows_BT.split(1)):
                off = leaks.find_difference(logits_BTV[row : row + 1], model(alone_BT))
                if off is not None:
                    text = (
                        f"row {row} of a batch of 3, {_describe_tokens(alone_BT)}, has other logits at token {off[0]} "
                        "than alone"
                    )
                    return f"{text} (off by {off[1]:.2g}){mode}"
    return None


def check_gradients(spec: ModelSpec, baseline: ModelSpec) -> str | None:
    """Check that every parameter gets a finite gradient, at the start and off it, in float32 and under bfloat16
    autocast.

    Off the start, the gradient of each has an element that is not zero.
    """
    for where, model in (("at the start", create(spec, init_seed=5)), ("off its start", create_moved_model(spec))):
        model.train()
        moved: set[str] = set()
        for length in (1, 2, 9):
            tokens_BT = _make_tokens(spec, length)
            for half in (False, True):
                model.zero_grad(set_to_none=True)
                where_text = f"{where}, {'bfloat16' if half else 'float32'}, on {_describe_tokens(tokens_BT)}"
                for name, value in model.named_parameters():
                    if not value.requires_grad:
                        return f"the parameter {name} is frozen (requires_grad is False): it would never be trained"
                with torch.enable_grad(), torch.autocast("cpu", dtype=torch.bfloat16, enabled=half):
                    logits = model(tokens_BT)
                    logits.float().square().mean().backward()
                if not logits.isfinite().all():
                    return f"logits are not finite ({where_text})"
                for name, value in model.named_parameters():
                    if value.grad is None:
                        return f"the parameter {name} gets no gradient ({where_text})"
                    if not value.grad.isfinite().all():
                        return f"the gradient of {name} is not finite ({where_text})"
                    if value.grad.any():
                        moved.add(_strip_list_index(name))
        still = [name for name, _ in model.named_parameters() if _strip_list_index(name) not in moved]
        if still and where == "off its start":  # at the start a gate at zero may well hide what is behind it
            return f"the gradient of the parameter {still[0]} is zero ({where}, on every input that was tried)"
    return None


def check_start(spec: ModelSpec, baseline: ModelSpec) -> str | None:
    """Check that one seed gives one model, bit by bit, and that what a method shares with its baseline starts the
    same.
    """
    tokens_BT = _make_tokens(spec, 9)
    model, lived = create(spec, init_seed=5).eval(), create_moved_model(spec)
    with _other_random_state():
        again, lived_again = create(spec, init_seed=5).eval(), create_moved_model(spec)
    other_model = create(spec, init_seed=6)
    tensors, tensors_again = _list_tensors(model), _list_tensors(again)
    for name, value in tensors.items():
        if name not in tensors_again or not _are_same(value, tensors_again[name]):
            return f"two models of one seed have a different {name}: something does not depend on the seed"
    for first, second in ((model, again), (lived, lived_again)):
        if not torch.equal(first(tokens_BT), second(tokens_BT)):
            return (
                f"two models of one seed give {_describe_tokens(tokens_BT)} other logits: something does not depend on "
                "the seed"
            )
    if torch.equal(model.embedding, other_model.embedding):
        return "two seeds give the same embedding"
    theirs = create(baseline, init_seed=5)
    values, declared, expected = dict(theirs.named_parameters()), collect_roles(theirs), collect_roles(model)
    same_scale = (spec.init_std, spec.residual_init_scaling) == (baseline.init_std, baseline.residual_init_scaling)
    for name, value in model.named_parameters():
        is_shared = name in values and values[name].shape == value.shape and declared[name].init == expected[name].init
        if is_shared and same_scale and not torch.equal(value, values[name]):
            return f"the parameter {name}, which the baseline has too, is initialised differently at the same seed"
    return None


#: In the order in which they are made; what is built wrongly fails at the first of them.
CHECKS: dict[str, Check] = {
    "repeatable": check_repeatable,
    "causality": check_causality,
    "prefill = decode": check_decoding,
    "padding": check_padding,
    "rows": check_rows,
    "gradients": check_gradients,
    "init identity": check_start,
}


@torch.no_grad()
def starts_as_baseline(spec: ModelSpec, baseline: ModelSpec) -> bool:
    """Whether a method's model starts with its baseline's logits, up to rounding. No demand: a thing to know."""
    tokens_BT = _make_tokens(spec, 9)
    mine, theirs = (create(model_spec, init_seed=5).eval()(tokens_BT) for model_spec in (spec, baseline))
    return leaks.find_difference(mine, theirs) is None


def run_checks(
    spec: ModelSpec, baseline: ModelSpec, sizes: Iterable[TrainedSize] = (), trained_models: Iterable[ModelSpec] = ()
) -> tuple[dict[str, str], list[str]]:
    """Make every check; returns words for those that do not hold, and the names of those that could not be made.

    At the `sizes` of the runs a model is examined only where its short inputs have shown nothing. Of the
    `trained_models` those that a processor reads in seconds are examined as they are.

    A check cannot be made if something was raised, by the component or by what it needs of its environment. What
    several raise is reported once. A model that cannot be built fails as `build`, and no other check is made of it.
    """
    failures: dict[str, str] = {}
    raised: list[str] = []
    with torch.no_grad():
        for name, check in {"build": _build, **CHECKS}.items():
            try:
                message = check(spec, baseline)
            except Exception as error:  # whatever a component's own code raises
                message = f"{type(error).__name__}: {error}"
                raised.append(name)
                if message in failures.values():
                    continue
            if message is not None:
                failures[name] = message
            if raised == ["build"]:
                break
        trained_models = list(trained_models)
        for size in () if failures else sizes:
            try:
                failures |= trained_size_checks.run_checks(spec, size, trained_models)
            except Exception as error:
                failures[AT_SIZE] = f"a sequence of {size.context:,} tokens: {type(error).__name__}: {error}"
                raised.append(AT_SIZE)
    return failures, raised


def _strip_list_index(name: str) -> str:
    """A parameter's name, or its list's: in a list with one for each depth, the first may choose among a single thing,
    so that nothing depends on it (the queries of attention residuals)."""
    before, _, last = name.rpartition(".")
    return before if last.isdigit() else name


def _build(spec: ModelSpec, baseline: ModelSpec) -> None:
    create(spec, init_seed=5)


def _set_modes(model: Decoder) -> Iterator[str]:
    """Set the model to evaluation, then to training; the text that states it, none for evaluation."""
    model.eval()
    yield ""
    model.train()
    yield " in training mode"
    model.eval()


@contextmanager
def _other_random_state() -> Iterator[None]:
    """Other states of torch's, numpy's and Python's generators, whose own are put back."""
    states = torch.get_rng_state(), np.random.get_state(), random.getstate()
    torch.manual_seed(1234567)
    np.random.seed(1234567)
    random.seed(1234567)
    try:
        yield
    finally:
        torch.set_rng_state(states[0])
        np.random.set_state(states[1])
        random.setstate(states[2])


def _read_counters(model: Decoder) -> dict[str, float]:
    """The numbers that the parts of a model hold in addition to their tensors."""
    return {
        f"{name}.{key}": value
        for name, part in model.named_modules()
        for key, value in vars(part).items()
        if isinstance(value, (int, float)) and key != "training"
    }


def _list_tensors(model: Decoder) -> dict[str, torch.Tensor]:
    """All that a model holds: parameters, and buffers, those outside of its state too."""
    return {
        **{name: value for name, value in model.state_dict().items() if isinstance(value, torch.Tensor)},
        **dict(model.named_parameters()),
        **dict(model.named_buffers()),
    }


def _are_same(value: torch.Tensor, other: torch.Tensor) -> bool:
    return (
        value.shape == other.shape
        and value.dtype == other.dtype
        and torch.equal(value.nan_to_num(), other.nan_to_num())
    )


def _make_inputs(spec: ModelSpec, *longer: int) -> Iterator[torch.Tensor]:
    """Tokens, by length: the short ones, then these, or else a few to the end of the context, which is all that a
    training reads: it reads one less, so that a fault of exactly one of the two lengths is met."""
    longer = longer or (LONG, (LONG + spec.context) // 2 | 1, spec.context - 1, spec.context)
    return (_make_tokens(spec, length) for length in sorted({*SHORT, *longer}) if 2 <= length <= max(spec.context, 2))


def _make_tokens(spec: ModelSpec, length: int, seed: int = 7) -> torch.Tensor:
    """(1, T)."""
    return torch.randint(0, spec.vocabulary, (1, length), generator=torch.Generator().manual_seed(seed))


def _describe_tokens(tokens_BT: torch.Tensor) -> str:
    return leaks.describe_tokens(tokens_BT[0])
