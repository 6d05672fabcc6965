"""Synthetic run directories of the premature study, written as training, probing and evaluation write them.

A world is facts by run (`Facts`); a mutant is a function that changes them before they are written.
"""

from __future__ import annotations

import atexit
import math
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.runs import finished_runs
from plumbline.results.runs.expected_runs import ExpectedRun, list_expected_runs
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.specs import study_config
from plumbline.studies.premature.release_rule_replay import LOGGED
from tests.studies.run_files import MadeRun, exchange_runs, make_run, write_run

ROOT = Path(__file__).resolve().parents[3]
PUBLISHED = PrintedNumbers(ROOT / "studies" / "premature" / "published")

SEEDS = (42, 43, 44)

#: Final perplexities. The pairs of Tables 3 and 7 are two of Table 1's three; the third follows from its mean.
PPL = {"gpt": (26.7382, 26.849, 26.8071), "gpt_slow": (26.1524, 26.413, 26.3388)}
PPL |= {"gpt_rmsnorm": (26.70,), "gpt_rmsnorm_slow": (26.70 - 0.5179,)}
PPL |= {"gpt_biasless": (26.60,), "gpt_biasless_slow": (26.60 - 0.3928,)}
PPL |= {"gpt_swiglu": (26.2083,), "gpt_swiglu_slow": (26.1008,), "gpt_geglu": (26.3627,), "gpt_geglu_slow": (26.3078,)}
PPL |= {"llama_layernorm": (26.40,), "llama_layernorm_slow": (26.40 - 0.2253,)}
PPL |= {"llama": (26.3712,), "llama_slow": (26.3531,), "gpt_gelu2560": (27.1,), "entropy_floor": (26.678,)}
PPL |= {"global_half_lr": (31.418,), "fixed_3pct": (26.2274,), "fixed_6pct": (26.2703,)}
PPL |= {"mult_0p5": (26.337,), "mult_0p125": (26.226,)}
LARGE_LOSS = {"gpt": (2.9025, 2.9028, 2.9031), "gpt_slow": (2.9025 - 0.0071, 2.9028 - 0.0067, 2.9031 - 0.0075)}

#: Percent of the budget that is not needed to reach the control's loss, by seed; of other runs, of the first seed.
SAVED = {"gpt_slow": (14.80, 12.36, 12.35), "fixed_3pct": (13.92,), "fixed_6pct": (13.07,)}
LARGE_SAVED = tuple(100 * (1 - tokens / 7.0) for tokens in (6.444, 6.461, 6.478))

#: Upper entropy and logit at 3 % of training (Tables 3, 6, 9 and 10).
EARLY = {"gpt": (0.6215, 1.3081), "gpt_slow": (0.9657, 0.4287), "gpt_rmsnorm": (0.621, 1.308)}
EARLY |= {"gpt_biasless": (0.629, 1.263), "gpt_swiglu": (0.708, 1.044), "gpt_geglu": (0.729, 0.983)}
EARLY |= {"llama_layernorm": (0.725, 0.972), "llama": (0.723, 0.979), "gpt_gelu2560": (0.675, 1.1496)}
EARLY |= {"entropy_floor": (0.799, 0.861), "global_half_lr": (0.9, 0.6), "fixed_3pct": (0.9655, 0.4343)}
EARLY |= {"fixed_6pct": (0.9665, 0.4308), "mult_0p5": (0.836, 0.775), "mult_0p125": (0.984, 0.342)}

#: FFN write of the upper half and of its first layer at 3 % (Table 5); displacement (Table 10).
WRITES = {"gpt": (0.1205, 0.1262), "gpt_gelu2560": (0.0938, 0.0960)}
WRITES |= {"gpt_swiglu": (0.0542, 0.0469), "gpt_geglu": (0.0573, 0.0505)}
DISPLACED = {"gpt": 3.272, "mult_0p5": 1.691, "gpt_slow": 0.705, "mult_0p125": 0.333}

#: Entropy, logit and perplexity lost by the ablation over training (Figure 3, section 5.3).
POINTS = (0.0, 0.01, 0.02, 0.03, 0.06, 0.12, 0.2, 0.5, 1.0)
ENTROPY = {"gpt": (0.987, 0.95, 0.80, 0.6215, 0.60, 0.59, 0.58, 0.60, 0.62)}
ENTROPY |= {"gpt_slow": (0.987, 0.985, 0.975, 0.9657, 0.93, 0.82, 0.729, 0.68, 0.66)}
LOGIT = {"gpt": (0.306, 0.4, 0.9, 1.3081, 1.5, 1.6, 1.6, 1.5, 1.5)}
LOGIT |= {"gpt_slow": (0.306, 0.31, 0.35, 0.4287, 0.6, 0.8, 1.0, 1.1, 1.2)}
LOST = {"gpt": (0.0, 0.5, 20.0, 82.3, 100.0, 110.0, 120.0, 135.0, 146.1)}
LOST |= {"gpt_slow": (0.0, 0.05, 0.1, 0.35, 1.0, 3.0, 6.0, 12.0, 17.4)}
COPY = (0.0036, 0.0038, 0.0045, 0.0052, 0.0085, 0.012, 0.0164, 0.025, 0.03)
#: At 20 % (appendix E).
FIFTH = {"global_half_lr": (0.66, 0.0103)}

