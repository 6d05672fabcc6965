"""What must hold of a model before it is trained: causality, prefill = decode, padding, gradients, its start.

Each check is a function of a method's small model and of its baseline's. It returns None, or words for what does not
hold with the smallest input that shows it: inputs are tried from two tokens on, in the order of their length.

Models are moved off their start (`lively`), so that nothing is switched off by a gate at zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

from plumbline.model.cache import Cache
from plumbline.model.decoder import Decoder, create
from plumbline.model.roles import roles
from plumbline.specs.spec import ModelSpec

#: Logits agree within this share of their size (a tenth of the largest, at least 1): float32, in another order of sums.
TOLERANCE = 2e-4
#: Lengths that are tried one by one, and the longer one after them, beyond the first chunk of queries of any mixer.
SHORT, LONG = range(2, 9), 40

Check = Callable[[ModelSpec, ModelSpec], str | None]


def lively(spec: ModelSpec) -> Decoder:
    """A model with every parameter off its start."""
    model = create(spec, init_seed=5)
    generator = torch.Generator().manual_seed(6)
    for value in model.parameters():
        value.data += 0.1 * torch.randn(value.shape, generator=generator)
    return model.eval()


def causality(spec: ModelSpec, baseline: ModelSpec) -> str | None:
    """A token changes nothing at the tokens before it."""
    model = lively(spec)
    for tokens_BT in _inputs(spec):
        length, expected = tokens_BT.shape[1], model(tokens_BT)
        for place in range(1, length) if length in SHORT else (length - 1, length // 2):
            other = tokens_BT.clone()
            other[0, place] = (other[0, place] + spec.vocabulary // 2) % spec.vocabulary
            off = _off(model(other)[:, :place], expected[:, :place])
            if off is not None:
                changed = f"token {place} of {_named(tokens_BT)} changed to {int(other[0, place])}"
                return f"{changed} moves the logits at token {off[0]}, which comes before it, by {off[1]:.2g}"
    return None


def decoding(spec: ModelSpec, baseline: ModelSpec) -> str | None:
    """Tokens read one at a time, or a few, give the logits that they give all at once."""
    model = lively(spec)
    for tokens_BT in _inputs(spec):
        length = tokens_BT.shape[1]
        expected = model(tokens_BT)
        for size in (1, 3):
            if size < length:
                cache = Cache()
                found = [model(part, cache=cache) for part in tokens_BT.split(size, dim=1)]
                off = _off(torch.cat(found, dim=1), expected)
                if off is not None:
                    how = "one at a time" if size == 1 else f"{size} at a time"
                    return (
                        f"{_named(tokens_BT)}, decoded {how}, have other logits at token {off[0]} than read at once "
                        f"(off by {off[1]:.2g})"
                    )
    return None


def padding(spec: ModelSpec, baseline: ModelSpec) -> str | None:
    """Padding, on the left or on the right, changes nothing at real tokens."""
    model = lively(spec)
    for tokens_BT in _inputs(spec):
        expected = model(tokens_BT)
        for left, right in ((1, 0), (0, 1), (3, 0), (0, 3)):
            padded_BT = torch.nn.functional.pad(tokens_BT, (left, right))
            padding_BT = torch.nn.functional.pad(torch.zeros_like(tokens_BT), (left, right), value=1).bool()
            found = model(padded_BT, padding_BT=padding_BT)[:, left : left + tokens_BT.shape[1]]
            off = _off(found, expected)
            if off is not None:
                side = "left" if left else "right"
                return (
                    f"{left + right} of padding on the {side} of {_named(tokens_BT)} moves the logits at token "
                    f"{off[0]} by {off[1]:.2g}"
                )
    return None


def gradients(spec: ModelSpec, baseline: ModelSpec) -> str | None:
    """Every parameter gets a finite gradient, at the start and off it, in float32 and under bfloat16 autocast."""
    for where, model in (("at the start", create(spec, init_seed=5)), ("off its start", lively(spec))):
        for length in (1, 2, 9):
            tokens_BT = _tokens(spec, length)
            for half in (False, True):
                model.zero_grad(set_to_none=True)
                with torch.enable_grad(), torch.autocast("cpu", dtype=torch.bfloat16, enabled=half):
                    logits = model(tokens_BT)
                    logits.float().square().mean().backward()
                how = f"{where}, {'bfloat16' if half else 'float32'}, on {_named(tokens_BT)}"
                if not logits.isfinite().all():
                    return f"logits are not finite ({how})"
                for name, value in model.named_parameters():
                    if value.requires_grad and value.grad is None:
                        return f"the parameter {name} gets no gradient ({how})"
                    if value.grad is not None and not value.grad.isfinite().all():
                        return f"the gradient of {name} is not finite ({how})"
    return None


def start(spec: ModelSpec, baseline: ModelSpec) -> str | None:
    """One seed gives one model, bit by bit, and what a method shares with its baseline starts the same in both."""
    tokens_BT = _tokens(spec, 9)
    model, again, other = (create(spec, init_seed=seed).eval() for seed in (5, 5, 6))
    if not torch.equal(model(tokens_BT), again(tokens_BT)):
        return f"two models of one seed give {_named(tokens_BT)} other logits: something is not drawn from the seed"
    if torch.equal(model.embedding, other.embedding):
        return "two seeds give the same embedding"
    theirs = create(baseline, init_seed=5)
    values, declared, expected = dict(theirs.named_parameters()), roles(theirs), roles(model)
    same_scale = (spec.init_std, spec.residual_init_scaling) == (baseline.init_std, baseline.residual_init_scaling)
    for name, value in model.named_parameters():
        alike = name in values and values[name].shape == value.shape and declared[name].init == expected[name].init
        if alike and same_scale and not torch.equal(value, values[name]):
            return f"the parameter {name}, which the baseline has too, starts with other values at the same seed"
    return None


#: In the order in which they are made; what is built wrongly fails at the first of them.
CHECKS: dict[str, Check] = {
    "causality": causality,
    "prefill = decode": decoding,
    "padding": padding,
    "gradients": gradients,
    "init identity": start,
}


@torch.no_grad()
def starts_as(spec: ModelSpec, baseline: ModelSpec) -> bool:
    """Whether a method's model starts with its baseline's logits, up to rounding. No demand: a thing to know."""
    tokens_BT = _tokens(spec, 9)
    mine, theirs = (create(one, init_seed=5).eval()(tokens_BT) for one in (spec, baseline))
    return _off(mine, theirs) is None


def failed(spec: ModelSpec, baseline: ModelSpec) -> dict[str, str]:
    """Every check that does not hold, with words; a component's own exception is one of the check that met it."""
    found = {}
    with torch.no_grad():
        for name, check in CHECKS.items():
            try:
                words = check(spec, baseline)
            except Exception as error:  # whatever a component's own code raises
                words = f"{type(error).__name__}: {error}"
            if words is not None:
                found[name] = words
    return found


