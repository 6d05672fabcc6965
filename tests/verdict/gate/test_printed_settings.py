"""Settings in any form, and how much an evaluation covers, are compared; what varies by itself is not a fault."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import gate_faults
from plumbline.verdict.gate import __main__ as gate
from plumbline.verdict.gate.board_reading import read_board
from plumbline.verdict.gate.judgement import Judgement, judge_record
from plumbline.verdict.gate.rules import read_rules
from tests.run_in_process import run

RULES = gate_faults.SUBMISSION_RULES + '[predecessor]\nalpha = 0.01\nrequired = true\nsource = "made up"\n'


def write(folder: Path, *heads: str, mean: float = 3.276, seed: int = 1) -> None:
    """A record whose logs begin with these lines, one a run, instead of a list of settings."""
    folder.mkdir(parents=True)
    runs = gate_faults.make_runs(np.random.default_rng(seed), len(heads), mean=mean)
    printed = {each.seed: each.values[3000] for each in runs}
    gate_faults.write_submission(folder, runs, float(np.mean(list(printed.values()))), printed)
    for each, head in zip(runs, heads):
        log = folder / f"train_seed{each.seed}.log"
        evaluations = log.read_text().partition("\n\n")[2]
        log.write_text(
            evaluations.replace("final val_bpb", f"{head[5:]} val_bpb")
            if head[:5] == "LAST "
            else head + "\n" + evaluations
        )


def judge_board(root: Path) -> list[Judgement]:
    (root.parent / "rules.toml").write_text(RULES)
    rules = read_rules(str(root.parent / "rules.toml"))
    board = read_board(root, rules)
    return [judge_record(each, board, rules) for each in board]


SIZES = (
    "val_loader:shards pattern=val_*.bin tokens:{}",
    "train_tokens: 100 val_tokens: {}",
    "Validation tokens = {}",
    "eval_batches={}",
    "Evaluating on {} documents of the test set",
    "python train.py --lr 0.1 --max-eval-samples {} --seed 3",
    '{{"evaluation": {{"tokens": {}}}}}',
    "LAST final val_tokens:{}",
)


@pytest.mark.parametrize("form", SIZES)
def test_run_that_was_evaluated_on_less_keeps_its_record(form: str, tmp_path: Path) -> None:
    write(tmp_path / "records/a", *[form.format(number) for number in (62021632, 62021632, 36562944)])
    write(tmp_path / "records/b", *[form.format(number) for number in ("62,021,632", 62021632, "62_021_632")])
    less, same = judge_board(tmp_path / "records")
    assert less.verdict == "cannot be judged" and " was evaluated on fewer " in less.reason
    assert [fault.kind for fault in less.evidence.faults] == ["evaluation"] and not less.evidence.pools
    assert not same.evidence.faults


SETTINGS = (
    "tie_embeddings:True matrix_lr:{} scalar_lr:0.04",
    "matrix_lr = {}",
    "  matrix_lr  =  {},",
    "torchrun train.py --steps 100 --matrix_lr {} --muon",
    "Namespace(steps=100, matrix_lr={}, muon=True)",
    "{{'steps': 100, 'matrix_lr': {}}}",
    "[rank0] logit_softcap: {}",
    "lora_rank={} drop=0",
    "drop_path={}",
    "betas=(0.9, {})",
    "Hyperparameters: lr = {}, wd = 0.1",
    "Hyperparameters:\n  unheard_of: {}\n",
    "eval config: stride: {}",
    "eval settings: stride = {}, sliding = True",
    "time_limit: 600{}",
    "time_limit: 1{} s",
    "ttt_run_epochs: {}",
    "matrix_lr:0.0123{}",
    "learning rate: {}",
    "batch size: {}",
    "dtype: float{}",
    "train_files = fineweb_{}_*.bin",
    "z_loss_coef={}",
    "tokenizer_path: data/spm_{}.model",
    "n_layer={} d_model=512",
    "d_model={}",
    "z_loss={}",
    "qk_norm={}",
    "num_loops={}",
    "act=relu{}",
    "pretrained={}",
    "resume_path=/x/best_{}.pt",
    "max_time={}m",
    "max_time: {} min",
)


@pytest.mark.parametrize("form", SETTINGS)
def test_a_setting_in_any_form_is_the_same_over_the_runs(form: str, tmp_path: Path) -> None:
    write(tmp_path / "records/a", *[form.format(number) for number in ("0.04", "0.04", "0.05")])
    write(tmp_path / "records/b", *[form.format(number) for number in ("0.04", "0.04", "0.04")])
    other, same = judge_board(tmp_path / "records")
    assert [fault.kind for fault in other.evidence.faults] == ["configuration"]
    assert "0.05" in other.evidence.faults[0].words and not same.evidence.faults
    assert "the same in 3 runs" in same.evidence.code


VARYING = (
    "seed = {0}; run_id: a-{0}; SLURM_JOB_ID={0}{0}; trial {0}/3: seed={0}",
    "host: node{0} port=2950{0} started = 2026-01-0{0}T10:00:00 checkpoint=seed{0}_full",
    "data=/mnt/disk{0}/val.bin model_path: runs/{0}/model.pt logfile:logs/{0}.txt",
    "compile_time: 4{0}.25s peak memory: 1{0}119 MiB grad_norm: 1.{0}93 train_loss:6.9{0}77",
    "step:{0}/3000 train_loss:6.1 tokens:{0}000 lr:0.{0}",
    "clip=inf warm=nan",
    "eval_time:{0}2ms val_loss_every:125 eval tokens/s: 1{0}000",
    "SLURM_JOBID=441{0}",
    "PYTHONHASHSEED={0}",
    "compile: 3{0} s",
    "compile took: 3{0}.2 seconds",
    "warmup: 3{0} s",
    "GPU 0 temperature: 4{0} C, power: 11{0} W",
    "free disk: 12{0} GB",
    "cpu: 4{0}% load avg: 3.{0}",
    "start: Tue Apr 7 10:01:0{0} 2026",
    "started at: 10:0{0}",
    "output: model_s{0}.pt",
    "checkpoint=ckpt_{0}",
    "name: golf-{0}",
    "rdzv_endpoint=n{0}:2950",
    "model hash: a{0}b2",
    "init_loss: 1{0}.8",
    "init_loss: {0}",
    "rng_state: 1{0}",
    "data_order_rng=1{0}",
    "kernel warmup: 1{0} s",
    "loss scale: 6553{0}",
    "estimated steps: 80{0}2",
    "HEAD: 3f2{0}91c",
    "head: node1{0}",
    "epochs: 1.3{0}",
    "compression ratio: 3.9{0}",
    "tokens_per_sec: 12{0}000",
    "Serialized model: 1589322{0} bytes",
    "compressed model size: 1589322{0}",
    "sparsity of mlp: 0.31{0}",
    "attn entropy layer: 2.{0}",
    "clipped steps: 1{0}",
    "dead experts: {0}",
    "mean depth: 3.2{0}",
    "Hyperparameters:\n  name: golf-{0}\n  checkpoint: a_{0}\n  job: {0}\n  lr: 0.1\n",
)


@pytest.mark.parametrize("form", VARYING)
def test_what_varies_by_itself_is_no_fault(form: str, tmp_path: Path) -> None:
    write(tmp_path / "records/a", *["lr: 0.1\n" + form.format(number) for number in (1, 2, 3)])
    (only,) = judge_board(tmp_path / "records")
    assert not only.evidence.faults


def test_colours_hide_no_value(tmp_path: Path) -> None:
    write(tmp_path / "records/a", *["val_tokens: 900"] * 3)
    for log in (tmp_path / "records/a").glob("*.log"):
        log.write_text(
            log.read_text().replace("val_bpb:", "\x1b[1mval_bpb\x1b[0m:\x1b[32m").replace("900", "\x1b[7m900")
        )
    (only,) = judge_board(tmp_path / "records")
    assert len(only.evidence.values) == 3 and not only.evidence.faults
    assert only.evidence.values[0].evaluation == {"val_tokens": ["900"]}


def test_what_differs_and_is_passed_over_is_named(tmp_path: Path) -> None:
    write(
        tmp_path / "records/a", "start_norm: 29.22683", "start_norm: 29.26360", "nohup: ignoring\nstart_norm: 29.19957"
    )
    (only,) = judge_board(tmp_path / "records")
    assert "measured: `start_norm` and `nohup`" in only.evidence.code
    write(tmp_path / "more/a", *[f"seed: {seed} name: golf-{seed} checkpoint=c{seed}" for seed in (1, 2, 3)])
    (only,) = judge_board(tmp_path / "more")
    assert "known: `name` and `checkpoint`; differ" in (only.evidence.code)


def test_another_folder_of_what_a_run_is_evaluated_on_is_named(tmp_path: Path) -> None:
    write(tmp_path / "records/a", *[f"eval_path=/d/{folder}/full.bin" for folder in ("val", "val", "easy")])
    (only,) = judge_board(tmp_path / "records")
    assert "known: `eval_path`" in only.evidence.code


def test_runs_of_one_file_have_each_their_own_settings(tmp_path: Path) -> None:
    folder = tmp_path / "records/a"
    write(folder, "val_tokens: 900", "", "val_tokens: 300")
    submission = json.loads((folder / "submission.json").read_text())
    logs = [folder / f"train_seed{seed}.log" for seed in submission.pop("seed_results")]
    (folder / "submission.json").write_text(json.dumps(submission))
    (folder / "all.txt").write_text("".join(log.read_text() for log in logs))
    for log in logs:
        log.unlink()
    (only,) = judge_board(tmp_path / "records")
    assert len(only.evidence.values) == 3
    # What the second run does not print is what the first one said.
    assert only.reason.startswith("`a/all.txt`, run 3, ") and "`val_tokens` is `300`" in only.reason
    assert only.reason.endswith("`900` in 2 of 3 runs")


@pytest.mark.parametrize(
    ("head", "line"),
    [
        ("val_tokens: 30000 lr: 0.2", "not compared: `b` was evaluated on fewer tokens: `val_tokens` is `30000`"),
        ("val_tokens: 30000 vocab_size: 4096 lr: 0.2", "evaluated on fewer tokens"),
        (
            "val_tokens: 39990 lr: 0.2",
            "evaluated on fewer tokens: `val_tokens` is `39990`, there `40000`; 1 printed setting",
        ),
        ("val_tokens: 40000 lr: 0.2", "1 printed setting of `b` changed, `lr` is `0.2`, there `0.1`"),
    ],
)
def test_settings_and_sizes_are_compared_with_the_record_before(head: str, line: str, tmp_path: Path) -> None:
    write(tmp_path / "records/a", *["val_tokens: 40000 vocab_size: 1024 lr: 0.1"] * 3)
    write(tmp_path / "records/b", *[head] * 3, mean=3.2, seed=2)
    (tmp_path / "rules.toml").write_text(RULES)
    process = run(gate.main, tmp_path / "records", "--rules", tmp_path / "rules.toml", cwd=tmp_path)
    assert process.returncode == (13 if "not compared" in line else 0)
    assert line in process.stdout.splitlines()[6]


def test_a_record_without_logs_is_not_shown(tmp_path: Path) -> None:
    write(tmp_path / "records/a", "lr: 0.1", "lr: 0.1")
    for log in (tmp_path / "records/a").glob("*.log"):
        log.unlink()
    (tmp_path / "rules.toml").write_text(RULES)
    options = (tmp_path / "records", "--rules", tmp_path / "rules.toml")
    plain, every, as_json = (run(gate.main, *options, *more, cwd=tmp_path) for more in ([], ["--all"], ["--json"]))
    assert plain.returncode == 13 and "- Headline: **not shown**:" in plain.stdout
    assert "does not hold" not in plain.stdout + every.stdout and "not shown" in every.stdout
    assert [fault["kind"] for fault in json.loads(as_json.stdout)["faults"]] == ["not shown"]
