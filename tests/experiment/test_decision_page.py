"""The page, picture, sentence and terminal of a decision: nothing but its own numbers, whatever names and values are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

from plumbline.experiment import decision_page
from plumbline.experiment.decision_sentences import sentence
from plumbline.experiment.outcome import BASELINE, ArmRun, Decision, ExperimentTerms
from plumbline.stats.after_stopping import estimate
from plumbline.stats.sequential import SequentialDesign, boundary, statistic

BANK = (5.0021, 5.0043, 4.9972, 5.0011, 4.9993)
HISTORY = (0.003, 20.0)
HOSTILE = "<script>alert(1)</script>\u202e`|](http://x) &amp;\x07\uffff\ud800"


def decided(values: Sequence[float], lost: Sequence[ArmRun] = (), bank: Sequence[float] = BANK, **terms: Any) -> Decision:
    """A decision on these values of a candidate, as the loop makes it."""
    said: dict[str, Any] = {"name": "x", "baseline": "plain", "candidate": "cosine", "metric": "loss", "higher": False}
    said |= {"design": SequentialDesign(bank=len(bank), most=8, history_df=HISTORY[1]), "history": HISTORY} | terms
    known = ExperimentTerms(**said)
    edges, looks = boundary(known.design), []
    for count in range(1, len(values) + 1):
        asked = {"higher": known.higher, "min_gain": known.min_gain, "history": known.history}
        looks.append(statistic(bank, values[:count], **asked))
        if looks[-1].t >= edges.keep[count - 1] or looks[-1].t <= edges.discard[count - 1]:
            break
    verdict, found = "crashed" if lost else "undecided", None
    if looks and not lost:
        last = looks[-1]
        verdict = "keep" if last.t >= edges.keep[last.k - 1] else verdict
        verdict = "discard" if last.t <= edges.discard[last.k - 1] else verdict
        found = estimate(known.design, looks, verdict)
    runs = [ArmRun(arm=BASELINE, seed=100 + place, value=value) for place, value in enumerate(bank)]
    runs += [ArmRun(arm=known.candidate, seed=1 + place, value=value) for place, value in enumerate(values)]
    made = Decision(
        terms=known,
        verdict=verdict,
        runs=(*runs, *lost),
        looks=tuple(looks),
        boundary=edges,
        sentence="",
        estimate=found,
    )
    return replace(made, sentence=sentence(made))


def drawn(decision: Decision) -> ElementTree.Element:
    """The picture, read as a browser reads XML."""
    return ElementTree.fromstring(decision_page.picture(decision).svg())


def of_class(picture: ElementTree.Element, tag: str, name: str) -> list[ElementTree.Element]:
    return [one for one in picture.iter(f"{{http://www.w3.org/2000/svg}}{tag}") if one.get("class") == name]
