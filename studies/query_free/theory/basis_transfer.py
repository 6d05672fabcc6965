"""Fits an MLP with a skip to one in another basis, and compares it with the best linear map.

Source: query_free study, appendix 8.4 (Eqs. 13 to 15, figure 2). The target is Y = W2 GELU(W1 X) + Z X - X with drawn
W1, W2, Z of entries N(0, 1 / 4h), N(0, 1 / 4h), N(0, 1 / h), and what is fitted is W2' GELU(W1' X) + X. X is N(0, I),
which the paper does not say; GELU is the exact (erf) one, and nothing has a bias. Every step draws new inputs.

Eq. 14 subtracts X, which Eq. 13 leaves to Z; what is printed of the linear map, 11 to 14 %, is nearer to a target
without that term. Both targets can be drawn (interpretation `transfer_target`).

The best linear map is known in closed form: GELU(g) - g / 2 is even, so that for Gaussian inputs no linear map sees it,
and the map is W2 W1 / 2 + Z - I (without I where X is not subtracted). Its error needs the moments E[GELU(u) GELU(v)]
of a Gaussian pair, by parts.

Points are rows; weights stand as in the paper. Shapes: N points, D width (the paper's h), F hidden units (4h).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields

import torch
from torch.nn.functional import gelu

from plumbline.core.errors import PlumblineError
from plumbline.core.files import sha256_text
from plumbline.train.optimizers._base import OptimizerBase

#: Points that are looked at at once where nothing is learned from them.
BLOCK = 8192


@dataclass(frozen=True, kw_only=True, slots=True)
class TargetFunction:
    """The function Y of Eq. 14, to which an MLP is fitted: `into_FD` is W1, `out_DF` W2 and `skip_DD` Z.

    `subtracts_input`: whether X is subtracted, as Eq. 14 has it; else Z alone stands for the change of basis.
    """

    into_FD: torch.Tensor
    out_DF: torch.Tensor
    skip_DD: torch.Tensor
    subtracts_input: bool = True

    @property
    def width(self) -> int:
        """Width D of the points, the paper's h."""
        return len(self.skip_DD)

    @torch.no_grad()
    def __call__(self, x_ND: torch.Tensor) -> torch.Tensor:
        """Compute Y for points (N, D)."""
        y_ND = gelu(x_ND @ self.into_FD.T) @ self.out_DF.T + x_ND @ self.skip_DD.T
        return y_ND - x_ND if self.subtracts_input else y_ND


def draw_target(width: int, seed: int, device: torch.device, *, subtracts_input: bool = True) -> TargetFunction:
    """Draw the target's weights in float32, the same on every device and with X subtracted or not."""
    into_FD, out_DF = _mlp(width, _generator(torch.device("cpu"), seed, width, "target"))
    skip_DD = _draw_normal(width, width, width, _generator(torch.device("cpu"), seed, width, "skip"))
    return TargetFunction(
        into_FD=into_FD.to(device),
        out_DF=out_DF.to(device),
        skip_DD=skip_DD.to(device),
        subtracts_input=subtracts_input,
    )


def inputs(
    width: int, seed: int, purpose: str, device: torch.device, *, samples: int, block: int = BLOCK
) -> Iterator[torch.Tensor]:
    """Yield blocks of points N(0, I), `samples` in all.

    Args:
        purpose: names the random stream, so that points for different purposes are independent.
    """
    generator = _generator(device, seed, width, purpose)
    for start in range(0, samples, block):
        yield torch.randn(min(block, samples - start), width, generator=generator, device=device)


@dataclass(frozen=True, kw_only=True, slots=True)
class FitQuality:
    """How far predictions p are from the target y.

    The paper prints "relative L2 error" and "mean cosine", without saying over what the mean is taken.

    Attributes:
        relative_l2: sqrt(E|p - y|^2 / E|y|^2), over the population.
        relative_l2_sample: E of |p - y| / |y|, a mean over points.
        cosine_population: E<p, y> / sqrt(E|p|^2 E|y|^2).
        cosine: E of <p, y> / (|p| |y|).
        cosine_distance: 1 - cosine.
        angle_degrees: E of the angle between p and y.
    """

    relative_l2: float
    relative_l2_sample: float
    cosine_population: float
    cosine: float
    cosine_distance: float
    angle_degrees: float


#: Names of the values, in their order.
QUANTITIES = tuple(field.name for field in fields(FitQuality))


