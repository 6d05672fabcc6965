"""Synthetic runs of the quack study with chosen ends, written as training and probing write them."""

from __future__ import annotations

import copy
import math
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.measurements import measurement_file
from plumbline.results.runs.expected_runs import list_expected_runs
from plumbline.results.runs.finished_runs import RunFrames, load
from plumbline.specs import study_config
from tests.studies.run_files import MadeRun, exchange_runs, make_run, write_run

ROOT = Path(__file__).resolve().parents[3]
PUBLISHED = PrintedNumbers(ROOT / "studies" / "quack" / "published")
STUDY = "quack"

#: Evaluations of a synthetic run.
POINTS = 20


@dataclass(kw_only=True)
class Facts:
    """How one run ended. `rise`: by how much its held-out loss went up late in training, and came back from; `logits`:
    the largest one at the start and at the end; `ratio`: the highest that QuacK's ratio of norms came to."""

    loss: float = 3.0
    outcome: str = "completed"
    rise: float = 0.0
    logits: tuple[float, float] = (4.0, 40.0)
    change: float = 0.1
    ratio: float = 1.5
    clamped: int = 0


World = dict[str, Facts]
Mutant = Callable[[World], World]


@cache
def study_at(preset: str = "paper") -> study_config.Study:
    """The study under a preset."""
    return study_config.load(STUDY, preset)


def key(scale: str, method: str, eta: float | None = None, tau: float | None = None) -> str:
    """A run's key: of a point, or of a variant or arm named in full."""
    point = [f"{axis}_{value:g}" for axis, value in (("eta", eta), ("tau", tau)) if value is not None]
    return f"{STUDY}/{scale}/{method}{'.' if point else ''}{'-'.join(point)}/s42"


ETAS, TAUS = (3e-4, 3e-3, 3e-2), (0.01, 0.1, 1, 10)

#: Final losses by attention, method and base rate, where the summary is right; the best tau's for those with one.
LOSSES = {
    "mha": {"default": (3.40, 3.00, 0), "qk_norm": (3.30, 2.85, 2.78), "quack": (3.36, 2.90, 2.80),
            "ablation": (3.37, 2.95, 2.99)},
    "mla": {"default": (3.45, 4.40, 0), "qk_clip_30": (3.44, 3.05, 3.35), "qk_clip_100": (3.43, 3.02, 0),
            "quack": (3.38, 2.95, 2.85), "ablation": (3.39, 3.00, 3.10)},
}  # fmt: skip

#: tau -> how much above the best one a run ends, at each base rate; infinite: it diverges.
ABOVE = {0.01: (0.30, 0.08, 0.03), 0.1: (0.10, 0.0, 0.0), 1: (0.0, 0.05, 0.20), 10: (0.15, 0.40, math.inf)}


def right(preset: str = "paper") -> World:
    """Ends of all runs where the summary is right: QuacK is stable at the highest rate, the default is not; QK norm is
    slightly better, QK-clip and the fixed rate are worse; a large tau diverges, a small one is slow."""
    facts_by_run: World = {}
    for scale, methods in LOSSES.items():
        for method, losses in methods.items():
            for number, (eta, loss) in enumerate(zip(ETAS, losses, strict=True)):
                if method not in ("quack", "ablation"):
                    facts_by_run[key(scale, method, eta)] = Facts(loss=loss) if loss else Facts(outcome="diverged")
                    continue
                for tau in TAUS:
                    end = loss + ABOVE[tau][number]
                    diverged = math.isinf(end)
                    facts_by_run[key(scale, method, eta, tau)] = (
                        Facts(outcome="diverged") if diverged else Facts(loss=end)
                    )
        facts_by_run[key(scale, "quack_tau_0p001")] = Facts(loss=3.4)
        facts_by_run[key(scale, "quack_tau_100")] = Facts(outcome="diverged")
        facts_by_run[key(scale, "quack.spectral")] = Facts(loss=facts_by_run[key(scale, "quack", 3e-3, 1)].loss - 0.004)
    facts_by_run[key("mla", "default", 3e-3)].rise = 1.2
    for name, loss in (("one_rate", 3.1), ("no_weight_decay", 3.02)):
        facts_by_run[key("mha", f"default.{name}")] = Facts(loss=loss)
    for name in ("default.latent_norm", "quack.latent_norm"):
        facts_by_run[key("mla", name)] = Facts(loss=2.97)
    assert set(facts_by_run) == set(study_at(preset).runs)
    return facts_by_run