def _inputs(spec: ModelSpec) -> Iterator[torch.Tensor]:
    lengths = [length for length in (*SHORT, LONG) if length <= max(spec.context, 2)]
    return (_tokens(spec, length) for length in lengths)


def _tokens(spec: ModelSpec, length: int) -> torch.Tensor:
    """(1, T)."""
    return torch.randint(0, spec.vocabulary, (1, length), generator=torch.Generator().manual_seed(7))


def _named(tokens_BT: torch.Tensor) -> str:
    listed = tokens_BT[0].tolist()
    shown = ", ".join(map(str, listed[:8]))
    return f"the {len(listed)} tokens ({shown}{', ...' if len(listed) > 8 else ''})" if len(listed) > 1 else "one token"


def _off(found_BTV: torch.Tensor, expected_BTV: torch.Tensor) -> tuple[int, float] | None:
    """The first token whose logits differ, and by how much at most; None where all agree."""
    if found_BTV.shape[1] == 0:
        return None
    size = max(1.0, float(expected_BTV.abs().max()) / 10)
    difference_BTV = (found_BTV - expected_BTV).abs()
    far_T = ~(difference_BTV <= TOLERANCE * (size + expected_BTV.abs())).all(-1).all(0)  # not a number is far
    if not far_T.any():
        return None
    place = int(far_T.nonzero()[0])
    return place, float(difference_BTV[:, place].max())
