"""The input of the page of `mine=`: made-up runs of a study, and the verdict on them, without training.

What the workflow's rule does is called here as it calls it: this module, and the stand-ins of `study_inputs.py`, are
all that names a module of a door. The runs are made once, and changed from one verdict to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.kept_verdicts.carry_out import Show, VerdictInput, words_of_picture
from tests.kept_verdicts.normalise import normalise_json

if TYPE_CHECKING:
    from tests.operate.experiments.test_own_verdict import Made

REPOSITORY = Path(__file__).resolve().parents[2]
CANDIDATE, LAST_OF_BASELINE = 43, 46


def _nothing(case: Made) -> None:
    pass


def _loses(method: str, seed: int) -> Callable[[Made], None]:
    def change(case: Made) -> None:
        from tests.studies.transfer.synthetic_runs import history

        case.world.diverged("base", method, seed, 20, history("sudden", 20))

    return change


#: What is done to the runs before each verdict.
STATES = {
    "a gain, announced as one of 20 tries": _nothing,
    "a seed of the method diverged": _loses("capped", CANDIDATE),
    "a seed of the baseline diverged": _loses("baseline", LAST_OF_BASELINE),
}


def _verdicts(folder: Path) -> Iterator[str]:
    # pandas and torch, which few other inputs need
    from plumbline.operate.experiments import own_verdict
    from tests.operate.experiments.test_own_verdict import MINE, Made

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(REPOSITORY)  # whose studies it extends
        messages = {"base/capped": "held at 128 tokens (caps/base/capped/s42)"}
        patch.setattr(
            own_verdict.finished_run_checks, "check_finished_runs", lambda *_: messages
        )  # the runs have no weights
        case = Made(folder, gain=0.05, planned_tries=20)
        for title, change in STATES.items():
            change(case)
            yield f"### {title}\n=== what the workflow prints\n{case.write()}\n"
            yield f"=== file caps.md\n{case.page.read_text()}"
            if change is _nothing:
                numbers = normalise_json(case.page.with_suffix(".json").read_text(), folder)
                picture = words_of_picture(case.page.with_suffix(".svg").read_text())
                yield f"=== file caps.json\n{numbers}\n\n=== words of file caps.svg\n{picture}\n"
                case.file.write_text(yaml.safe_dump(MINE))


INPUTS = (
    VerdictInput(name="mine", steps=(Show("the page of mine=caps.yaml", lambda folder: "\n".join(_verdicts(folder))),)),
)
