"""Makes Table 6: what diverged, when, and what its gradient norms looked like before.

Source: transfer study, section 5.3 and Table 6. The rules are in `plumbline.studies.transfer.divergence_pattern`.
"""

from __future__ import annotations

import pandas as pd

from plumbline.core.run_files import COMPLETED, DIVERGED, MISSING
from plumbline.published.printed_numbers import NOT_PRINTED, PrintedNumbers, read_printed
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.shared_columns import OUTCOME, make_table, number_column, text_column
from plumbline.results.tables.table import (
    CONTEXT_ALONE,
    Cell,
    Column,
    Table,
    context_cells,
    make_printed_cell,
    make_published_column,
    number_cell,
)
from plumbline.specs.study_config import Study

from ..divergence_pattern import BRIEF, ELEVATED, GROWTH, MECHANISMS, MONOTONE, PAPER_STEPS, PRINTED, read_divergence
from ..headline_runs import LARGE

ARM = "provoked_divergence"
PROVOKED = "not of the paper; an absurd learning rate, so that a divergence is seen end to end."


#: The columns that name a row's run.
RUN = [
    Column(name="run", header="Run", kind="label", narrow=True),
    Column(name="label", header="Method", kind="label", readable=False),
    Column(name="seed", header="seed", kind="fact", format="d", readable=False),
]

COLUMNS = [
    *RUN,
    OUTCOME,
    number_column("first_nan_step", "NaN at step", "d"),
    make_published_column("first_nan_step", "NaN at step"),
    number_column("first_nan_training_fraction", "share of training", ".3f", narrow=True),
    make_published_column("first_nan_training_fraction", "share of training"),
    number_column("grad_norm_before_rise", "stable grad norm", ".3g"),
    make_published_column("grad_norm_before_rise", "stable grad norm"),
    number_column("peak_grad_norm", "peak grad norm", ".3g"),
    number_column("last_grad_norm", "last grad norm", ".3g"),
    number_column("first_step_of_high_grad_norm", "grad norm elevated from step", ".0f"),
    make_published_column("first_step_of_high_grad_norm", "grad norm elevated from step"),
    number_column("steps_with_high_grad_norm", "grad norm elevated for steps", "d"),
    make_published_column("steps_with_high_grad_norm", "grad norm elevated for steps"),
    text_column("divergence_pattern", "signature", narrow=True),
    Column(name="divergence_pattern_published", header="signature", kind="published", narrow=True),
    text_column("suggested_divergence_mechanism", "suggested mechanism"),
    number_column("last_finite_loss", "last finite loss", ".4f"),
    Column(name="divergence_reason", header="divergence reason", kind="fact", readable=False),
    *CONTEXT_ALONE,
]