@dataclass
class Written:
    """A world's files below `root`, under a preset; of one that was made of another (`before`) only measurements."""

    root: Path
    facts: World
    preset: str = "paper"
    before: Written | None = None
    study: study_config.Study = field(init=False)

    def __post_init__(self) -> None:
        self.study = study_at(self.preset)
        for name, facts in self.facts.items() if self.before is None else ():
            write_run(self.root, self._make(name, facts))

    def changed(self, mutant: Mutant, root: Path) -> Written:
        """The same with what a mutant makes of it."""
        if (self.root / "measured").exists():
            shutil.copytree(self.root / "measured", root / "measured")
        return Written(root, mutant(copy.deepcopy(self.facts)), self.preset, self)

    def load(self, *groups: str) -> RunFrames:
        """The frames of these groups of runs, by default of all that are not made on request."""
        expected = list_expected_runs(None, self.study, groups or self.study.usual_groups, self.root)
        names = {name: measurement.key for name, measurement in self.study.measurements.items()}
        if self.before is None:
            return load(expected, self.root, probes=True, measurements=names)
        changed = [run.key for run in expected if self.facts.get(run.key) != self.before.facts.get(run.key)]
        anew = {name: self._make(name, self.facts[name]) if name in self.facts else None for name in changed}
        return exchange_runs(self.before.load(*groups), anew, self.root)

    def measured(self, name: str, frame: pd.DataFrame, **facts: Any) -> Written:
        """Write a measurement."""
        path = measurement_file.frame_path(self.root, f"measured/{STUDY}/{name}")
        path.parent.mkdir(parents=True, exist_ok=True)
        measurement_file.write(frame, path, {"fingerprint": "m" * 16, "device": "cpu", "device_name": "here"} | facts)
        return self

    def _make(self, name: str, facts: Facts) -> MadeRun:
        spec = self.study.runs[name].spec
        completed = facts.outcome == "completed"
        last = spec.train.steps if completed else round(0.6 * spec.train.steps)
        at = np.unique(np.linspace(0, last, POINTS + 1).astype(int))[1:]
        return make_run(
            spec, self._metrics(spec, facts, at), self._probes(spec, facts, at), step=last, loss=facts.loss,
            diverged="" if completed else "not finite",
            outcome={"interventions": [self._report(entry["name"], facts) for entry in spec.interventions]},
        )  # fmt: skip

    @staticmethod
    def _report(name: str, facts: Facts) -> dict[str, Any]:
        decided = {"ratio_lowest": 0.2, "ratio_highest": facts.ratio, "ratios_clamped": facts.clamped}
        return decided if name == "quack" else {}

    def _metrics(self, spec, facts: Facts, steps: np.ndarray) -> pd.DataFrame:
        """Falls from 9 to its end; of a run with a rise, the last but second evaluation stands above all before."""
        falling = facts.loss + (9 - facts.loss) * np.exp(-5 * steps / steps[-1])
        falling -= falling[-1] - facts.loss
        if facts.rise and len(falling) > 3:
            falling[-3] = falling[:-3].min() + facts.rise
        common = {"grad_norm": 1.0, "learning_rate": spec.optimizer.learning_rate}
        rows = [
            {"step": step, "split": split, "loss": loss, "tokens": step * spec.train.batch_tokens} | common
            for step, loss in zip(steps, falling, strict=True)
            for split in ("train", "validation")
        ]
        return pd.DataFrame(rows)

    def _probes(self, spec, facts: Facts, steps: np.ndarray) -> pd.DataFrame:
        start, end = facts.logits
        line = [(0, 0.0), *((int(step), step / steps[-1]) for step in steps)]
        rows: list[dict[str, Any]] = [
            {
                "probe": "logit_max",
                "layer": steps,
                "head": steps,
                "step": step,
                "value": start + part * (end - start) + steps - 1,
            }
            for steps in (0, 1)
            for step, part in line
        ]
        # What watches a step reads every so many and in the last one, which is all of them where they are few.
        every = next(entry["every"] for entry in spec.interventions if entry["name"] == "logit_change")
        for step, part in line[1:] if steps[-1] > every else line[-1:]:
            watched = {"logit_change": facts.change, "logit_change_max": 5 * facts.change}
            watched |= {"logit_max": start + part * (end - start) - 0.5}
            rows += [
                {"probe": name, "layer": None, "head": None, "step": step, "value": value}
                for name, value in watched.items()
            ]
        read = pd.DataFrame(rows).astype({"layer": "Int64", "head": "Int64"})
        read = read.assign(run_id=spec.run_id, null=np.nan, source="online")
        return read.assign(fraction=read["step"] / spec.train.steps)


#: Methods that are timed, and the runs that stand for them.
TIMED = {"qk_norm": "qk_norm.eta_0.003", "quack": "quack.eta_0.003-tau_1", "default": "default.eta_0.003"}


def times(**seconds: float) -> pd.DataFrame:
    """A measurement in which steps take so long; every fifth turn all of them take twice as long."""
    rows = [
        {"scale": "mha", "method": TIMED[method], "repeat": turn, "place": 0, "seconds": value * slow}
        for method, value in seconds.items()
        for turn, slow in enumerate([1, 1, 1, 1, 2] * 4)
    ]
    frame = pd.DataFrame(rows).assign(sequences=96, context=2048, micro_batch=8, precision="bfloat16")
    return frame.assign(norms_per_block=[4.0 if "qk_norm" in method else 2.0 for method in frame["method"]])