#: Percent of training -> logged score at the evaluations of the release rule: crosses 0.005 at 3 %, 0.007 at 4.5 %.
NULL = 0.0036
SCORES = ((0.0, 0.0036), (2.8, 0.0048), (3.0, 0.0052), (4.2, 0.0068), (4.5, 0.0072), (12.0, 0.013))

#: Task -> control's accuracy, mean and deviation of the paired difference in points (Table 2).
TASKS = PUBLISHED.numbers("table2").drop("mean")


@dataclass
class Facts:
    """One run. `run_values`: (probe, part) -> fraction -> (value, null); parts are those of `RunValues`, and `lower`.

    `saved`: percent of the budget before its end at which the held-out loss is at the control's; None: never.
    """

    loss: float
    saved: float | None = None
    control_loss: float = math.nan
    run_values: dict[tuple[str, str], dict[float, tuple[float, float]]] = field(default_factory=dict)
    logged: list[tuple[int, float, float]] = field(default_factory=list)
    tasks: dict[str, float] = field(default_factory=dict)
    outcome: str = "completed"


World = dict[str, Facts]
Mutant = Callable[[World], World]


@cache
def study_at(preset: str = "paper") -> study_config.Study:
    """The study."""
    return study_config.load("premature", preset)


def make_published_facts(preset: str = "paper") -> World:
    """Facts that give what the paper prints, for every run of the study."""
    return {key: _facts(run.spec) for key, run in study_at(preset).runs.items()}


def _facts(spec) -> Facts:
    method, large = spec.method, spec.scale == "large"
    place = SEEDS.index(spec.init_seed)
    loss = LARGE_LOSS[method][place] if large else math.log(PPL[method][place])
    control = LARGE_LOSS["gpt"][place] if large else math.log(PPL["gpt"][place])
    saved = (LARGE_SAVED if large and method != "gpt" else SAVED.get(method, ()))[place : place + 1]
    facts = Facts(loss=loss, control_loss=control, saved=saved[0] if saved else None)
    facts.run_values = _values(spec, method)
    if any(entry.get("release") == "online" for entry in spec.interventions):
        facts.logged = list_scores(spec.train.steps)
    if method in ("gpt", "gpt_slow") and not large:
        facts.tasks = tasks(method, place)
    return facts


def tasks(method: str, place: int) -> dict[str, float]:
    """Scores of a seed: the control's are the printed means, the differences have printed mean and deviation."""
    accuracies = {}
    for number, (task, row) in enumerate(TASKS.iterrows()):
        shift = (-1, 0, 1)[(place + number) % 3] * row["delta_pp_std"] + row["delta_pp_mean"]
        value = row["control_mean"] + (shift / 100 if method == "gpt_slow" else 0.0)
        accuracies["lambada_openai" if task == "lambada" else str(task)] = value
    return accuracies


def list_scores(steps: int) -> list[tuple[int, float, float]]:
    """Scores on the 0.5 % grid up to 12 %."""
    grid = sorted({round(0.005 * number * steps) for number in range(25)})
    percents, scores = zip(*SCORES, strict=True)
    return [(step, float(np.interp(100 * step / steps, percents, scores)), NULL) for step in grid]


