"""Ends of logs as other people's trainers print them: crashed runs are seen, and honest ones are not accused."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from plumbline.verdict.own_trainer import run_end
from plumbline.verdict.own_trainer.requests import Result
from plumbline.verdict.own_trainer.trainer_file import MetricPart

LOSS = MetricPart(pattern=r"val_loss:? ?([0-9.]+)")
JSON = MetricPart(json="rows.jsonl:val_loss")
VALUES = "step 50 val_loss 2.6\nstep 100 val_loss 2.5\n"

#: Prints that a run diverged, whatever the baseline states.
DIVERGED = """\
Loss NaN!
step 90 | Training Loss | nan
INFO train loss: -nan
loss [nan]
loss=Infinity
2026-01-02 INFO loss: nan resumed: False
step 100 best 2.1 loss nan lr: 0"""
#: Is seen unless a run of the baseline prints it too.
SIGNS = """\
[rank 0] NaN in the loss, stopping
rank 0: NaN detected in loss at step 90
NaN in the loss; last checkpoint kept
NaN loss at step 90, no checkpoint written, stopping
NaN loss! Stop without saving
NaN loss at step: 0
lr=0 nan loss
epoch 0: nan loss
NaN loss, if this persists lower lr
loss is not a number (nan), never recovers
Model diverged (NaN). Exiting.
Encountered NaN, exiting
nan detected, stopping early
NaN gradients -> exit
found NaN/Inf in gradients: exiting
Stopping: nan
ERROR nan
[nan, nan]
tensor([nan, 0.1])
Epoch 3 | nan | nan
Loss is inf, stopping training
error: loss is NaN
any NaN in the loss: True
NaN in batch: 812, aborting
rank 0 NaN gradients, stopping
NaN on device = 0, abort
Loss has NaNs, stopping
NaN detected. Exit code: 1
NaN in attention scale; exiting
isnan: True, exiting
too many NaN: 12
nan count=5 > 3: stop training
loss std: nan
val_loss std nan (n=1)
delta loss: nan
total_loss: nan
old loss nan -> new loss 2.0"""
#: Prints nothing.
HONEST = """\
any NaN in the loss: False
Loss contains NaN: False
nan loss: none
nan losses: 0
nan losses skipped=3
nan count 0 in loss
NaN check: ok
nan guard: off
0 of 300 losses were nan
contains nan -> False
NaNs: 0
loss ok, nan=False
has loss nan? False
no NaN in the loss
0 nan steps
WARNING: NaN loss encountered 0 times
loss (nan filtered): 2.2
best so far: loss inf
min loss: inf
val_loss improved from inf to 2.5, saving model
loss limit = inf
loss scale lowered after nan
NaN/Inf detected, reducing loss scale to 512.0
nan grads; loss scale -> 512
info: finance of nanotech in /data/nan/inf.pt"""


def result(path: Path, text: str, part: MetricPart = LOSS, rows: str = "", seconds: float = 0.0) -> Result:
    """A run that ended well and printed a text."""
    (path / "log").write_text(text)
    (path / "rows.jsonl").write_text(rows)
    end = run_end.read(part, path / "log", path)
    assert not end.unread and not end.diverged, end
    return Result(
        run_id=text,
        seed=1,
        outcome="finished",
        failed=[],
        signs=end.signs,
        place=end.place,
        interval=end.interval,
        last=end.last,
        last_held_out=end.last_held_out,
        seconds=seconds,
    )


@pytest.mark.parametrize("line", DIVERGED.splitlines())
def test_a_nan_of_the_loss_is_a_divergence(line: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_text(f"{VALUES}{line}\nbye\n")
    assert run_end.read(LOSS, tmp_path / "log", tmp_path).diverged


@pytest.mark.parametrize(
    ("line", "is_sign"), [(line, lines is SIGNS) for lines in (SIGNS, HONEST) for line in lines.splitlines()]
)
def test_a_line_that_no_run_of_the_baseline_has_is_a_sign(line: str, is_sign: bool, tmp_path: Path) -> None:
    plain, candidate = result(tmp_path, VALUES), result(tmp_path, f"{VALUES}{line}\nbye\n")
    theirs = result(tmp_path, f"{VALUES}{line.replace('90', '40').replace('0.1', '0.3')}\nbye\n")
    assert bool(run_end.compare(candidate, [plain] * 2, "val_loss").why) == is_sign, candidate.signs
    same = run_end.compare(candidate, [plain, theirs], "val_loss")
    assert not same.why and bool(same.remarks) == is_sign
    assert not run_end.compare(plain, [theirs] * 2, "val_loss").why
    before = result(tmp_path, f"step 20 val_loss 3\n{line}\n{VALUES}{line}\n")
    assert not run_end.compare(before, [plain] * 2, "val_loss").why  # it went on after it


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("grad_norm: nan", "z_loss: nan"),
        ("step 90: nan 0.1", "step 90: 0.1 nan"),
        ("mfu nan", "NaN in the logits"),
        ("accuracies: [nan, 0.1]", "logits: [nan, 0.1]"),
    ],
)
def test_a_nan_of_one_name_allows_none_of_another(theirs: str, ours: str, tmp_path: Path) -> None:
    baseline, candidate = result(tmp_path, f"{VALUES}{theirs}\n"), result(tmp_path, f"{VALUES}{ours}\n")
    assert run_end.compare(candidate, [baseline] * 2, "val_loss").why


def steps(last: int, interval: int = 50, line: str = "step {} val_loss 2.5", first: int | None = None) -> str:
    """Lines of a log up to a step."""
    return "".join(f"{line.format(at)}\n" for at in range(interval if first is None else first, last + 1, interval))


EPOCHS = "Epoch {}: val_loss 2.5"
BRACKETS = "Epoch [1/3], Step [{}/600], val_loss 2"
VALUE = "val_loss 2.{:03}"
SETTINGS = """\
Namespace(seed=1, epoch=10, lr=0.1)
max epoch: 10
epoch: 10
--epoch 10
Max step 1000
total step: 1000
warmup step: 200, decay step: 5000
loaded checkpoint of step 143000
steps in an epoch: 312
tokens / step: 524,288
flops / iteration: 123456789"""


@pytest.mark.parametrize("setting", SETTINGS.splitlines())
def test_a_setting_is_no_place_that_was_reached(setting: str, tmp_path: Path) -> None:
    whole, half = (result(tmp_path, f"{setting}\n{steps(last, 1, EPOCHS)}") for last in (10, 6))
    compared = run_end.compare(half, [whole] * 2, "val_loss")
    assert "ended at epoch 6" in compared.why
    other = result(tmp_path, f"{setting.replace('1', '3').replace('5', '2')}\n{steps(10, 1, EPOCHS)}")
    assert run_end.compare(other, [whole] * 2, "val_loss") == run_end.ComparedEnd()


@pytest.mark.parametrize(
    ("baseline", "candidate", "is_early"),
    [
        (f"{steps(300)}epoch 1 done", steps(100), True),  # that never prints the epoch
        (f"{steps(300)}epoch 1 done", steps(300), None),
        ("step 300 val_loss 2.5", "epoch 0 step 100 val_loss 2.5", True),
        (steps(600, 50, BRACKETS), steps(300, 50, BRACKETS), True),
        ("step 300 val_loss 2.5, next eval at step 600", "step 300 val_loss 2.5, next eval at step 500", None),
        ("sec / step 12 val_loss 2", "sec / step 8 val_loss 2", None),
        (f"tokens / step: 8,192\n{steps(300)}", f"tokens / step: 4,096\n{steps(300)}", None),
        (steps(400, 100), steps(300, 100), False),  # a budget of time and coarse lines
        (steps(400, 100), steps(200, 100), True),
        (steps(1250), steps(1250, 100), False),
        (steps(100, 1), steps(99, 1, first=0), False),
        (steps(20, 1, VALUE), steps(10, 1, VALUE), False),  # half as many values
        (steps(300), steps(6, 1, VALUE), False),
        ("{'val_loss 2.5': 0, 'epoch': 3.0}", "{'val_loss 2.5': 0, 'epoch': 2.98}", False),
        ("{'val_loss 2.5': 0, 'epoch': 3.0}", "{'val_loss 2.5': 0, 'epoch': 2.0}", True),
        (f"step {'9' * 400}\n{steps(300)}", f"step {'9' * 400}\n{steps(100)}", True),
    ],
)
def test_an_early_end_is_seen(baseline: str, candidate: str, is_early: bool | None, tmp_path: Path) -> None:
    compared = run_end.compare(result(tmp_path, candidate), [result(tmp_path, baseline)] * 2, "val_loss")
    assert (bool(compared.why), bool(compared.remarks)) == (bool(is_early), is_early is False), compared


def test_run_that_took_time_of_baseline_has_budget_of_time(tmp_path: Path) -> None:
    baseline = [result(tmp_path, steps(900), seconds=seconds) for seconds in (300.0, 302.0)]
    slower, crashed = (result(tmp_path, steps(600), seconds=seconds) for seconds in (303.0, 210.0))
    assert not run_end.compare(slower, baseline, "val_loss").why
    assert run_end.compare(crashed, baseline, "val_loss").why


def evaluated(*at: int, end: int = 100, every: int = 1, line: str = "step {} val_loss 2.5", epoch: int = 0) -> str:
    """A log of training to its end, with a value of the metric before the line of some of its steps."""
    lines = []
    for step in range(1, end + 1):
        name = f"epoch {step // epoch} step {step}" if epoch else f"step {step}"
        lines += [line.format(step).replace(f"step {step}", name)] if step in at else []
        lines += [f"{name} loss 2.6"] if step % every == 0 else []
    return "\n".join(lines)


TENTHS = tuple(range(10, 101, 10))
UNNAMED = "val_loss 2.5"
BASELINE = evaluated(*TENTHS)
#: Logs of a baseline and of a candidate, and whether the last value of the second is not of its end, or told to be.
VALUES_AND_ENDS = {
    "one evaluation": (BASELINE, evaluated(70), True),
    "every 35": (BASELINE, evaluated(35, 70), True),
    "every 45": (BASELINE, evaluated(45, 90), True),
    "one that is missing": (BASELINE, evaluated(*TENTHS[:-1]), True),
    "one step less as well": (BASELINE, evaluated(70, end=99), True),
    "half as far as well": (BASELINE, evaluated(10, end=50), True),
    "before the training": (BASELINE, f"val_loss 2.5\n{evaluated()}", True),
    "no step beside it": (evaluated(*TENTHS, line=UNNAMED), evaluated(70, line=UNNAMED), True),
    "in epochs": (evaluated(*TENTHS, epoch=20), evaluated(*TENTHS[:5], epoch=20), True),
    "within an epoch": (evaluated(*TENTHS, epoch=60), evaluated(*TENTHS[:7], epoch=60), True),
    "more often": (BASELINE, evaluated(*range(5, 101, 5)), None),
    "once, at the end": (BASELINE, evaluated(100), None),
    "further": (BASELINE, evaluated(*TENTHS, 110, end=110), None),
    "other lines of training": (
        evaluated(*TENTHS, every=10, line=UNNAMED),
        evaluated(*TENTHS, every=50, line=UNNAMED),
        None,
    ),
    "lines of training ten times as often": (
        evaluated(*TENTHS[:-1], every=20, line=UNNAMED),
        evaluated(*TENTHS[:-1], every=2, line=UNNAMED),
        False,  # between two lines of the baseline
    ),
    "that, and moved": (
        evaluated(*TENTHS[:-1], every=20, line=UNNAMED),
        evaluated(70, every=2, line=UNNAMED),
        True,
    ),
    "at the end, and just before": (
        f"{evaluated(every=20)}\n{UNNAMED}",
        f"{evaluated(90, every=2, line=UNNAMED)}",
        True,
    ),
    "steps of what comes behind": (f"{evaluated()}\n{UNNAMED}", f"{evaluated()}\n{UNNAMED}\n{evaluated(end=9)}", False),
    "steps that begin again": (
        f"{evaluated()}\n{evaluated()}\n{evaluated()}\n{UNNAMED}",
        f"{evaluated()}\n{UNNAMED}\n{evaluated()}\n{evaluated()}",
        True,
    ),
    "steps from 0": (BASELINE, evaluated(*TENTHS[:-1], 99, end=99), False),
    "twice the batch": (evaluated(*TENTHS, epoch=40), evaluated(25, 48, end=50, epoch=20), False),
    "the best checkpoint": (evaluated() + "\nstep 100 val_loss 2", evaluated() + "\nstep 70 val_loss 2", False),
    "a checkpoint, by the same line": (BASELINE, BASELINE + "\nstep 70 val_loss 2.5", False),
    "the best and its step": (
        f"{BASELINE}\nbest val_loss 2 at step 100",
        f"{BASELINE}\nbest val_loss 2 at step 60",
        None,
    ),
}


@pytest.mark.parametrize(("baseline", "candidate", "is_early"), VALUES_AND_ENDS.values(), ids=VALUES_AND_ENDS)
@pytest.mark.parametrize("seconds", [0.0, 300.0])
def test_a_value_of_an_earlier_step_is_seen_though_the_run_went_on(
    baseline: str, candidate: str, is_early: bool | None, seconds: float, tmp_path: Path
) -> None:
    ours, theirs = (result(tmp_path, text, seconds=seconds) for text in (candidate, baseline))
    compared = run_end.compare(ours, [theirs] * 2, "val_loss")
    if seconds and is_early and ours.place["step"] < 100:
        is_early = False  # a budget of time
    assert bool(compared.why) == bool(is_early), compared
    assert is_early or bool(compared.remarks) == (is_early is False), compared
    allowed = run_end.compare(ours, [theirs] * 2, "val_loss", may_be_shorter=True)
    assert not allowed.why and bool(allowed.remarks) == (is_early is not None)


def test_a_slower_run_with_a_budget_of_time_has_its_value_earlier(tmp_path: Path) -> None:
    baseline = [result(tmp_path, evaluated(200, 400, end=end), seconds=300.0) for end in (404, 405)]
    slower, moved = (result(tmp_path, evaluated(200, end=end), seconds=301.0) for end in (395, 405))
    assert not (told := run_end.compare(slower, baseline, "val_loss")).why and "of step 200" in "".join(told.remarks)
    assert run_end.compare(moved, baseline, "val_loss").why


@pytest.mark.parametrize("part", [JSON, MetricPart(pattern=LOSS.pattern, file="rows.jsonl")], ids=["json", "pattern"])
def test_the_best_value_in_a_file_of_its_own_is_told(part: MetricPart, tmp_path: Path) -> None:
    form = '{{"val_loss": 2.5, "step": {}}}' if part is JSON else "val_loss 2.5 of step {}"
    log = steps(100, 10, "step {} val 2.6")
    last, best, other = (result(tmp_path, log, part, form.format(at)) for at in (100, 90, 80))
    told = run_end.compare(best, [last] * 2, "val_loss")
    assert not told.why and "of step 90, and" in "".join(told.remarks)
    assert not run_end.compare(best, [last, other], "val_loss").why
    assert run_end.compare(last, [last] * 2, "val_loss") == run_end.ComparedEnd()
    # Rows in which the last one is missing are no such file, be they as few as two.
    rows = [form.format(at) for at in TENTHS]
    whole, moved = (result(tmp_path, log, part, "\n".join(each)) for each in (rows, rows[:2]))
    assert "of step 20, and" in run_end.compare(moved, [whole] * 2, "val_loss").why


def test_a_value_of_an_earlier_row_is_seen(tmp_path: Path) -> None:
    rows = [f'{{"step": {step}, "loss": 2.6, "val_loss": 2.5}}' for step in TENTHS]
    skipped = [*rows[:7], *(row.replace(', "val_loss": 2.5', "") for row in rows[7:])]
    whole, early = (result(tmp_path, "", JSON, "\n".join(each)) for each in (rows, skipped))
    assert "val_loss is of step 70, and" in run_end.compare(early, [whole] * 2, "val_loss").why
    assert run_end.compare(whole, [early] * 2, "val_loss") == run_end.ComparedEnd()
    twice = result(tmp_path, steps(100, 1), JSON, "\n".join(rows[6:7] * 2))
    assert "val_loss is of step 70, and" in run_end.compare(twice, [whole] * 2, "val_loss").why
    array = result(tmp_path, "", JSON, f"[{', '.join(skipped)}]")
    assert run_end.compare(array, [whole] * 2, "val_loss").why
    logs = [steps(100, 10, "step {} loss 2") for _ in range(2)]
    whole, fewer = (result(tmp_path, log, JSON, '{"val_loss": 2.5}\n' * n) for log, n in zip(logs, (10, 7)))
    compared = run_end.compare(fewer, [whole] * 2, "val_loss")
    assert not compared.why and "value 7 of val_loss" in "".join(compared.remarks)
    assert run_end.compare(whole, [whole] * 2, "val_loss") == run_end.ComparedEnd()


@pytest.mark.parametrize(
    ("settings", "other", "value", "held_out"),
    [
        ({"pattern": r"val_loss (\S+)"}, r"test_loss (\S+)", "step {} val_loss 2.5", "step {} test_loss 2.5"),
        (
            {"json": "rows.jsonl:val_loss"},
            "rows.jsonl:test_loss",
            '{{"step": {}, "val_loss": 2.5}}',
            '{{"step": {}, "test_loss": 2.5}}',
        ),
        ({"name": "val_loss"}, "", "step {}\nMETRIC val_loss=2.5", "step {}\nMETRIC test=2.5"),
    ],
    ids=["pattern", "json", "lines"],
)
def test_the_held_out_metric_has_a_last_value_of_its_own(
    settings: dict[str, str], other: str, value: str, held_out: str, tmp_path: Path
) -> None:
    part = MetricPart(**settings, others={"test": other}, held_out="test")  # type: ignore[arg-type]

    def run(*at: int) -> Result:
        lines = [line.format(step) for step in TENTHS for line in (value, held_out)[: 1 + (step in at)]]
        return result(tmp_path, "\n".join(lines), part, "\n".join(lines))

    whole, early = run(*TENTHS), run(70)
    assert not run_end.compare(early, [whole] * 2, "val_loss").why
    assert "its last test is of step" in run_end.compare(early, [whole] * 2, "test", held_out=True).why
    assert run_end.compare(whole, [whole] * 2, "test", held_out=True) == run_end.ComparedEnd()


def test_a_value_before_what_was_left_out_is_told(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(evaluated(70))
    end = run_end.read(LOSS, tmp_path / "log", tmp_path, begin=(tmp_path / "log").read_text().index("step 80"))
    lost = Result(
        run_id="", seed=1, outcome="finished", failed=[], place=end.place, interval=end.interval, last=end.last
    )
    assert "is not known" in "".join(run_end.compare(lost, [result(tmp_path, BASELINE)] * 2, "val_loss").remarks)


KINDS = '{{"step": {}, "split": "{}", "note": "{}", "time": "2026-01-0{}", "val_loss": 2.5}}'


def test_a_value_of_another_kind_of_rows_is_seen(tmp_path: Path) -> None:
    def run(*kinds: str, note: str = "a") -> Result:
        rows = [KINDS.format(at, kind, note if at > 8 else "b", at) for at in range(1, 10) for kind in kinds]
        return result(tmp_path, "", JSON, "\n".join(rows))

    both = [run("train", "val"), run("train", "val")]
    assert "of split 'train', and" in run_end.compare(run("val", "train"), both, "val_loss").why
    assert run_end.compare(run("train", "val"), both, "val_loss") == run_end.ComparedEnd()
    assert run_end.compare(run("val"), both, "val_loss") == run_end.ComparedEnd()
    assert run_end.compare(run("val", "train"), [run("val")] * 2, "val_loss").why
    other = run_end.compare(run("test"), [run("val")] * 2, "val_loss")
    assert not other.why and "of split 'test'" in "".join(other.remarks)
    noted = run_end.compare(run("train", "val", note="b"), both, "val_loss")
    assert noted == run_end.ComparedEnd(), "rows of several steps are of one kind"


TRAINED = {
    "a flag": ('{{"step": {0}, "train": true, "val_loss": {2}}}', '{{"step": {0}, "train": false, "val_loss": {1}}}'),
    "a digit": ('{{"step": {0}, "is_val": 0, "val_loss": {2}}}', '{{"step": {0}, "is_val": 1, "val_loss": {1}}}'),
    "a row within": (
        '{{"step": {0}, "meta": {{"split": "train"}}, "val_loss": {2}}}',
        '{{"step": {0}, "meta": {{"split": "val"}}, "val_loss": {1}}}',
    ),
    "printed": ("[train] step {0} val_loss {2}", "[val] step {0} val_loss {1}"),
    "printed, with a bar": ("step {0}: 10%|# | 5it/s train/val_loss {2}", "step {0}: 90%|##| 5s/it val/val_loss {1}"),
}


@pytest.mark.parametrize("forms", TRAINED.values(), ids=TRAINED)
def test_a_value_of_the_training_data_is_none_of_the_evaluation(forms: tuple[str, str], tmp_path: Path) -> None:
    part = JSON if forms[0].startswith("{") else LOSS

    def run(*, missing: int = 0, seed: int = 0) -> Result:
        lines = [form.format(at, 3 - at / 100 + seed, 2 - at / 100 + seed) for at in TENTHS for form in forms]
        text = "\n".join(lines[: len(lines) - missing])
        return result(tmp_path, text, part, text)

    baseline = [run(seed=seed) for seed in (0, 1)]
    assert "it is another measure" in run_end.compare(run(missing=1), baseline, "val_loss").why
    assert run_end.compare(run(seed=2), baseline, "val_loss") == run_end.ComparedEnd()


SECONDS_OF_ROWS = '{{"step": {}, "seconds": {}, "val_loss": 2}}'


@pytest.mark.parametrize(
    ("baseline", "candidate"),
    [
        # What the change itself differs in, and how it went.
        ('{"step": 9, "optimizer": "adamw", "val_loss": 2.5}', '{"step": 9, "optimizer": "muon", "val_loss": 2.4}'),
        (
            '{"step": 8, "best": true, "val_loss": 2}\n{"step": 9, "best": false, "val_loss": 2.5}',
            '{"step": 8, "best": true, "val_loss": 2}\n{"step": 9, "best": true, "val_loss": 1}',
        ),
        (
            '{"step": 9, "train": true, "best": true, "val_loss": 2}\n'
            '{"step": 9, "train": false, "best": false, "val_loss": 2.5}',
            '{"step": 9, "train": true, "best": true, "val_loss": 2}\n'
            '{"step": 9, "train": false, "best": true, "val_loss": 1}',
        ),
        (
            "\n".join(SECONDS_OF_ROWS.format(at, at + more) for at in range(6) for more in (0, 1)),
            "\n".join(SECONDS_OF_ROWS.format(at, at) for at in range(6) for _ in (0, 1)),
        ),
        # The best value is printed again.
        ("step 9 val_loss 2.5\nnew best at step 9: val_loss 2.501", "step 9 val_loss 2.6"),
        ("step 9: 50%|# | 5it/s val_loss 2\nstep 9: 99%|##| 5it/s val_loss 3", "step 9: 99%|##| 5s/it val_loss 3"),
    ],
)
def test_what_differs_beside_a_value_makes_no_other_kind_of_rows(baseline: str, candidate: str, tmp_path: Path) -> None:
    part = JSON if baseline.startswith("{") else LOSS
    ours, theirs = (result(tmp_path, text, part, text) for text in (candidate, baseline))
    compared = run_end.compare(ours, [theirs] * 2, "val_loss")
    assert not compared.why and "stands in a" not in "".join(compared.remarks), compared


def test_a_setting_in_rows_of_a_file_is_no_place(tmp_path: Path) -> None:
    row = '{{"config": {{"epoch": 10}}, "epoch": {}, "val_loss": 2.5}}'
    whole, half = (result(tmp_path, "", JSON, steps(last, 1, row)) for last in (10, 6))
    assert run_end.compare(half, [whole] * 2, "val_loss").why


@pytest.mark.parametrize(
    ("log", "is_sign"),
    [
        ("Traceback (most recent call last):\n  File x\nImportError: no flash\ndone", False),
        ("R2=nan\nstarting", False),
        ("Traceback (most recent call last):\n  File x\nRuntimeError: y\n", True),
        ("starting\nNaN loss, exiting\n", True),
    ],
)
def test_what_is_printed_beside_a_file_counts_at_its_end(log: str, is_sign: bool, tmp_path: Path) -> None:
    assert bool(result(tmp_path, log, JSON, '{"step": 10, "val_loss": 2.5}').signs) == is_sign


@pytest.mark.parametrize("unit", ["nan, ", "a_", "a ", "'", " ", "nan nan=", "loss_", "step 1 ", "loss=inf ", "[nan "])
def test_reading_a_long_line_takes_time_in_proportion(unit: str, tmp_path: Path) -> None:
    seconds = []
    for length in (2_000, 16_000):
        (tmp_path / "log").write_text(f"{VALUES}[{unit * (length // len(unit))} nan]\n" * 4)
        begin = time.process_time()
        assert not run_end.read(LOSS, tmp_path / "log", tmp_path).unread
        seconds.append(time.process_time() - begin)
    assert seconds[1] < 24 * max(seconds[0], 0.005)


def test_a_helper_that_the_shell_ends_is_one_also_where_it_wrote(tmp_path: Path) -> None:
    how = "monitor.py: a signal"
    candidate = Result(run_id="", seed=1, outcome="finished", failed=[how])
    for theirs in (how, f"{how}, ended by another process of it"):
        baseline = Result(run_id="", seed=1, outcome="finished", failed=[], failed_beside=[theirs])
        compared = run_end.compare(candidate, [baseline], "val_loss")
        assert not compared.why and "the baseline have it" in compared.remarks[0]
