"""The first values that runs print tell whether seeds had an effect, where rounding noise hides it in the last one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plumbline.core.errors import PlumblineError
from plumbline.verdict.decision.experiment import BASELINE
from plumbline.verdict.own_trainer.first_values import are_one_run, read_first_values
from plumbline.verdict.own_trainer.trainer_file import MetricPart
from tests.verdict.own_trainer.trainers import make, trainer

#: Its seed is parsed and forgotten; sums in an unsteady order make its last value differ, as on a GPU
#: (in so many digits that two are never equal by chance).
FORGETS = """\
import argparse, os, random
parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int)
parser.add_argument("--gain", type=float, default=0.0)
parser.parse_args()
random.seed(1)
for step in range(6):
    print(f"iter {step}: loss {4 - step / 9 + random.random():.4f}, lr 0.001")
print(f"val_bpb: {1 + random.Random(os.urandom(8)).gauss(0, 1e-5):.15f}")
"""


@pytest.mark.parametrize(
    ("lines", "values"),
    [
        ("params 124.5, lr 3.0e-4\nstep 0: train loss 10.98, val loss 10.97\nval_bpb: 3.1", ["10.98", "10.97", "3.1"]),
        ("loss=2.303\r loss=2.303\rloss=2.298\nloss scale: 65536.0\n", ["2.303", "2.298"]),
        ("{'loss': '2.5', 'epoch': 0.1}\nMETRIC q=7\nval_bpb: nan", ["2.5", "nan"]),
        ("".join(f"loss: {n}.5\n" for n in range(9)), ["0.5", "1.5", "2.5", "3.5", "4.5"]),
    ],
)
def test_values_of_the_metric_and_of_losses_are_the_first(tmp_path: Path, lines: str, values: list[str]) -> None:
    (tmp_path / "log").write_text(lines)
    assert read_first_values(MetricPart(pattern=r"val_bpb: (\S+)"), tmp_path / "log", tmp_path) == values


def test_values_of_a_file_come_after_printed_ones(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("loss 3.25\n")
    rows = [{"step": 1, "train": {"loss": 3.0}}, {"eval": {"nll": 2.75}}]
    (tmp_path / "m.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert read_first_values(MetricPart(json="m.jsonl:eval.nll"), tmp_path / "log", tmp_path) == ["3.25", "3.0", "2.75"]


def test_runs_are_one_where_all_five_values_are_equal() -> None:
    first = ["4.134", "4.021", "3.904", "3.811", "3.707"]
    assert are_one_run(first, first) and not are_one_run(first, [*first[:4], "3.7070"])
    coarse = ["10.80", "10.50", "10.20", "9.90", "9.60"]  # which may be equal by chance
    assert not are_one_run(coarse, coarse)
    assert not are_one_run(first[:4], first[:4]) and not are_one_run(first, None) and not are_one_run(first)


def test_a_forgotten_seed_is_the_trainers_fault(tmp_path: Path) -> None:
    folder = make(tmp_path / "mine", FORGETS)
    arms = trainer(folder, "--gain", "1")
    with pytest.raises(PlumblineError, match=r'seeds 1, 2 all printed 4\.1344, .* first; .*seed = "inject"') as caught:
        list(arms.run([(BASELINE, 1), (BASELINE, 2)]))
    assert caught.value.exit_code == 13
    (run,) = trainer(folder, "--gain", "1").run([(BASELINE, 1)])
    assert len(arms.evidence(run).printed_first or ()) == 5