def _values(spec, method: str) -> dict[tuple[str, str], dict[float, tuple[float, float]]]:
    fractions = sorted({fraction for probe in spec.probes for fraction in probe.at})
    kin = method if method in ("gpt", "gpt_slow") else "gpt_slow" if EARLY.get(method, (0,))[0] > 0.8 else "gpt"
    entropy, logit = EARLY.get(method, EARLY["gpt_slow"])
    values_by_probe: dict[tuple[str, str], dict[float, tuple[float, float]]] = {}

    def put(probe: str, part: str, curve, *, at_early: float | None = None, null: float = math.nan) -> None:
        values = {fraction: float(np.interp(fraction, POINTS, curve)) for fraction in fractions}
        values |= {0.03: at_early} if at_early is not None else {}
        values_by_probe[probe, part] = {fraction: (value, null) for fraction, value in values.items()}

    put("entropy", "upper", ENTROPY[kin], at_early=entropy, null=1.0)
    put("entropy", "lower", ENTROPY["gpt_slow"], null=1.0)
    put("logit_mean_abs", "upper", LOGIT[kin], at_early=logit)
    put("logit_mean_abs", "lower", LOGIT["gpt_slow"])
    put("lower_copy", "model", COPY, null=NULL)
    if method in FIFTH:
        entropy_20, copy_20 = FIFTH[method]
        values_by_probe["entropy", "upper"][0.2], values_by_probe["lower_copy", "model"][0.2] = (
            (entropy_20, 1.0),
            (copy_20, NULL),
        )
    write, first = WRITES.get(method, WRITES["gpt"])
    put("ffn_write_rms", "upper", [0.073] * 3 + [write] * 6, at_early=write)
    put("ffn_write_rms", "first_upper", [0.073] * 3 + [first] * 6, at_early=first)
    put("ffn_write_rms", "lower", [0.073] * 9)
    moved = DISPLACED.get(method, 1.0)
    put(
        "bilinear_displacement", "upper", [moved * x for x in (0, 0.3, 0.6, 1, 1.2, 1.4, 1.5, 1.5, 1.5)], at_early=moved
    )
    put("bilinear_displacement", "lower", [0.0] + [2.0] * 8)
    put("bilinear_relative", "upper", [moved / 3.078 * x for x in (0, 0.3, 0.6, 1, 1.2, 1.4, 1.5, 1.5, 1.5)])
    put("bilinear_top", "upper", [0.526] + [0.526 + 0.4 * moved] * 8)
    if any(probe.name == "upper_ablation" for probe in spec.probes):
        ppl = [600.0, 300.0, 150.0, 100.0, 60.0, 45.0, 38.0, 30.0, 26.5]
        put("loss", "model", [math.log(perplexity) for perplexity in ppl])
        for kind in ("loss_no_query", "loss_no_key", "loss_neither"):
            put(kind, "model", [math.log(perplexity + lost) for perplexity, lost in zip(ppl, LOST[kin], strict=True)])
    if any(probe.name == "locality" for probe in spec.probes):
        ratios = (0.63, 0.58, 0.18) if kin == "gpt" else (0.49, 0.46, 0.16)
        for suffix in ("", "_calibrated"):
            values_by_probe[f"locality_query{suffix}", "upper"] = {0.03: (ratios[0], 0.174)}
            values_by_probe[f"locality_key{suffix}", "upper"] = {0.03: (ratios[1], 0.174)}
            values_by_probe[f"projector_rank{suffix}", "upper"] = {0.03: (90.0, math.nan)}
        values_by_probe["projector_share", "model"] = {0.03: (ratios[2], 90 / 960)}
    return values_by_probe


def write_runs(facts: World, root: Path, preset: str = "paper") -> Path:
    """Write every run of `facts` below `root`, which is given back; those as published at paper size are linked,
    to be read only."""
    published = _make_facts() if preset == "paper" else {}
    for key, run in facts.items():
        if run == published.get(key):
            _link(key, root)
        else:
            write_run(root, _make(study_at(preset).runs[key].spec, run))
    return root


def _link(key: str, root: Path) -> None:
    for part in ("runs", "probes", "scores"):
        there, here = published_once() / part / key, root / part / key
        if there.exists():
            here.parent.mkdir(parents=True, exist_ok=True)
            here.symlink_to(there)


def load_where(change: Callable[[World], object]) -> RunFrames:
    """The frames of the published facts with a change; nothing is written."""
    facts = {key: _copy(run) for key, run in _make_facts().items()}
    change(facts)
    changed = [key for key, run in _make_facts().items() if facts.get(key) != run]
    assert changed, "nothing is changed"
    runs = {key: _make(study_at().runs[key].spec, facts[key]) if key in facts else None for key in changed}
    return exchange_runs(load_published(), runs)


@cache
def load_published() -> RunFrames:
    """The frames of all runs of the published world, read once a process."""
    return load_frames(published_once())


def load_frames(root: Path, *groups: str, preset: str = "paper") -> RunFrames:
    """The frames of some groups, of all runs by default."""
    study = study_at(preset)
    expected = list_expected_runs(None, study, groups or study.usual_groups, root)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(finished_runs, "_read_frame", _frame)
        return finished_runs.load(expected, root, average="seven_avg", probes=True)


READ_ANEW, READ = finished_runs._read_frame, {}  # noqa: SLF001


def _frame(path: Path, name: str, run: ExpectedRun) -> pd.DataFrame | None:
    """What is linked from the published world is read once a process."""
    file = path.resolve()
    if not file.is_relative_to(published_once()):
        return READ_ANEW(path, name, run)
    if file not in READ:
        READ[file] = READ_ANEW(path, name, run)
    return READ[file]


