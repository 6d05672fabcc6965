"""What a log says of where a run ended: signs that it stopped or diverged, and the step and line of its last value."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.verdict.own_trainer import run_end
from plumbline.verdict.own_trainer.trainer_file import MetricPart

LOSS = MetricPart(pattern=r"val_loss:? ?([0-9.]+)")


@pytest.mark.parametrize(
    ("line", "sign"),
    [
        *(
            (line, "sign")
            for line in (
                "step 90 loss nan",
                "step 90: train_loss=NaN lr 0.1",
                "{'loss': nan, 'grad_norm': inf, 'epoch': 2.0}",
                "step 90 | train loss inf | 20 ms",
                "step 90 val_loss: nan",
                "loss: tensor(nan, device='cuda:0')",
                "\x1b[31mloss\x1b[0m \x1b[1mnan\x1b[0m",
            )
        ),
        *(
            (line, f"traceback {kind}")
            for line, kind in (
                ("[rank0]: Traceback (most recent call last):\n[rank0]:   File x\n[rank0]: ValueError: y", "[rank0]"),
                ("Traceback (most recent call last):\n  File x\nRuntimeError: CUDA error", "RuntimeError"),
            )
        ),
        *(
            (f"{name}=nan {name}=inf  (no test set)", f"nan {name}")
            for name in ("aux_loss", "test_loss", "z_loss", "eval/ppl")
        ),
        ("ppl -inf.", "nan ppl"),
        ("Loss is nan, stopping training", "nan loss is"),
        ("the aux loss became nan", "nan: the aux loss became nan"),
        ("NaN in the eval loss at step 90", "nan: nan in the eval loss at step #"),
        ("step 90 loss 2.4 z_loss nan", "nan z_loss"),
        *(
            (line, "beside")
            for line in (
                "Exception in thread Thread-1 (upload):\nTraceback (most recent call last):\n  File x\nOSError: y",
                "Error in atexit._run_exitfuncs:\nTraceback (most recent call last):\n  File x\nOSError: y",
                'Traceback (most recent call last):\n  File "multiprocessing/resource_tracker.py", line 2\nKeyError: y',
            )
        ),
        ("grad_norm: nan 'test_acc': nan}", "nan grad_normnan test_acc"),
        ("step 90: nan", "nan: step #: nan"),
        ("90 nan 0.1", "nan: # nan #"),
        *(
            (line, "")
            for line in (
                "info: finance of nanotech",
                "saved to /data/nan/inf.pt",
                "loss curve in out/nan/loss.png",
                "best val loss: inf",
                "loss_scale: inf",
                "interval: inf",
                "min_loss=inf, patience: inf",
                "grad_norm: inf",
                "no nan in the loss",
                "the loss is no longer nan-padded",
                "Exception ignored in: <function x>\nTraceback (most recent call last):\n  File x\nTypeError: y",
                "Traceback (most recent call last):\n  File x\nBrokenPipeError: [Errno 32] Broken pipe",
                "nan_policy: propagate, inf_check=True",
            )
        ),
    ],
)
def test_a_line_after_the_last_value_says_that_a_run_stopped(line: str, sign: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    before = "step 40 loss nan\nTraceback (most recent call last):\n  File x\nValueError: y\n"  # and it went on
    log.write_text(f"{before}step 50 val_loss 2.5\n{line}\nbye\n")
    end = run_end.read(LOSS, log, tmp_path)
    assert ("sign" if end.diverged else "beside" if end.beside else "".join(end.signs)) == sign, end
    assert end.place["step"] in (50, 90)
    log.write_text(f"{before}{line}\nstep 50 val_loss 2.5\n")
    after = run_end.read(LOSS, log, tmp_path)
    assert (after.diverged, after.signs, after.beside) == ("", {}, [])


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("epoch 9 loss 2\nepoch 10 loss 2\nBest val_loss 1.79 (epoch 12)\ndone", {"epoch": 10}),
        ("step 900 val_loss 2\nstep 1000/1000 loss 2", {"step": 1000}),
        ("steps: 5000\nstep 1000 val_loss 2, time per step: 1200ms", {"step": 1000}),
        ("time per step: 12ms, val_loss: 2\nper optimizer step 13, step 14 s", {"values": 1}),
        ("step 900: val_loss 2\nstep 1000: val_loss 2\nstep_avg: 3", {"step": 1000}),
        ("step:1000/1500 val_loss:2 step_avg:40ms", {"step": 1000}),
        ("iter 1,250: loss 3\nval_loss 2\niter 1,260: loss 3", {"step": 1260}),
        ("{'val_loss 2': 1, 'epoch': 1.5, 'global_step': 30}", {"epoch": 1.5, "step": 30}),
        ("[epoch 3] Step 00040/00100 val_loss: 2", {"epoch": 3, "step": 40}),
        ("12 steps/s, 4 tokens/step 5\nval_loss 2\nval_loss 2.5 (12 ms/step)", {"values": 2}),
        ("nothing", {}),
    ],
)
def test_the_step_of_the_last_value(text: str, place: dict[str, float], tmp_path: Path) -> None:
    (tmp_path / "log").write_text(text)
    assert run_end.read(LOSS, tmp_path / "log", tmp_path).place == place


@pytest.mark.parametrize(
    ("line", "part", "sign"),
    [
        ("Epoch 9: train_loss=nan, val_loss=0.91", LOSS, "sign"),
        ("step 800 val_loss 2.2 train_loss nan", LOSS, "sign"),
        ("step 800 val_loss 2.2 grad_norm=nan best=inf", LOSS, "nan grad_norm"),
        ("loss nan loss 2.5", MetricPart(pattern=r"loss (\S+)"), "sign"),
        ("METRIC loss=2.5", MetricPart(name="loss"), ""),
    ],
)
def test_the_line_of_the_last_value(line: str, part: MetricPart, sign: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_text(f"step 1 val_loss 3\n{line}\nbye\n")
    end = run_end.read(part, tmp_path / "log", tmp_path)
    assert ("sign" if end.diverged else "".join(end.signs)) == sign, end


ROWS = '{"step": 10, "eval": {"loss": 2.5}}'
LAST = {"step": 20.0}


@pytest.mark.parametrize(
    ("rows", "log", "sign", "place"),
    [
        (f'{ROWS}\n{{"step": 20, "loss": NaN}}', "", "sign", LAST),
        (f'[{ROWS}, {{"step": 20, "loss": NaN}}]', "", "sign", LAST),
        (f'{ROWS}\n{{"step": 20, "train_loss": null, "eval": {{"loss": null}}}}', "", "null train_lossnull loss", LAST),
        (f'{{"step": 5, "loss": null}}\n{ROWS}\n{{"step": 20, "loss": null, "lr": null}}', "", "", LAST),
        (ROWS, "", "", {"step": 10}),
        (ROWS, "step 9 loss 2.4\nstep 20 loss nan\nloss is nan: stopping", "sign", LAST),
        (ROWS, "step 0 loss nan\nTraceback (most recent call last)\n  x\nE: y\nstep 20 loss 2.4", "", LAST),
        (ROWS, "step 5 loss nan\nstep 20 loss 2.4 z_loss nan\nbye", "nan z_loss", LAST),
        (
            ROWS,
            "begins\nTraceback (most recent call last):\n  File x\nRuntimeError: y",
            "traceback RuntimeError",
            {"step": 10},
        ),
        ('{"eval": {"loss": 2.5}}', "", "", {"values": 1}),
        ('{"eval": {"loss": 2.5}}', "epoch 3\nepoch 4", "", {"epoch": 4}),
    ],
)
@pytest.mark.parametrize("name", ["rows.jsonl", "printed"])
def test_a_metric_in_a_file_is_read_with_the_output(
    rows: str, log: str, sign: str, place: dict[str, float], name: str, tmp_path: Path
) -> None:
    part = MetricPart(json="rows.jsonl:eval.loss")
    (tmp_path / "rows.jsonl").write_text(f"{rows}\n")
    (tmp_path / "log").write_text(f"{log}\n" + ("" if name == "rows.jsonl" else "step 99 loss nan\n"))
    end = run_end.read(part, tmp_path / "log", tmp_path, end=len(log) + 1)
    assert ("sign" if end.diverged else "".join(end.signs)) == sign and end.place == place, end
