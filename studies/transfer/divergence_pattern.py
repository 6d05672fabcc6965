"""Tells how a run went before it diverged, from its gradient norms by stated rules.

Source: transfer study, section 5.3 and Table 6, which names three signatures and gives no rule; the rules are ours:

- the stable level b is the median norm of the first half of the history after warm-up;
- the elevated stretch is the last chain of norms above ELEVATED x b, and ends with the history: between two of them,
  and before the divergence, there may be calm steps for at most BRIEF of all (peaks are spaced, and still go on);
- `sudden`: the stretch is at most BRIEF of the steps before the divergence (a norm in its stable range, a spike, NaN);
- `rise`: in a longer stretch norms rank with steps (Spearman's rho at least MONOTONE) and end at least GROWTH x higher
  than they begin;
- `inflation`: any other longer stretch;
- `too short`: fewer than ENOUGH norms after warm-up.

A signature is what a mechanism would leave; it does not prove one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from scipy import stats

from plumbline.results.runs.finished_runs import RunFrames

Signature = Literal["sudden", "rise", "inflation", "too short"]

#: Steps of the paper's training (section 3.2), of which its divergences are a share.
PAPER_STEPS = 44_000

ELEVATED, BRIEF, MONOTONE, GROWTH, ENOUGH = 3.0, 0.05, 0.8, 3.0, 5

#: What the paper reads each signature as.
MECHANISMS: dict[str, str] = {
    "sudden": "as Post-LN variance growth",
    "rise": "as logit blow-up",
    "inflation": "as residual drift",
    "too short": "not classified",
}

#: The paper's names of mechanisms (Table 6), as signatures.
PRINTED: dict[str, str] = {
    "post_ln_ffn_variance_growth": "sudden",
    "softmax_replacement_logit_blowup": "rise",
    "multi_lane_ema_residual_drift": "inflation",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Divergence:
    """A classified history: norms are before clipping; steps count from the run's start. NaN: not there.

    `before` is the last norm that is not of the elevated stretch, `first` the first that is, `last` the last of all.
    """

    signature: Signature
    stable: float
    before: float
    peak: float
    elevated_from: float
    elevated_steps: int
    first: float
    last: float


def classify(steps: Iterable[int], norms: Iterable[float], *, warmup_steps: int) -> Divergence:
    """Classify the history of gradient norms before a divergence; norms that are not finite are left out."""
    step, norm = np.asarray(list(steps), dtype=float), np.asarray(list(norms), dtype=float)
    end = float(step[-1]) if step.size else math.nan
    usable = np.isfinite(norm) & (step > warmup_steps)
    step, norm = step[usable], norm[usable]
    if norm.size < ENOUGH:
        peak = float(norm.max()) if norm.size else math.nan
        return Divergence(
            signature="too short",
            stable=math.nan,
            before=math.nan,
            peak=peak,
            elevated_from=math.nan,
            elevated_steps=0,
            first=math.nan,
            last=float(norm[-1]) if norm.size else math.nan,
        )
    stable = float(np.median(norm[: math.ceil(norm.size / 2)]))
    begin = chain(step, norm > ELEVATED * stable, end)
    stretch, at = norm[begin:], step[begin:]
    length = end - float(at[0]) if at.size else 0.0
    signature: Signature = "inflation"
    if length <= BRIEF * end:
        signature = "sudden"
    elif stretch.size > 2 and stats.spearmanr(at, stretch).statistic >= MONOTONE and _growth(stretch) >= GROWTH:
        signature = "rise"
    return Divergence(
        signature=signature,
        stable=stable,
        before=float(norm[begin - 1]) if begin else math.nan,
        peak=float(norm.max()),
        elevated_from=float(at[0]) if at.size else math.nan,
        elevated_steps=int(length),
        first=float(stretch[0]) if at.size else math.nan,
        last=float(norm[-1]),
    )


def chain(step: np.ndarray, high: np.ndarray, end: float) -> int:
    """Where the last chain of high norms begins (an index; the length where there is none): the steps from one to the
    next, and from the last to the `end`, are at most BRIEF of the end's, or the widest distance between two norms."""
    begin, until = step.size, end
    gap = max(BRIEF * end, float(np.diff(step, append=end).max()) if step.size else 0.0)
    for index in np.flatnonzero(high)[::-1]:
        if until - step[index] > gap:
            break
        begin, until = int(index), float(step[index])
    return begin


def read_norms(frames: RunFrames, key: str) -> pd.Series:
    """A run's gradient norms before clipping, on their steps, after the warm-up that it had."""
    metrics = frames.metrics(key)
    train = metrics[metrics["split"] == "train"]
    warmup = int(frames.manifests[key]["spec"]["schedule"]["warmup_steps"])
    return train[train["step"] > warmup].set_index("step")["grad_norm"]


def read_divergence(frames: RunFrames, key: str) -> Divergence:
    """A diverged run's classified history, by the warm-up that the run had."""
    metrics = frames.metrics(key)
    train = metrics[metrics["split"] == "train"]
    warmup = int(frames.manifests[key]["spec"]["schedule"]["warmup_steps"])
    return classify(train["step"], train["grad_norm"], warmup_steps=warmup)


def _growth(stretch: np.ndarray) -> float:
    """The last tenth's median over the first tenth's."""
    tenth = max(1, stretch.size // 10)
    return float(np.median(stretch[-tenth:]) / np.median(stretch[:tenth]))