def _make(spec, run: Facts) -> MadeRun:
    steps, whole = spec.train.steps, run.outcome == "completed"
    step = steps if whole else steps // 2
    return make_run(
        spec, make_metrics(spec, run), _probes(spec, run, step / steps), _scores(spec, run) if run.tasks else None,
        step=step, loss=run.loss, diverged="" if whole else "loss is not finite",
        outcome={"interventions": [_report(spec, entry, run) for entry in spec.interventions]},
    )  # fmt: skip


def _report(spec, entry, run: Facts) -> dict:
    if entry.get("release") == "fixed":
        return {
            "released": round(entry["release_at"] * spec.train.steps),
            "fraction": entry["release_at"],
            "why": "fixed",
        }
    if run.logged:
        return {"released": 191, "fraction": 191 / 4768, "why": "score"}
    return {"released": None, "fraction": None, "why": None}


def make_metrics(spec, run: Facts) -> pd.DataFrame:
    """A held-out loss that is linear in tokens, through the control's final loss as `saved` states, to its own."""
    steps, every = spec.train.steps, spec.train.validate_every
    at = np.array([*range(every, steps, every), steps])
    slope = 1.0 if run.saved is None else (run.control_loss - run.loss) / (run.saved / 100)
    loss = run.loss + max(slope, 1e-6) * (1 - at / steps)
    common = {"learning_rate": 2.5e-4, "tokens": at * spec.train.batch_tokens}
    train = pd.DataFrame({"step": at, "split": "train", "loss": loss, "grad_norm": 0.2} | common)
    held_out = pd.DataFrame({"step": at, "split": "validation", "loss": loss, "grad_norm": math.nan} | common)
    return pd.concat([train, held_out], ignore_index=True)


def _probes(spec, run: Facts, until: float) -> pd.DataFrame:
    """Two heads to a layer, a little apart; the mean over a part is the fact's."""
    rows, layers = [], spec.model.layers
    half = layers // 2

    def add(probe, fraction, layer, head, value, null, source="offline", step=None):
        step = round(fraction * spec.train.steps) if step is None else step
        rows.append((step, fraction, layer, head, probe, value, null, source))

    for (probe, part), curve in run.run_values.items():
        for fraction, (value, null) in curve.items():
            if fraction > until:
                continue
            if part == "model":
                add(probe, fraction, None, None, value, null)
                continue
            first = run.run_values.get((probe, "first_upper"), {}).get(fraction, (math.nan, math.nan))[0]
            chosen = {"upper": range(half, layers), "lower": range(half), "first_upper": [half]}[part]
            if part == "upper" and not math.isnan(first):
                # The first upper layer stands for itself, the others make up the mean.
                value, chosen = (len(chosen) * value - first) / (len(chosen) - 1), range(half + 1, layers)
            for layer in chosen:
                for head, shift in enumerate((0.99, 1.01)):
                    add(probe, fraction, layer, head, value * shift, null)
    for step, score, null in run.logged:
        add(LOGGED, step / spec.train.steps, None, None, score, null, "online", step)
    columns = ["step", "fraction", "layer", "head", "probe", "value", "null", "source"]
    frame = pd.DataFrame(rows, columns=columns).assign(run_id=spec.run_id)
    return frame.astype({"layer": "Int64", "head": "Int64", "value": float, "null": float})


def _scores(spec, run: Facts) -> pd.DataFrame:
    values = pd.Series(run.tasks) if run.outcome == "completed" else pd.Series(dtype=float)
    average = {"seven_avg": values.mean()} if len(values) else {}
    values = pd.concat([values, pd.Series(average, dtype=float)])
    frame = pd.DataFrame({"task": values.index.astype(str), "value": values.to_numpy(dtype=float)})
    frame["metric"] = ["seven_avg" if task == "seven_avg" else "acc" for task in frame["task"]]
    frame = frame.assign(run_id=spec.run_id, stderr=0.01, items=100, task_source="benchmark", primary=True)
    return frame.assign(harness_version="0.4.13")


@cache
def published_once() -> Path:
    """The published world at paper size, written once a process. Read only."""
    root = Path(tempfile.mkdtemp(prefix="plumbline-premature-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    for key, run in make_published_facts().items():
        write_run(root, _make(study_at().runs[key].spec, run))
    return root


def _copy(run: Facts) -> Facts:
    """A run whose facts may be changed; a NaN in them stays the very same one, or it would count as a change."""
    values = {name: dict(curve) for name, curve in run.run_values.items()}
    return replace(run, run_values=values, logged=list(run.logged), tasks=dict(run.tasks))


@cache
def _make_facts() -> World:
    """What others are compared with; nobody changes it."""
    return make_published_facts()
