"""Trains nothing: arms whose values are a function of arm and seed, for the benchmark of loops and the tests of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from plumbline.verdict.decision.experiment import BASELINE, ArmRun
from plumbline.verdict.evidence import RunEvidence

Value = Callable[[str, int], float | str]


class NumbersTrainer:
    """Arms whose values are a function; a text is an outcome without a value."""

    group, at_once = "numbers", 1

    def __init__(self, value: Value, name: str = "new", **more: Any) -> None:
        self.value, self.name, self.made = value, name, list[tuple[str, int]]()
        self.__dict__.update(more)

    def method(self, arm: str) -> str:
        return BASELINE if arm == BASELINE else self.name

    def run_id(self, arm: str, seed: int) -> str:
        return f"{self.method(arm)}/{seed}"

    def evidence(self, run: ArmRun) -> RunEvidence:
        """Collect what is known of a run: what it says itself."""
        return run.evidence

    def run(self, pairs: Sequence[tuple[str, int]]) -> Iterator[ArmRun]:
        for arm, seed in pairs:
            self.made.append((arm, seed))
            value = self.value(arm, seed)
            outcome = {"outcome": value, "value": None} if isinstance(value, str) else {"value": value}
            fingerprint = getattr(self, "machine", "m")
            yield ArmRun(arm=arm, seed=seed, run_id=self.run_id(arm, seed), fingerprint=fingerprint, **outcome)
