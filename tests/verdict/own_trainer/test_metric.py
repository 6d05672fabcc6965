"""The last value that a log contains, however long the log and however bad the pattern."""

from __future__ import annotations

import math
import time
from pathlib import Path

import pytest

from plumbline.core.errors import PlumblineError
from plumbline.verdict.own_trainer.metric import LeftOut, last_lines, read
from plumbline.verdict.own_trainer.trainer_file import MetricPart


def test_the_last_match_counts_and_bars_of_progress_are_lines(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("val_bpb: 1.5\nstep 1 val_bpb: 1.4\rstep 2\rval_bpb: 1.25 mem: 7\nmem: 9\nbye\n")
    metric = MetricPart(pattern=r"val_bpb: (\S+)", others={"mem": r"mem: (\d+)", "none": r"never (\d)"})
    reading = read(metric, log, tmp_path)
    assert (reading.value, reading.text, reading.others) == (1.25, "1.25", {"mem": 9.0})


def test_a_value_before_unread_bytes_is_not_the_last(tmp_path: Path) -> None:
    log, metric, head = tmp_path / "log", MetricPart(pattern=r"val: (\S+)"), "val: 0.1\n"
    log.write_text(f"{head}{'x' * 100}\nbye\n")
    begin, end = len(head), len(head) + 101
    assert read(metric, log, tmp_path, left_out=LeftOut(begin=begin, end=end)).value == 0.1
    unread = LeftOut(begin=begin, end=end, unread=100)
    assert read(metric, log, tmp_path, left_out=unread).value is None
    log.write_text(f"{log.read_text()}val: 0.2\n")
    assert read(metric, log, tmp_path, left_out=unread).value == 0.2


def test_colours_and_quotes_are_no_part_of_a_number(tmp_path: Path) -> None:
    log, pattern = tmp_path / "log", MetricPart(pattern=r"^val_loss: (\S+)$")
    log.write_bytes(b"val_loss: 9\n\x1b[2K\x1b[1mval_loss:\x1b(B\x1b[m \x1b[32m2.5\x1b[0m\x1b]0;done\x07\nval_loss 8\n")
    assert read(pattern, log, tmp_path).value == 2.5
    log.write_bytes(b"val_loss: 9\x1b[1Gval_loss: 2.5\x1b[1A\r\n")
    assert read(pattern, log, tmp_path).value == 2.5
    log.write_bytes(b"\x1b[1mMETRIC loss=\x1b[31m2.5\x1b[0m\n")
    assert read(MetricPart(name="loss"), log, tmp_path).value == 2.5
    log.write_text("{'eval_loss': '2.5', 'epoch': '1.0'}\n")
    assert read(MetricPart(pattern=r"'eval_loss': (\S+)"), log, tmp_path).value == 2.5
    assert read(MetricPart(pattern=r"'epoch': (\S+)"), log, tmp_path).value == 1.0
    (tmp_path / "rows.jsonl").write_text('{"loss": "2.5"}\n')
    assert read(MetricPart(json="rows.jsonl:loss"), log, tmp_path).value == 2.5
    assert last_lines(log) == ["{'eval_loss': '2.5', 'epoch': '1.0'}"]


def test_rows_of_json_and_metric_lines(tmp_path: Path) -> None:
    rows = '{"eval": {"loss": 2.5}, "step": 1}\n{"eval": {"loss": NaN}}\n{"step": 3}\n{"torn": '
    (tmp_path / "run.jsonl").write_text(rows)
    score = read(MetricPart(json="run.jsonl:eval.loss", others={"step": "run.jsonl:step"}), tmp_path / "log", tmp_path)
    assert score.value is not None and math.isnan(score.value) and score.others == {"step": 3.0}
    (tmp_path / "final.json").write_text('{\n "a.b": 1,\n "loss": 3\n}\n')
    assert read(MetricPart(json="final.json:loss"), tmp_path / "log", tmp_path).value == 3.0
    assert read(MetricPart(json="final.json:a.b"), tmp_path / "log", tmp_path).value == 1.0
    assert read(MetricPart(json="gone.json:loss"), tmp_path / "log", tmp_path).value is None
    (tmp_path / "log").write_text("METRIC loss=3.5\nMETRIC loss=3.25\nMETRIC mfu=0.4\n")
    score = read(MetricPart(name="loss"), tmp_path / "log", tmp_path)
    assert (score.value, score.others) == (3.25, {"mfu": 0.4})


def test_huge_logs_and_backtracking_take_bounded_time(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with open(log, "w") as file:
        file.write("loss: 9\n")
        file.truncate(2**31)  # 2 GiB in one line of zeros
        file.seek(0, 2)
        file.write("\nloss: 1.5\n" + "x" * 2**22)
    began = time.monotonic()
    assert read(MetricPart(pattern=r"loss: (\S+)"), log, tmp_path).value == 1.5
    log.write_text("a" * 5000 + "!\n")
    with pytest.raises(PlumblineError, match=r"not read in 0.5 s"):
        read(MetricPart(pattern=r"((?:a+)+)$"), log, tmp_path, seconds=0.5)
    assert time.monotonic() - began < 5
    log.write_text("loss: n/a\n")
    with pytest.raises(PlumblineError, match=r"'n/a',.*number"):
        read(MetricPart(pattern=r"loss: (\S+)"), log, tmp_path)


@pytest.mark.parametrize(
    ("pattern", "line", "value"),
    [
        (r"ppl: ([\d.]+)", "eval ppl: 1,248.04", "'1,248.04', .* comma"),
        (r"ppl: (\d+)", "eval ppl: 12,248", "'12,248', .* comma"),
        (r"ppl: (\S+)", "eval ppl: 3,007020", "'3,007020', .* comma"),
        (r"wins=(\d+)", "wins=31,7 draws", r"'31,7', .* comma .* into the pattern"),
        (r"wins=(\d+),", "wins=31,7 draws", 31.0),
        (r"ppl: ([\d.]+)", "eval ppl: 3.1,acc: 5", 3.1),
        (r"ppl: ([\d.]+)", "eval ppl: 3,acc: 5", 3.0),
        (r"ppl: ([\d.]+)", "eval ppl: 3.1,5.2", 3.1),
        (r"^\d+,(\d+)", "70,95,3", 95.0),
        (r"row (?:\d+.)(\d+)", "row 70,95,3", 95.0),
        (r"^([\d.]+)", "3.5,95", 3.5),
    ],
)
def test_a_part_of_a_number_with_a_comma_is_no_number(
    pattern: str, line: str, value: float | str, tmp_path: Path
) -> None:
    (tmp_path / "log").write_text(f"{line}\n")
    if isinstance(value, float):
        assert read(MetricPart(pattern=pattern), tmp_path / "log", tmp_path).value == value
    else:
        with pytest.raises(PlumblineError, match=value):
            read(MetricPart(pattern=pattern), tmp_path / "log", tmp_path)
