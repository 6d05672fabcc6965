"""Inputs of the page of `mine=`: made-up runs of a study, and the verdict on them, without training.

What the workflow's rule does is called here as it calls it; this is the one input module that knows a door's module.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.kept_verdicts.carry_out import KeptInput, Show, words_of_picture
from tests.kept_verdicts.normalise import normalised_json

if TYPE_CHECKING:
    from tests.experiment.own_method.test_own_verdict import Made

REPOSITORY = Path(__file__).resolve().parents[2]


def _page(change: Callable[[Made], object], gain: float, **asked: object) -> Callable[[Path], str]:
    """The page of made-up runs whose method gains so much, after a change to them."""

    def render(folder: Path) -> str:
        # pandas and torch, which no other input needs
        from plumbline.experiment.own_method import own_verdict
        from tests.experiment.own_method.test_own_verdict import Made

        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(REPOSITORY)  # whose studies it extends
            words = {"base/capped": "held at 128 tokens (caps/base/capped/s42)"}
            patch.setattr(own_verdict.trained_checks, "causality", lambda *_: words)  # the runs have no weights
            made = Made(folder, gain=gain, **asked)
            change(made)
            sentence = made.write()
        numbers = normalised_json(made.page.with_suffix(".json").read_text(), folder)
        picture = words_of_picture(made.page.with_suffix(".svg").read_text())
        parts = {"what the workflow prints": sentence, "file caps.md": made.page.read_text(), "file caps.json": numbers}
        parts["words of file caps.svg"] = picture
        return "\n\n".join(f"=== {title}\n{text.rstrip()}" for title, text in parts.items())

    return render


def _diverges(method: str, seed: int) -> Callable[[Made], object]:
    def change(made: Made) -> None:
        from tests.studies.transfer.synthetic_runs import history

        made.world.diverged("base", method, seed, 20, history("sudden", 20))

    return change


def _nothing(made: Made) -> None:
    pass


def _kept(name: str, gain: float, change: Callable[[Made], object] = _nothing, **asked: object) -> KeptInput:
    return KeptInput(name=name, steps=(Show("the verdict on made-up runs", _page(change, gain, **asked)),))


def _larger(made: Made) -> None:
    made.run("large", "baseline", 43, 4.8)
    made.run("large", "capped", 43, 4.78)


INPUTS = (
    _kept("mine_improves", 0.05, _larger, larger_seeds=[42, 43], tries=20),
    _kept("mine_ruled_out", 0.0),
    _kept("mine_implausible", 1.0),
    _kept("mine_diverged", 0.05, _diverges("capped", 43)),
    _kept(
        "mine_baseline_diverged",
        0.05,
        _diverges("baseline", 46),
    ),
)