@torch.no_grad()
def fit_quality(pairs: Iterable[tuple[torch.Tensor, torch.Tensor]]) -> FitQuality:
    """Measure how far predictions are from targets, from blocks of both (N, D), summed in float64."""
    count, sums = 0, torch.zeros(7, dtype=torch.float64)
    for predicted, target in pairs:
        p_ND, y_ND = predicted.double(), target.double()
        off_N, p_N, y_N = ((part**2).sum(1) for part in (p_ND - y_ND, p_ND, y_ND))
        along_N = (p_ND * y_ND).sum(1)
        cosine_N = (along_N / (p_N * y_N).sqrt()).clamp(-1, 1)
        each = (off_N, p_N, y_N, along_N, (off_N / y_N).sqrt(), cosine_N, cosine_N.arccos())
        sums += torch.stack([part.sum() for part in each]).cpu()
        count += len(p_ND)
    off, p, y, along, ratio, cosine, angle = (sums / count).tolist()
    return FitQuality(
        relative_l2=math.sqrt(off / y),
        relative_l2_sample=ratio,
        cosine_population=along / math.sqrt(p * y),
        cosine=cosine,
        cosine_distance=1 - cosine,
        angle_degrees=math.degrees(angle),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class BestLinear:
    """The best linear map of inputs N(0, I), and its error over the whole distribution.

    `relative_l2_intercept` is the error with the best constant added to the map, `relative_l2` without it;
    `cosine_population` is that of `FitQuality`, sqrt(1 - relative_l2^2).
    """

    map_DD: torch.Tensor
    relative_l2: float
    relative_l2_intercept: float
    cosine_population: float


@torch.no_grad()
def best_linear(target: TargetFunction) -> BestLinear:
    """Compute the best linear map in closed form and float64: no sample is drawn."""
    into_FD, out_DF = target.into_FD.double(), target.out_DF.double()
    map_DD = out_DF @ into_FD / 2 + target.skip_DD.double()
    if target.subtracts_input:
        map_DD -= torch.eye(target.width, dtype=torch.float64).to(out_DF.device)
    gram_FF = into_FD @ into_FD.T
    even_FF = gelu_moments(gram_FF) - gram_FF / 4  # of GELU(g) - g / 2, since E[GELU(u) v] is E[u v] / 2
    power_F = gram_FF.diagonal()
    mean_F = power_F / (2 * math.pi * (1 + power_F)).sqrt()
    missed = float((out_DF @ even_FF * out_DF).sum())
    constant = float(((out_DF @ mean_F) ** 2).sum())
    whole = float((map_DD**2).sum()) + missed
    return BestLinear(
        map_DD=map_DD,
        relative_l2=math.sqrt(missed / whole),
        relative_l2_intercept=math.sqrt((missed - constant) / whole),
        cosine_population=math.sqrt(1 - missed / whole),
    )


def gelu_moments(gram_FF: torch.Tensor) -> torch.Tensor:
    """E[GELU(u) GELU(v)] for each pair of Gaussians of mean zero, from their covariances.

    With variances a, c and covariance b: b E[Phi(u) Phi(v)] + (a c - b^2 + b^2 / (1 + a) + b^2 / (1 + c)) E[phi(u)
    phi(v)], where phi and Phi are the normal density and its integral.
    """
    one_F = 1 + gram_FF.diagonal()
    square_FF = gram_FF**2
    product_FF = one_F[:, None] * one_F
    density_FF = 1 / (2 * math.pi * (product_FF - square_FF).sqrt())
    both_FF = 0.25 + torch.arcsin(gram_FF / product_FF.sqrt()) / (2 * math.pi)
    power_F = one_F - 1
    factor_FF = power_F[:, None] * power_F - square_FF + square_FF / one_F[:, None] + square_FF / one_F
    return gram_FF * both_FF + factor_FF * density_FF


@torch.no_grad()
def ridge(blocks: Iterable[tuple[torch.Tensor, torch.Tensor]], strength: float) -> torch.Tensor:
    """Fit a linear map A (D, D) by ridge regression: least mean |y - A x|^2 + `strength` |A|^2.

    `blocks` are points and targets (N, D). Only sums of products are kept, in float64, so there may be any number of
    points.

    Raises:
        PlumblineError: fewer points than unknowns and nothing that decides between the maps that fit them.
    """
    count, gram_DD, cross_DD = 0, torch.zeros(()), torch.zeros(())
    for x_ND, y_ND in blocks:
        x_ND, y_ND = x_ND.double(), y_ND.double()
        if not count:
            gram_DD, cross_DD = x_ND.new_zeros(2 * (x_ND.shape[1],)), x_ND.new_zeros(2 * (x_ND.shape[1],))
        gram_DD += x_ND.T @ x_ND
        cross_DD += x_ND.T @ y_ND
        count += len(x_ND)
    width = len(gram_DD) if gram_DD.dim() else 0
    if not count or (count < width and strength <= 0):
        raise PlumblineError(
            f"basis_transfer: {count} points do not determine a linear map of width {width}; raise ridge_samples"
        )
    regular_DD = gram_DD / count + strength * torch.eye(width, dtype=gram_DD.dtype, device=gram_DD.device)
    return torch.linalg.solve(regular_DD, cross_DD / count).T


@dataclass(frozen=True, kw_only=True, slots=True)
class FitSettings:
    """Settings of the fit of an MLP: AdamW with a cosine from `learning_rate` to 0, on `batch` new points in each step.

    `evaluations`: how often the error is measured, evenly over the steps, in addition to the start. `tf32`: products of
    the fit in TF32 where the device has it; errors are measured in float32. The MLP starts from the distribution of the
    target's own weights, and the betas of AdamW are those of torch: the paper gives neither.
    """

    steps: int
    batch: int
    learning_rate: float
    weight_decay: float
    gradient_clip: float
    evaluations: int = 10
    tf32: bool = False


def fit_mlp(
    target: TargetFunction, settings: FitSettings, seed: int, points: list[torch.Tensor]
) -> Iterator[tuple[int, FitQuality]]:
    """Fit W2' GELU(W1' X) + X to the target; yields (step, errors on the points `points`) at the start and after some
    steps.

    The loss is sum |p - y|^2 / sum |y|^2 over the batch.

    Raises:
        PlumblineError: the fit diverged.
    """
    device, width = target.skip_DD.device, target.width
    into_FD, out_DF = (
        part.to(device).requires_grad_() for part in _mlp(width, _generator(torch.device("cpu"), seed, width, "start"))
    )
    optimizer = OptimizerBase([{"params": [into_FD, out_DF]}])

    def predict(x_ND: torch.Tensor) -> torch.Tensor:
        return gelu(x_ND @ into_FD.T) @ out_DF.T + x_ND

    def read() -> FitQuality:
        with torch.no_grad():
            return fit_quality((predict(x_ND), target(x_ND)) for x_ND in points)

    read_at = {round(settings.steps * number / settings.evaluations) for number in range(1, settings.evaluations + 1)}
    yield 0, read()
    generator = _generator(device, seed, width, "train")
    for step in range(1, settings.steps + 1):
        with _products(settings.tf32):
            x_ND = torch.randn(settings.batch, width, generator=generator, device=device)
            y_ND = target(x_ND)
            loss = ((predict(x_ND) - y_ND) ** 2).sum() / (y_ND**2).sum()
            loss.backward()
        torch.nn.utils.clip_grad_norm_([into_FD, out_DF], settings.gradient_clip)
        with torch.no_grad():
            optimizer.adamw_update(
                [into_FD, out_DF],
                learning_rate=settings.learning_rate * (1 + math.cos(math.pi * (step - 1) / settings.steps)) / 2,
                weight_decay=settings.weight_decay,
                beta1=0.9,
                beta2=0.999,
                eps=1e-8,
            )
        optimizer.zero_grad()
        if step in read_at:
            quality = read()
            if not math.isfinite(quality.relative_l2):
                raise PlumblineError(
                    f"basis_transfer: the MLP of width {width} is not finite after step {step}; lower learning_rate"
                )
            yield step, quality


@contextlib.contextmanager
def _products(tf32: bool) -> Iterator[None]:
    """TF32 or not, for the products inside."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = tf32
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def _generator(device: torch.device, seed: int, width: int, purpose: str) -> torch.Generator:
    digest = sha256_text(f"basis transfer\nseed {seed}\nwidth {width}\n{purpose}")
    return torch.Generator(device).manual_seed(int(digest[:15], 16))


def _mlp(width: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """W1 (4h, h) and W2 (h, 4h) of entries N(0, 1 / 4h)."""
    return _draw_normal(4 * width, width, 4 * width, generator), _draw_normal(width, 4 * width, 4 * width, generator)


def _draw_normal(rows: int, columns: int, fan: int, generator: torch.Generator) -> torch.Tensor:
    return torch.randn(rows, columns, generator=generator) / math.sqrt(fan)
