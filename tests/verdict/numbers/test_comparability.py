"""Whatever numbers are judged: a planted inequality is told or refused, with its words, and equal arms are not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from plumbline.verdict.__main__ import main

FLAGS = ["--metric", "loss", "--lower-is-better", "--json"]


def run(capsys: pytest.CaptureFixture[str], path: Path, *flags: str) -> tuple[int, dict[str, Any], str]:
    code = main([str(path), *FLAGS, *flags])
    return code, json.loads(capsys.readouterr().out), path.with_name(f"{path.stem}.verdict.md").read_text()


def write_table(path: Path, seconds: float) -> Path:
    values = {"base": (3.28, 3.283, 3.279), "new": (3.24, 3.243, 3.241)}
    rows = [
        f"{method},{seed},{loss},{10.0 + seed / 10 if method == 'base' else seconds + seed / 10}"
        for method, losses in values.items()
        for seed, loss in enumerate(losses)
    ]
    path.write_text("\n".join(["method,seed,loss,_runtime", *rows]) + "\n")
    return path


def test_a_table_tells_longer_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, flags = write_table(tmp_path / "results.csv", 24.0), ("--baseline", "base", "--exit-code-of", "new")
    code, report, page = run(capsys, table, *flags)
    answer = report["comparability"]["new"]["equal budget"]
    assert (code, answer["answer"]) == (0, "told") and answer["numbers"]["seconds"] == pytest.approx(2.386, abs=0.01)
    sentence = "The runs of `new`, compared with those of `base`, took 2.4 times as long (24 s against 10 s)."
    assert f"{report['sentence']}\n\n{sentence}\n" in page
    assert page.index("## What it stands on") < page.index("## Ledger") and "Not known here: " in page
    assert main([str(table), *FLAGS[:-1], *flags]) == 0
    assert f"\n{sentence}\n" in capsys.readouterr().out
    assert main([str(table), *FLAGS[:-1], *flags, "--equal", "seconds"]) == 13
    assert "had to be equal" in capsys.readouterr().err
    code, report, page = run(capsys, write_table(tmp_path / "equal.csv", 10.0), *flags, "--equal", "seconds")
    assert (code, report["comparability"]["new"]["equal budget"]["answer"]) == (0, "holds")


def write_columns(path: Path, name: str, base: str, new: str) -> Path:
    values = {"base": (3.28, 3.283, 3.279), "new": (3.24, 3.243, 3.241)}
    rows = [
        f"{method},{seed},{loss},{cell}"
        for (method, losses), cells in zip(values.items(), (base, new))
        for seed, (loss, cell) in enumerate(zip(losses, cells.split()))
    ]
    path.write_text("\n".join([f"method,seed,loss,{name}", *rows]).replace("_", "") + "\n")
    return path


@pytest.mark.parametrize(
    ("name", "base", "new", "told"),
    [
        ("split", "val val val", "train train train", "`val` of `base`; `train` of `new`"),
        ("split", "val val val", "train val val", "`val` of `base`; `train` and `val` of `new`"),
        ("split", "val val train", "train train val", "`split`"),
        ("dataset", "c4 c4 c4", "wiki wiki wiki", "`c4` of `base`; `wiki` of `new`"),
        ("eval.tokens", "10485760 10485760 10485760", "1048576 1048576 1048576", "`1048576` of `new`"),
        ("split", "val val val", "val val val", ""),
        ("set", "test test test", "val val val", "`test` of `base`; `val` of `new`"),
        ("set", "A A A", "B B B", ""),
        ("data-aug", "none none none", "mixup mixup mixup", ""),
        ("eval-steps", "500 500 500", "250 250 250", ""),
        ("eval-batch", "64 64 64", "32 32 32", ""),
        ("eval-data", "c4 c4 c4", "pile pile pile", "`c4` of `base`"),
        ("task", "a b c", "c a b", ""),
        ("eval-loss", "3.1 3.2 3.3", "3.4 3.5 3.6", ""),
        ("eval-id", "x1 x2 x3", "x4 x5 x6", ""),
        ("data-seed", "1 2 3", "4 5 6", ""),
        ("test-batches", "11 12 12", "12 11 11", ""),
        ("width", "64 64 64", "96 96 96", ""),
        ("converged", "True True True", "True False True", "`True` and `False`"),
        ("exit", "0 0 0", "9 9 9", "`0` and `9`"),
        ("diverged-at", "_ _ _", "_ 850 _", "`850` (1 row: line 6)"),
        ("train-loss", "3.1 3.1 3.1", "nan inf 3.1", "`train-loss` is no finite number in lines 5, 6,"),
        ("train-loss", "nan nan nan", "nan nan nan", ""),
    ],
)
def test_what_a_column_says_against_the_runs_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, base: str, new: str, told: str
) -> None:
    table = write_columns(tmp_path / "results.csv", name, base, new)
    flags = ("--baseline", "base", "--exit-code-of", "new")
    code, report, page = run(capsys, table, *flags)
    first, _ = page.split("\n\n## ", 1)
    assert code == 0 and (told in first.partition(report["sentence"])[2]) and (told in " ".join(report["notes"]))
    assert bool(told) == (first.removeprefix("# Verdict").strip() != report["sentence"])
    assert main([str(table), *FLAGS[:-1], *flags]) == 0 and told in capsys.readouterr().out.partition("\n")[2]


def test_printed_means_of_other_splits_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = ["base,3.28 ± 0.01,54.2 ± 0.4,val", "new,3.24 ± 0.01,54.9 ± 0.3,train"]
    (tmp_path / "results.csv").write_text("\n".join(["method,loss,val_acc,split", *rows]) + "\n")
    flags = ("--baseline", "base", "--seeds", "5", "--spread", "std")
    (told,) = (note for note in run(capsys, tmp_path / "results.csv", *flags)[1]["notes"] if "differ" in note)
    assert "`split`" in told and "`train` of `new`" in told


def test_a_loss_in_a_row_of_its_own_that_is_no_number_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        f"{method},{seed},{metric},{value}"
        for method, losses in {"base": (3.28, 3.283, 3.279), "new": (3.24, 3.243, 3.241)}.items()
        for seed, loss in enumerate(losses)
        for metric, value in (("loss", loss), ("train_loss", "nan" if loss == 3.243 else 3.1))
    ]
    (tmp_path / "results.csv").write_text("\n".join(["method,seed,metric,value", *rows]) + "\n")
    code, report, _ = run(capsys, tmp_path / "results.csv", "--baseline", "base", "--exit-code-of", "new")
    assert code == 0 and report["notes"] == ["`train_loss` is no finite number in line 11, of runs that count."]


def test_runs_without_seeds_are_not_called_seeds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_columns(tmp_path / "results.csv", "note", "x x x", "x x x")
    path.write_text(path.read_text().replace("seed", "nr"))
    assert "; 3 runs against 3 of `base`;" in run(capsys, path, "--baseline", "base")[1]["sentence"]
    assert "3 runs against the fixed value" in run(capsys, path, "--goal", "3.3", "--json")[2]


def test_only_the_refused_method_is_without_a_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        f"m{place},{seed},{3.2 + 0.001137 * ((7 * seed + 3 * place) % 5)}" for place in range(5) for seed in range(3)
    ]
    path = tmp_path / "results.csv"
    path.write_text("\n".join(["method,seed,loss", *rows, "copied,1,3.271111", "copied,2,3.271111"]) + "\n")
    code, report, page = run(capsys, path, "--baseline", "m0", "--exit-code-of", "copied")
    assert (code, report["outcomes"]["copied"]) == (13, "cannot be judged")
    assert "1 and 2 of `copied` all gave 3.271111" in page
    assert report["comparability"]["m1"]["seed has an effect"]["answer"] == "holds" and "m1" in report["methods"]
    stands = page.partition("## What it stands on")[2].partition("##")[0]
    assert "| `copied`" in stands and "`m1`" not in stands, "what is told or refused"
    assert stands.count("processes (") == 1, "what is not known stands there once"


def test_a_search_is_compared_with_its_start(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def log(memory: str) -> Path:
        path = tmp_path / "results.tsv"
        starts = [f"a1\t{3.0 + place / 1000}\t10.0\tkeep\tstart" for place in range(4)]
        lines = ["commit\tloss\tmemory_gb\tstatus\tdescription", *starts, f"b2\t2.9\t{memory}\tkeep\twide"]
        path.write_text("\n".join(lines) + "\n")
        return path

    _, report, page = run(capsys, log("25.0"))
    assert report["comparability"]["b2"]["equal budget"]["answer"] == "told" and "used 2.5 times the memory" in page
    _, report, page = run(capsys, log("10.0"))
    assert report["comparability"]["b2"]["equal budget"]["answer"] == "holds"


def test_submissions_of_copied_runs_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def submit(name: str, *losses: float) -> None:
        (tmp_path / "records" / name).mkdir(parents=True, exist_ok=True)
        seeds = {str(seed): {"loss": loss, "num_steps": 900} for seed, loss in enumerate(losses)}
        (tmp_path / "records" / name / "submission.json").write_text(json.dumps({"seed_results": seeds}))

    submit("base", 1.221301, 1.220177, 1.222840)
    submit("new", 1.211301, 1.211301, 1.211301)
    flags = [str(tmp_path / "records"), *FLAGS[:-1], "--baseline", "base", "--exit-code-of", "new"]
    assert main(flags) == 13 and "effect: runs 0, 1 and 2 of `new`" in capsys.readouterr().err
    submit("new", 1.211301, 1.212301, 1.211207)
    code, report, _ = run(capsys, tmp_path / "records", *flags[4:])
    assert code == 0 and report["comparability"]["new"]["finished"]["answer"] == "holds"
