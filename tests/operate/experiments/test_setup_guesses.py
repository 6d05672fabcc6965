"""Which number of a first log is the metric: the last value, and neither the best one nor that of another name."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from plumbline.core.errors import PlumblineError
from plumbline.operate.experiments import setup_guesses
from plumbline.verdict.own_trainer import metric, run_end
from plumbline.verdict.own_trainer.trainer_file import MetricPart

#: Logs whose metric ends at 0.9; 0.8 was its best.
LOGS = {
    "Minimum": "Step 0 | Eval bpb: 1.0\nStep 9 | Eval bpb: 0.9\nPeak memory: 12.3MiB\nMinimum eval bpb: 0.8",
    "minimum": "0 | validation bpb: 1.0\n9 | validation bpb: 0.9\nminimum validation bpb: 0.8",
    "min": "val loss 1.0\nval loss 0.9\nMin val loss 0.8",
    "record": "val_loss: 1.0\nval_loss: 0.9\nnew record: val_loss: 0.8",
    "peak": "step 1 val acc 0.7\nstep 2 val acc 0.9\npeak val acc 0.8",
    "maximum": "step 1 test accuracy 0.7\nstep 2 test accuracy 0.9\nMAXIMUM test accuracy = 0.8",
    "best on its line": "epoch 1 val_loss: 1.0 best val_loss: 0.8\nepoch 2 val_loss: 0.9 best val_loss: 0.8",
    "best before it": "epoch 1 best val_loss: 0.8 val_loss: 1.0\nepoch 2 best val_loss: 0.8 val_loss: 0.9",
    "best in brackets": "epoch 1 val_loss: 1.0 (best 0.8)\nepoch 2 val_loss: 0.9 (best: 0.8)",
    "a last line of the best": "epoch 1 val_loss: 1.0\nepoch 2 val_loss: 0.9\nBest model at epoch 1, val_loss 0.8",
    "marked": "Epoch 1 val_loss 1.0\nEpoch 2 val_loss 0.9 *best*",
    "words for something else": "1 val_loss 1.0 peak memory 3 max_lr 0.1\n12 min, max lr 0.5 val_loss 0.9 record 3",
    "minutes": "12 min val_loss: 1.0\n13 min val_loss: 0.9",
    "a name within a name": "val loss: 1.0\nrecordings/loss: 5\nloss: 5\nval loss: 0.9",
    "quoted": "{'loss': '5'}\n{'eval_loss': '1.0', 'epoch': '1.0'}\n{'eval_loss': '0.9', 'epoch': '2.0'}",
    "quoted JSON": '{"val_loss": "1.0"}\n{"val_loss": "0.9"}',
    "coloured": "1 val_loss: \x1b[32m1.0\x1b[0m\n\x1b[1m2\x1b(B\x1b[m val_loss: \x1b]0;x\x07\x1b[38;5;12m0.9\x1b[0m",
}


@pytest.mark.parametrize("log", LOGS.values(), ids=LOGS)
def test_the_last_value_is_the_metric(log: str, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(log)
    first, *others = setup_guesses.metrics(path, tmp_path)
    assert not first.name.startswith("best_") and first.text == "0.9"
    for guess in (first, *others):
        text = metric.read(MetricPart(**guess.settings), path, tmp_path).text  # type: ignore[arg-type]
        assert metric.number(text) == float(guess.text), guess
        assert guess.name.startswith("best_") == (guess.text == "0.8"), guess


def test_numbers_of_a_file_may_be_quoted(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text('{"val": 3, "test": "3/7", "loss": "nan", "val_loss": "2.5"}\n')
    metrics = {guess.name: guess.text for guess in setup_guesses.metrics(tmp_path / "none", tmp_path)}
    assert metrics == {"val_loss": "2.5", "loss": "nan"}


@pytest.mark.parametrize(
    "value", [".:$PYTHONPATH", '"src:${PYTHONPATH}"', ".${PYTHONPATH:+:$PYTHONPATH}", "$OLD_PYTHONPATH:."]
)
def test_a_command_may_add_to_the_python_path(value: str) -> None:
    setup_guesses.require_python_path(f"cd x; PYTHONPATH={value} python train.py --pythonpath=3 MY_PYTHONPATH=a")


@pytest.mark.parametrize(("value", "written"), [(".", ".:"), ("'src'", "src:"), ('"a b"', "a b:"), ("", "")])
def test_a_command_that_replaces_the_python_path_is_refused(value: str, written: str) -> None:
    with pytest.raises(PlumblineError, match=rf'PYTHONPATH="{written}\$PYTHONPATH"'):
        setup_guesses.require_python_path(f"export PYTHONPATH={value}; python train.py")


def test_generator_of_script_s_own_is_no_seed_that_is_shifted(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("rng = torch.Generator()\nrng.manual_seed(1337)\nset_seed(config.seed)\n")
    assert "(set_seed(config.seed))" in setup_guesses.seed(script)[1]
    script.write_text("rng.manual_seed(1337)\n")
    assert "sets no seed" in setup_guesses.seed(script)[1]


def test_a_metric_of_an_earlier_step_is_told(tmp_path: Path) -> None:
    steps = [f"iter {10 * step}: train loss 2.{step}" for step in range(30)]
    early = tell_early(["test final score: 3/500 = 0.60% correct", *steps], tmp_path)
    assert "train_loss was printed" in early and "--metric train_loss" in early
    assert not tell_early([*steps, "test final score: 3/500 = 0.60% correct"], tmp_path)
    assert not tell_early([*steps, "step 300: val loss 2.1", *steps[:9]], tmp_path), "a few steps after an evaluation"
    assert not tell_early(["step 0: val loss 2.1", *(each.replace("train loss", "time") for each in steps)], tmp_path)


def test_a_number_with_a_comma_is_the_metric_and_no_part_of_it(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("loss 3.1\nval_loss: 3,007020\n")
    first, other = setup_guesses.metrics(tmp_path / "log", tmp_path)
    assert (first.name, first.text, other.text) == ("val_loss", "3,007020", "3.1") and metric.number(first.text) is None
    (tmp_path / "log").write_text("val_loss: 3.1,acc: 5\nval_loss: 3, lr 1\n")
    assert setup_guesses.metrics(tmp_path / "log", tmp_path)[0].text == "3"


def test_flags_and_words_of_a_line_are_told_as_kinds_of_rows(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text(
        "".join(
            json.dumps({"step": 1, "meta": {"train": train}, "loss": 2 + train}) + "\n" for train in (True, False, True)
        )
    )
    (tmp_path / "log").write_text("[train] step 1 loss 3\n[val] step 1 loss 2\n")
    part = MetricPart(json="log.jsonl:loss")
    (told,) = setup_guesses.list_kinds_of_rows(part, run_end.read(part, tmp_path / "log", tmp_path).last)
    pattern = re.search(r"pattern = '(.*)' under", told)
    assert pattern and "rows of meta.train 'true' and of 'false'" in told
    named = MetricPart(file="log.jsonl", pattern=pattern[1])
    assert metric.read(named, tmp_path / "log", tmp_path).value == 3
    printed = MetricPart(pattern=r"loss (\S+)")
    (told,) = setup_guesses.list_kinds_of_rows(printed, run_end.read(printed, tmp_path / "log", tmp_path).last)
    assert "lines 'val step loss' and 'train step loss'" in told


@pytest.mark.parametrize("separators", [None, (",", ":")])
def test_kinds_of_rows_are_told_with_what_reads_one_of_them(separators: tuple[str, str] | None, tmp_path: Path) -> None:
    rows = [{"eval": {"loss": 3 - at}, "split": kind, "step": at} for at in (1, 2) for kind in ("train", "val")]
    (tmp_path / "log.jsonl").write_text("\n".join(json.dumps(row, separators=separators) for row in rows))
    (tmp_path / "log").write_text("")
    part = MetricPart(json="log.jsonl:eval.loss")
    (told,) = setup_guesses.list_kinds_of_rows(part, run_end.read(part, tmp_path / "log", tmp_path).last)
    assert "rows of split 'val' and of 'train'" in told
    written = re.search(r"""write file = "(.*?)" and pattern = '(.*)' under""", told)
    assert written
    named = MetricPart(file=written[1], pattern=written[2])
    assert named.called == "loss" and metric.read(named, tmp_path / "log", tmp_path).value == 1
    (tmp_path / "log.jsonl").write_text("\n".join(json.dumps(row, separators=separators) for row in rows[:-1]))
    assert metric.read(named, tmp_path / "log", tmp_path).value == 2, "the last of that kind"
    again = run_end.read(named, tmp_path / "log", tmp_path).last
    assert not setup_guesses.list_kinds_of_rows(named, again)


def tell_early(lines: list[str], folder: Path) -> str:
    (folder / "log").write_text("\n".join(lines))
    chosen, *others = setup_guesses.metrics(folder / "log", folder)
    return setup_guesses.describe_early(chosen, [chosen, *others])
