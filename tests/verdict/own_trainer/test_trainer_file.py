"""`plumbline.toml` is closed: what cannot be meant is refused, by key and file, with the remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.core.errors import PlumblineError
from plumbline.verdict.own_trainer import folder, trainer_file
from plumbline.verdict.own_trainer.requests import fill_command

WHOLE = """\
[run]
command = "python train.py {flags}"
timeout = "1h30m"
[metric]
pattern = '^val_bpb:\\s+(\\S+)'
[where]
gpus = "0+1, 2+3"
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("command", "comand", "'comand'; did you mean 'command'"),
        ("[metric]", "[metrics]", r"part \[metrics\]; did you mean 'metric'"),
        ('"1h30m"', '"1x"', r"run\.timeout: '1x'.*time"),
        ('"1h30m"', "5", r"run\.timeout: 5 is not a text"),
        ("(\\S+)", "\\S+", r"metric\.pattern: .* has 0 groups"),
        ("(\\S+)", "(", r"metric\.pattern: .* is no regular expression"),
        ("(\\S+)", "\\x1b\\[32m(\\S+)", r"metric\.pattern: .* has an escape character"),
        ("pattern = '^val_bpb:", "json = '/run:", r"metric\.json: .* is no FILE:KEY"),
        ("'^val_bpb:\\s+(\\S+)'", "'(x)'\njson = 'a:b'", r"metric: says both"),
        ("'^val_bpb:\\s+(\\S+)'", "'(x)'\nfile = '../secret'", r"metric\.file: .* below the folder"),
        ('"1h30m"', '"1h"\nshare = ["/etc"]', r"run\.share: '/etc'.*below"),
        ('"1h30m"', '"1h"\nseed = "--seed 3"', r"run\.seed: '--seed 3' is neither"),
        ('"1h30m"', '"1h"\nshare = ["."]', r"run\.share: '\.'"),
        ('"1h30m"', '"1h"\noutput = [".git/x"]', r"run\.output: '\.git/x'"),
        ('"1h30m"', '"1h"\nshare = ["./.plumbline"]', r"run\.share: './\.plumbline'"),
        ('"1h30m"', '"1h"\nseed = "env:BASH_ENV"', r"run\.seed: BASH_ENV"),
        ('"1h30m"', '"1h"\nseed = "env:LD_PRELOAD"', r"run\.seed: LD_PRELOAD"),
        ('"1h30m"', '"1h"\nseed = "env:PYTHONPATH"', r"run\.seed: PYTHONPATH"),
        ("train.py", "train.py\\u0000", "run: command or seed"),
        ("[where]", "[decide]\nalpha = 0.6\n[where]", r"decide\.alpha: 0\.6 cannot be meant; .* 0\.05"),
        ("[where]", "[decide]\nalpha = nan\n[where]", r"decide\.alpha: nan cannot be meant"),
        ("[where]", '[decide]\nsession = "fdr"\n[where]', r"decide\.session: 'fdr' .*\['each', 'fwer'\]"),
        ("[where]", '[decide]\nequal = ["second"]\n[where]', r"decide\.equal: 'second' is none of .* mean 'seconds'"),
        ("[where]", '[guard]\nmemory = "<= 1.05x"\n[where]', "'memory' is none of .* mean 'memory_bytes'"),
        ("[where]", '[guard]\nval_acc = ">= -1"\n[where]', "'val_acc' is none of .* nor"),
        ("[where]", '[guard]\nseconds = "1.1x"\n[where]', r"guard\.seconds: '1\.1x' is no limit; write '<= 1\.05x'"),
        ("[where]", '[guard]\nseconds = "<= 0x"\n[where]', r"guard\.seconds: '<= 0x' is no limit"),
        ("[where]", '[guard]\nseconds = "<= 1.1"\n[where]', r"guard\.seconds: .* a measure has times"),
        ("[where]", "[guard]\nseconds = 1.1\n[where]", r"guard\.seconds: 1\.1 is not a text"),
        ("[where]", "where = 3\n[decide]", r"where"),
        ("[run]", "[run", r"is not TOML"),
        ("[run]", ".".join("a" * 400) + " = 1\n[run]", "more than 20 parts"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_its_key(old: str, new: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "plumbline.toml"
    path.write_text(WHOLE.replace(old, new, 1))
    with pytest.raises(PlumblineError, match=message) as raised:
        trainer_file.load(tmp_path)
    assert str(path) in str(raised.value)


def test_a_metric_in_a_folder_is_refused_and_a_mark_at_the_begin_is_none(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    place = "json = 'out:val_loss'"
    text = WHOLE.replace("pattern = '^val_bpb:\\s+(\\S+)'", place)
    (tmp_path / "plumbline.toml").write_text(text, encoding="utf-8-sig")
    with pytest.raises(PlumblineError, match=r"metric\.json: out is a folder; .* out/log\.jsonl:val_loss"):
        trainer_file.load(tmp_path)
    for metric in ("json = 'out/log.jsonl:val_loss'", f"{place[:11]}.json:val_loss'"):
        (tmp_path / "plumbline.toml").write_text(text.replace(place, metric), encoding="utf-8-sig")
        assert trainer_file.load(tmp_path).metric.called == "val_loss"
    for metric, key in (("file = 'out'", "file"), ("json = 'a.json:b'\nothers = {acc = 'out:acc'}", "others.acc")):
        (tmp_path / "plumbline.toml").write_text(text.replace(place, metric + "\npattern = '(x)'" * (key == "file")))
        with pytest.raises(PlumblineError, match=rf"metric\.{key}: out is a folder; "):
            trainer_file.load(tmp_path)


def test_what_is_not_said_has_a_default(tmp_path: Path) -> None:
    (tmp_path / "plumbline.toml").write_text(WHOLE)
    file = trainer_file.load(tmp_path)
    assert (file.metric.called, file.run.timeout_seconds, file.where.devices) == ("val_bpb", 5400.0, ("0,1", "2,3"))
    assert (file.decide.baseline_runs, file.decide.max_runs, file.run.seed) == (5, 8, "--seed {seed}")
    (tmp_path / "plumbline.toml").write_text(WHOLE.replace("[run]", '[run]\nseed = "env:PYTHONHASHSEED"'))
    assert trainer_file.load(tmp_path).run.seed == "env:PYTHONHASHSEED"


def test_guards_are_of_measures_and_of_further_metrics(tmp_path: Path) -> None:
    others = "[metric.others]\nval_acc = '^acc: (\\S+)'\n[guard]\nseconds = '<=1.10x'\nval_acc = '>= -.002'\n[where]"
    (tmp_path / "plumbline.toml").write_text(WHOLE.replace("[where]", others))
    assert trainer_file.load(tmp_path).guard == {"seconds": "<= 1.1x", "val_acc": ">= -0.002"}, "written in one way"
    content = {"run": {"command": "x"}, "metric": {"name": "loss"}, "guard": {"acc": "<= 0"}}
    assert trainer_file.parse(content, tmp_path).guard, "what lines METRIC will name is not known before the runs"


def test_seed_and_flags_go_where_they_are_named() -> None:
    flags = ["--name", "a b", "$(touch x)"]
    filled = "--seed 7 --name 'a b' '$(touch x)'"
    assert fill_command("python train.py", "--seed {seed}", 7, flags) == f"python train.py {filled}"
    assert fill_command("uv run train.py > run.log 2>&1", "--seed {seed}", 7, []).endswith("2>&1 --seed 7")
    assert fill_command("python t.py {flags} | tee log", "--seed {seed}", 7, flags) == f"python t.py {filled} | tee log"
    assert fill_command("S={seed} python t.py", "--seed {seed}", 7, []) == "S=7 python t.py"
    with pytest.raises(PlumblineError, match=r"command; write \{flags\}"):
        fill_command("python prepare.py && python t.py", "--seed {seed}", 7, [])
    assert fill_command("python prepare.py && python t.py", "inject", 7, []) == "python prepare.py && python t.py"


def test_a_command_is_trusted_once_and_again_when_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path = tmp_path / "plumbline.toml"
    path.write_text(WHOLE)
    file = trainer_file.load(tmp_path)
    assert not folder.is_trusted(file)
    folder.trust(file)
    path.write_text(WHOLE + "[decide]\nalpha = 0.01\n")
    assert folder.is_trusted(trainer_file.load(tmp_path))
    path.write_text(WHOLE.replace("[run]", "[run]\nseed = '--rng {seed}; touch x'"))
    file = trainer_file.load(tmp_path)  # it runs nothing: the shell is given its words quoted
    assert folder.is_trusted(file)
    assert fill_command("python train.py", file.run.seed, 7, []) == "python train.py --rng '7;' touch x"
    path.write_text(WHOLE.replace("train.py", "other.py"))
    assert not folder.is_trusted(trainer_file.load(tmp_path))