def table6(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """The paper's divergences, whatever became of them here, and every other run that diverged here."""
    print6 = published.table("table6", key=["method_id", "seed"])
    rows = []
    for key, run in list_runs(frames, print6).iterrows():
        place = (run["method"], str(run["seed"])) if run["scale"] == LARGE else ("", "")
        row = {
            "run": Cell(name_of(run), (str(key),)),
            "label": Cell(study.label(run["method"])),
            "seed": Cell(int(run["seed"])),
            "outcome": Cell(run["outcome"], (str(key),)),
        }
        row |= _history(frames, str(key), run) | _cells_in_print(print6, place)
        rows.append(row | context_cells(study, run["scale"]))
    absent = [f"{method}/s{seed}" for method, seed in print6.index if frames.key(LARGE, method, int(seed)) is None]
    return make_table(
        "table6",
        f"Divergences at {study.scale_label(LARGE)} under the shared recipe.",
        study,
        key="run",
        columns=COLUMNS,
        rows=rows,
        notes=[
            "Signatures are read from gradient norms before clipping, after warm-up. Stable level: median of the first "
            f"half; elevated: above {ELEVATED:g} times it, up to the end, with at most {BRIEF:.0%} of the steps "
            f"between two such norms. sudden: elevated for at most {BRIEF:.0%} of the steps before; rise: longer, rank "
            f"correlation with the step at least {MONOTONE:g} and {GROWTH:g} times higher at its end; inflation: "
            "longer, otherwise. A signature does not prove a mechanism.",
            "Section B, what probes say of these runs' attention and logits, is the target attention_concentration.",
            "Training ends at the first loss or gradient norm that is no number; how HybridNorm's seed 44, printed "
            "with norms of about 14 after it, goes on is out of scope (interpretation after_divergence).",
            *([f"{ARM}: {PROVOKED}"] if ARM in study.definition.get("arms", {}) else []),
            *([f"Printed, and no run of this study: {', '.join(absent)}."] if absent else []),
        ],
        published=published.format_path("table6"),
    )


def name_of(run: pd.Series) -> str:
    """A run's name in the table; without its scale where that is the large one."""
    name = f"{run['method']}/s{run['seed']}"
    return name if run["scale"] == LARGE else f"{run['scale']}/{name}"


def _history(frames: RunFrames, key: str, run: pd.Series) -> dict[str, Cell]:
    """How a run diverged, or the word for why it did not."""
    numbers = (
        "first_nan_step",
        "first_nan_training_fraction",
        "grad_norm_before_rise",
        "peak_grad_norm",
        "last_grad_norm",
        "first_step_of_high_grad_norm",
    )
    numbers += ("steps_with_high_grad_norm", "last_finite_loss")
    own = (key,)
    if run["outcome"] != DIVERGED:
        word = "no divergence" if run["outcome"] == COMPLETED else MISSING
        reasons = {
            name: Cell(word, own)
            for name in ("divergence_pattern", "suggested_divergence_mechanism", "divergence_reason")
        }
        return {name: Cell(None, own, word=word) for name in numbers} | reasons
    divergence = read_divergence(frames, key)
    return {
        "first_nan_step": Cell(int(run["step"]), own),
        "first_nan_training_fraction": Cell(float(run["step"] / run["steps"]), own),
        "grad_norm_before_rise": number_cell(divergence.stable, divergence.signature, own),
        "peak_grad_norm": number_cell(divergence.peak, "no norm", own),
        "last_grad_norm": number_cell(divergence.last, "no norm", own),
        "first_step_of_high_grad_norm": number_cell(divergence.elevated_from, "never", own),
        "steps_with_high_grad_norm": Cell(divergence.elevated_steps, own),
        "last_finite_loss": number_cell(float(run["last_finite_loss"]), "no finite loss", own),
        "divergence_pattern": Cell(divergence.signature, own),
        "suggested_divergence_mechanism": Cell(MECHANISMS[divergence.signature], own),
        "divergence_reason": Cell(run["reason"], own),
    }


def _cells_in_print(print6: pd.DataFrame, place: tuple[str, str]) -> dict[str, Cell]:
    """What the paper prints of a run; it prints either the length of a rise or that of a spike."""
    nan_step, mechanism = read_printed(print6, place, "nan_step"), read_printed(print6, place, "mechanism")
    share = nan_step if nan_step == NOT_PRINTED else f"{int(nan_step) / PAPER_STEPS:.3f}"
    rise, spike = read_printed(print6, place, "grad_rise_steps"), read_printed(print6, place, "spike_steps")
    return {
        "first_nan_step_published": make_printed_cell(nan_step),
        "first_nan_training_fraction_published": make_printed_cell(share),
        "grad_norm_before_rise_published": make_printed_cell(read_printed(print6, place, "pre_nan_grad_norm")),
        "first_step_of_high_grad_norm_published": make_printed_cell(read_printed(print6, place, "sustained_from_step")),
        "steps_with_high_grad_norm_published": make_printed_cell(spike if rise == NOT_PRINTED else rise),
        "divergence_pattern_published": Cell(PRINTED.get(mechanism, mechanism)),
    }


def list_runs(frames: RunFrames, print6: pd.DataFrame) -> pd.DataFrame:
    """Runs to show: printed divergences first, in the printed order, then other runs that diverged, then the arm."""
    runs = frames.runs
    place = {pair: position for position, pair in enumerate(print6.index)}
    pairs = [(method, str(seed)) for method, seed in zip(runs["method"], runs["seed"], strict=True)]
    is_printed = [pair in place and scale == LARGE for pair, scale in zip(pairs, runs["scale"], strict=True)]
    order = [place[pair] if is_known else len(place) for pair, is_known in zip(pairs, is_printed, strict=True)]
    ordered = runs.assign(order=order, arm=runs["method"] == ARM)
    keep = pd.Series(is_printed, index=runs.index) | (runs["outcome"] == DIVERGED) | ordered["arm"]
    return ordered[keep].sort_values(["arm", "order"], kind="stable")
