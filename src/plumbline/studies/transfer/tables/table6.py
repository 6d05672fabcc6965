"""Table 6: what diverged, when, and what its gradient norms looked like before.

Source: transfer study, section 5.3 and Table 6. The classifier's rules are in `plumbline.results.divergence`.
"""

from __future__ import annotations

import pandas as pd

from plumbline.results.divergence import BRIEF, ELEVATED, GROWTH, MECHANISMS, MONOTONE, PRINTED, Divergence, classify
from plumbline.results.published import NOT_PRINTED, Published, printed
from plumbline.results.runs import DIVERGED, RunFrames
from plumbline.results.table import Cell, Column, Table, context, fixed, notes_of, number
from plumbline.specs.sheet import Study

LARGE, ARM = "large", "provoked_divergence"
#: Steps of the document's training (section 3.2), of which its divergences are a share.
PAPER_STEPS = 44_000


def _short(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


COLUMNS = [
    Column(name="run", header="Run", kind="label"),
    Column(name="label", header="Method", kind="label", readable=False),
    Column(name="seed", header="seed", kind="fact", readable=False),
    Column(name="outcome", header="outcome", kind="fact"),
    Column(name="nan_step", header="step", kind="reproduced"),
    Column(name="nan_step_published", header="step", kind="published"),
    Column(name="nan_share", header="share of training", kind="reproduced", show=fixed(3)),
    Column(name="nan_share_published", header="share of training", kind="published"),
    Column(name="stable_grad_norm", header="stable grad norm", kind="reproduced", show=_short),
    Column(name="stable_grad_norm_published", header="stable grad norm", kind="published"),
    Column(name="peak_grad_norm", header="peak", kind="reproduced", show=_short),
    Column(name="last_grad_norm", header="last", kind="reproduced", show=_short),
    Column(name="elevated_from", header="elevated from", kind="reproduced", show=fixed(0)),
    Column(name="elevated_from_published", header="elevated from", kind="published"),
    Column(name="elevated_steps", header="elevated for", kind="reproduced"),
    Column(name="elevated_steps_published", header="elevated for", kind="published"),
    Column(name="signature", header="signature", kind="reproduced"),
    Column(name="signature_published", header="signature", kind="published"),
    Column(name="mechanism", header="reads", kind="reproduced"),
    Column(name="last_finite_loss", header="last finite loss", kind="reproduced", show=fixed(4)),
    Column(name="reason", header="reason", kind="fact", readable=False),
    Column(name="preset", header="preset", kind="fact", readable=False),
    Column(name="scale", header="scale", kind="fact", readable=False),
]


def divergence_of(frames: RunFrames, study: Study, key: str) -> Divergence:
    """A diverged run's classified history."""
    metrics = frames.metrics(key)
    train = metrics[metrics["split"] == "train"]
    return classify(train["step"], train["grad_norm"], warmup_steps=study.runs[key].spec.schedule.warmup_steps)


def table6(frames: RunFrames, study: Study, published: Published) -> Table:
    """The document's divergences, whatever became of them here, and every other run that diverged here."""
    print6 = published.table("table6", key=["method_id", "seed"])
    rows = []
    for key, run in _listed(frames, print6).iterrows():
        key, place = str(key), (run["method"], str(run["seed"]))
        name = (
            f"{run['method']}/s{run['seed']}"
            if run["scale"] == LARGE
            else f"{run['scale']}/{run['method']}/s{run['seed']}"
        )
        found = divergence_of(frames, study, key) if run["outcome"] == DIVERGED else None
        own = (key,)
        word = "no divergence" if run["outcome"] == "completed" else "missing"
        in_print = place in print6.index and run["scale"] == LARGE
        nan_step = printed(print6, place, "nan_step") if in_print else NOT_PRINTED
        mechanism = printed(print6, place, "mechanism") if in_print else NOT_PRINTED

        def of(value: float | None, word: str = word, own: tuple[str, ...] = own) -> Cell:
            return number(value, word, own)

        rows.append(
            {
                "run": Cell(name, own),
                "label": Cell(study.label(run["method"])),
                "seed": Cell(int(run["seed"])),
                "outcome": Cell(run["outcome"], own),
                "nan_step": of(int(run["step"]) if found else None),
                "nan_step_published": Cell(nan_step),
                "nan_share": of(run["step"] / run["steps"] if found else None),
                "nan_share_published": Cell(
                    nan_step if nan_step == NOT_PRINTED else f"{int(nan_step) / PAPER_STEPS:.3f}"
                ),
                "stable_grad_norm": of(found.stable, found.signature) if found else of(None),
                "stable_grad_norm_published": Cell(
                    printed(print6, place, "pre_nan_grad_norm") if in_print else NOT_PRINTED
                ),
                "peak_grad_norm": of(found.peak, "no norm") if found else of(None),
                "last_grad_norm": of(found.last, "no norm") if found else of(None),
                "elevated_from": of(found.elevated_from, "never") if found else of(None),
                "elevated_from_published": Cell(
                    printed(print6, place, "sustained_from_step") if in_print else NOT_PRINTED
                ),
                "elevated_steps": of(found.elevated_steps) if found else of(None),
                "elevated_steps_published": Cell(_printed_length(print6, place) if in_print else NOT_PRINTED),
                "signature": of(found.signature) if found else of(None),
                "signature_published": Cell(PRINTED.get(mechanism, mechanism)),
                "mechanism": of(MECHANISMS[found.signature]) if found else of(None),
                "last_finite_loss": of(float(run["last_finite_loss"]) if found else None),
                "reason": of(run["reason"] if found else None),
            }
            | context(study, run["scale"])
        )
    return Table(
        name="table6",
        title=f"Divergences at {study.scale_label(LARGE)} under the shared recipe.",
        study=study.name,
        preset=study.preset,
        key="run",
        columns=COLUMNS,
        rows=rows,
        notes=[
            "Signatures are read from gradient norms before clipping, after warm-up. Stable level: median of the first "
            f"half; elevated: above {ELEVATED:g} times it, up to the end. sudden: elevated for at most {BRIEF:.0%} of "
            f"the steps before; rise: longer, rank correlation with the step at least {MONOTONE:g} and {GROWTH:g} "
            "times higher at its end; inflation: longer, otherwise. A signature does not prove a mechanism.",
            f"{ARM}: not of the document; an absurd learning rate, so that a divergence is seen end to end.",
            *notes_of(study, frames),
        ],
        published=published.shown("table6"),
    )


def _listed(frames: RunFrames, print6: pd.DataFrame) -> pd.DataFrame:
    """Runs to show: printed divergences first, in the printed order, then other runs that diverged, then the arm."""
    runs = frames.runs
    place = {pair: position for position, pair in enumerate(print6.index)}
    pairs = [(method, str(seed)) for method, seed in zip(runs["method"], runs["seed"], strict=True)]
    known = [pair in place and scale == LARGE for pair, scale in zip(pairs, runs["scale"], strict=True)]
    order = [place[pair] if is_known else len(place) for pair, is_known in zip(pairs, known, strict=True)]
    shown = runs.assign(order=order, arm=runs["method"] == ARM)
    keep = pd.Series(known, index=runs.index) | (runs["outcome"] == DIVERGED) | shown["arm"]
    return shown[keep].sort_values(["arm", "order"], kind="stable")


def _printed_length(print6: pd.DataFrame, place: tuple[str, str]) -> str:
    """The printed rise or spike length."""
    rise = printed(print6, place, "grad_rise_steps")
    return rise if rise != NOT_PRINTED else printed(print6, place, "spike_steps")
