"""From a file to its page: shapes, bad input, what a try costs, and what does not change the page."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plumbline.core.errors import PlumblineError
from plumbline.verdict import ledger
from plumbline.verdict.__main__ import main
from plumbline.verdict.comparison_terms import ComparisonTerms
from plumbline.verdict.numbers.numbers_request import NumbersRequest
from plumbline.verdict.numbers.numbers_verdict import judge_numbers, write
from plumbline.verdict.sources.row_files import ColumnNames

BASE = [("base", "1", 3.280), ("base", "2", 3.285), ("base", "3", 3.279), ("base", "4", 3.283), ("base", "5", 3.281)]
GOOD = [("good", "1", 3.262), ("good", "2", 3.258), ("good", "3", 3.266)]
NULL = [("null", "1", 3.279), ("null", "2", 3.284)]
WORSE = [("worse", "1", 3.288), ("worse", "2", 3.286)]
LONE = [("lone", "1", 3.275)]
LOG = "commit\tloss\tmemory\tstatus\tdescription\na1\t3.0\t1\tkeep\tstart\na1\t3.1\t1\tdiscard\tstart\n"
LOG += "b2\t2.9\t1\tkeep\tx\n"


def text_of(rows, suffix: str = ".csv") -> str:
    if suffix == ".jsonl":
        return "".join(json.dumps({"method": m, "seed": int(s), "loss": value}) + "\n" for m, s, value in rows)
    mark = {".csv": ",", ".tsv": "\t"}[suffix]
    return "".join(mark.join(map(str, row)) + "\n" for row in [("method", "seed", "loss"), *rows])


def ask(
    path: Path, *, lower: bool = True, metric: str = "loss", baseline: str | None = "base", **more
) -> NumbersRequest:
    terms = ComparisonTerms(higher=not lower, **more.pop("terms", {}))
    columns = ColumnNames(metric=metric, **more.pop("columns", {}))
    page = path.with_name("page.md")
    return NumbersRequest(
        path=path, terms=terms, columns=columns, ledger=path.with_name("l.jsonl"), page=page, baseline=baseline, **more
    )


def file_of(folder: Path, rows, suffix: str = ".csv") -> Path:
    path = folder / f"results{suffix}"
    path.write_text(text_of(rows, suffix))
    return path


def test_a_gain_that_no_modification_ever_had_is_flagged(tmp_path: Path) -> None:
    leak = [("leak", "1", 0.60), ("leak", "2", 0.61), ("leak", "3", 0.605)]
    result = write(ask(file_of(tmp_path, BASE + GOOD + leak)))
    assert list(result.numbers["implausible"]) == ["leak"]
    assert "it is to predict" in result.sentence and result.sentence in result.page
    assert [result.outcomes[name].exit_code for name in ("leak", "good")] == [14, 0]
    looked_at = write(replace(ask(file_of(tmp_path, BASE + GOOD + leak)), accept_implausible=True))
    assert looked_at.outcomes["leak"].exit_code == 0 and "it is to predict" in looked_at.sentence
    turned = [(method, seed, 4.0 - value) for method, seed, value in BASE + leak]
    assert write(ask(file_of(tmp_path, turned))).numbers["implausible"] == {}, "as much worse is no wonder"


def test_a_size_that_the_user_gives_is_in_the_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = [str(file_of(tmp_path, BASE + GOOD)), "--baseline", "base", "--metric", "loss", "--lower-is-better"]
    main([*options, "--size", "124M parameters,\n3,000 steps <b>", "--json"])
    report = json.loads(capsys.readouterr().out)
    assert report["sentence"].startswith("At 124M parameters, 3,000 steps b, `good` improves `loss` by 0.0196 (95 % ")
    assert report["size"].startswith("124M")
    assert Path(report["page"]).read_text().startswith(f"# Verdict\n\n{report['sentence']}")
    main([*options, "--json", "--out", str(tmp_path / "without.md")])
    without = json.loads(capsys.readouterr().out)
    assert without["sentence"].startswith("`good` improves") and "size" not in without


def test_both_levels_are_printed_and_alpha_is_one_sided(tmp_path: Path) -> None:
    between = [("x", "1", 3.2785), ("x", "2", 3.2782), ("x", "3", 3.2780)]  # one-sided p = 0.03
    result = judge_numbers(ask(file_of(tmp_path, BASE + between)))
    row = next(line for line in result.page.splitlines() if line.startswith("| `x`"))
    p, loop, claim, _, outcome = (cell.strip() for cell in row.split("|")[-6:-1])
    assert 0.025 < float(p) < 0.05 and (loop, claim, outcome) == ("yes", "no", "undecided")
    lax = judge_numbers(ask(tmp_path / "results.csv", terms={"alpha": 0.05}))
    assert lax.outcomes == {"x": "keep"} and lax.numbers["methods"]["x"]["p"] == result.numbers["methods"]["x"]["p"]


def test_the_files_three_kinds_give_the_same_numbers(tmp_path: Path) -> None:
    data = []
    for suffix in (".csv", ".tsv", ".jsonl"):
        folder = tmp_path / suffix
        folder.mkdir()
        data.append(judge_numbers(ask(file_of(folder, BASE + GOOD, suffix))).numbers)
    assert data[0]["methods"] == data[1]["methods"] == data[2]["methods"] and data[0]["methods"]["good"]["n"] == 3


def test_a_claimed_gain_is_ruled_out_or_is_not(tmp_path: Path) -> None:
    path = file_of(tmp_path, BASE + NULL)
    assert "ruled out above 0.0058" in judge_numbers(ask(path, terms={"claimed_gain": 0.05})).sentence
    inside = judge_numbers(ask(path, terms={"claimed_gain": 0.004})).sentence
    assert inside.startswith("`null` is not decided: ") and "find a gain of 0.0040" in inside
    assert "as sigma is uncertain" in inside and "gains above 0.0058" in inside


@settings(max_examples=5)
@given(st.permutations(BASE + GOOD + NULL + LONE))
def test_the_order_of_rows_does_not_change_the_page(rows) -> None:
    with tempfile.TemporaryDirectory() as folder:
        page = judge_numbers(ask(file_of(Path(folder), BASE + GOOD + NULL + LONE))).page
        (Path(folder) / "l.jsonl").unlink()
        assert judge_numbers(ask(file_of(Path(folder), rows))).page == page


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("method,seed,loss\nbase,1,nan\na,1,3\n", "1.*'base'.*seed 1"),
        ("method,loss\nbase,nan\na,3\n", "1.*'base'.*run 1"),
        (
            "method,seed,loss\nbase,1,1e999\na,1,3\n",
            "expected beforehand, --allow-diverged 1",
        ),
        ("method,seed,loss\nbase,1,3\nbase,2,\n", "line 3.*'loss'.*'base'"),
        ('method,seed,loss\nbase,1,"3,2"\n', "line 2, column 'loss': '3,2'"),
        (
            "method,seed,loss\nbase,1,3\na,1,2\nbase,1,3\n",
            "line 4.*'seed'.*'base'.*'1'.*line 2",
        ),
        ("method,seed,los\nbase,1,3\n", "no column 'loss'.*--metric.*'los'"),
        ("name,run,loss\nbase,1,3\n", "distinguishes a table .* --method-column"),
        ("method,seed,loss\nbase,1,3\nbase,01.0,2\n", "line 3.*'seed'.*'base'.*'1'.*line 2"),
        (
            "method,seed,status,loss\nbase,1,fishy,3\n",
            "line 2.*'status'.*'fishy'.*no status.*known.*--status-map",
        ),
        ("method,seed,step,loss\nb,1,1,3\nb,1,1,3\n", "line 3.*'seed'.*'b'.*'1'.*step 1"),
        ("method,step,loss\nb,1,3\nb,2,3\n", "no column 'seed'"),
        (
            "method,seed,step,loss\nbase,1,9,3\na,1,8,3\n",
            "from 8 to 9 .`base`, seed 1 at 9.*at 8..*--at-step 8",
        ),
        ("method,seed,loss\nbase,1,3\nbase,2\n", r"line 3: 2 cells under 3 columns"),
        ("method,seed,loss,loss\nbase,1,3,4\n", "line 1: the column 'loss'"),
        ("method,seed,loss\nbase,1,3\na,1,2\n", "sigma of one run <= 0.36"),
        ("method,seed,loss\nb,1,3\na,1,2\n", "--baseline 'base' is none"),
        ("method,seed,loss\nbase,1,3\n,1,2\n,2,2\n", r"line 3, column 'method': is empty \(as in 1 more: lines 3, 4\)"),
        ("method,seed,loss\nbase,1,3\na,1,\na,2,\n", r"no method besides .*'loss': 'a' \(lines 3, 4\)"),
        ("method,seed,loss\nbase,1,\na,1,3\n", r"'base' is none of .*'loss': 'base' \(line 2\)"),
        ("method,seed,loss\n", "has no rows"),
        ('method,seed,loss\n"base,1,3\n', "line 2: .*closed nowhere"),
    ],
)
def test_bad_input_is_named_by_place_and_costs_no_try(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "results.csv"
    path.write_text(content)
    with pytest.raises(PlumblineError, match=message):
        judge_numbers(ask(path))
    assert not (tmp_path / "l.jsonl").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"method": "base"\n', "1: is not a JSON object"),
        (
            '{"method": "base", "seed": 1, "loss": NaN}\n{"method": "a", "seed": 1, "loss": 1}\n',
            "1 run of the baseline",
        ),
        ('{"method": "\\ud800", "seed": 1, "loss": 1}\n', "line 1, column 'method': holds half"),
        ('{"method": "base", "seed": 1, "loss": [1]}\n', r"line 1, column 'loss': '\[1\]'"),
        (
            '{"method": "base", "seed": 1, "loss": 1}\n\n{"method": "base", "seed": 2, "x": 1}\n',
            "line 3, column 'loss': is empty",
        ),
        ('{"a": {"b": 1}, "a.b": 2}', "line 1: 'a.b' is there twice"),
        ('{"a":' * 2000 + "1" + "}" * 2000, "line 1: "),
    ],
)
def test_bad_json_lines_are_named_by_place(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text(content)
    with pytest.raises(PlumblineError, match=message):
        judge_numbers(ask(path))


def test_the_third_try_changes_the_first_ones_corrected_p(tmp_path: Path) -> None:
    first = file_of(tmp_path, BASE + GOOD)
    before = write(ask(first)).numbers["methods"]["good"]
    for number, rows in enumerate((NULL, LONE), start=2):
        other = tmp_path / f"other{number}.csv"
        other.write_text(text_of(BASE + rows))
        assert judge_numbers(ask(other)).numbers["tries"] == number
        assert judge_numbers(ask(other)).numbers["tries"] == number  # the same again is not a new one
    after = write(ask(first)).numbers["methods"]["good"]
    assert (after["p"], after["p_corrected"]) == (before["p"], pytest.approx(3 * before["p"]))
    assert "corrected for 3 tries" in (tmp_path / "page.md").read_text()
    other = text_of([(name, seed, value) for name, seed, value in BASE + NULL if name != "base" or seed != "5"])
    first.write_text(other.replace("base", "another"))
    assert "1 try counts against `another` in `loss`" in (page := judge_numbers(ask(first, baseline="another")).page)
    assert "multiplied by 1. 3 more," in page


def test_tries_in_other_metrics_are_said_to_be_in_those(tmp_path: Path, capsys) -> None:
    rows = [f"{m},{s},{v},{4 - v}" for m, s, v in BASE + GOOD + NULL]
    path = tmp_path / "results.csv"
    path.write_text("\n".join(["method,seed,loss,acc", *rows]) + "\n")
    write(ask(path, metric="acc", lower=False))
    result = write(ask(path))
    assert "count against `base` (2 in `loss`, 2 in `acc`" in (result.page)
    assert "corrected for 4 tries in `l.jsonl`" in result.sentence
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "in other metrics too" in " ".join(capsys.readouterr().out.split())


def test_repeated_looks_cost_no_more_than_the_papers(tmp_path: Path) -> None:
    rows = [f"{m},{s},{v},{4 - v}" for m, s, v in BASE + GOOD]
    path = tmp_path / "results.csv"
    path.write_text("\n".join(["method,seed,loss,acc", *rows]) + "\n")
    looks = [
        ask(path, planned_tries=6),
        ask(path, metric="acc", lower=False, planned_tries=6),
        ask(path, planned_tries=6),
    ]
    sentences = [judge_numbers(each).sentence for each in looks]
    assert sentences[0] == sentences[2] and "6 tries announced in `l.jsonl`" in sentences[0]
    assert "6 tries announced in `l.jsonl`" in sentences[1], "a second look, and no seventh try"


def test_another_seed_is_another_look(tmp_path: Path) -> None:
    write(ask(file_of(tmp_path, BASE + LONE)))
    assert write(ask(file_of(tmp_path, [*BASE, *LONE, ("lone", "2", 3.27)]))).numbers["tries"] == 2
    ledger_file = tmp_path / "l.jsonl"
    ledger_file.write_text(ledger_file.read_text().splitlines(keepends=True)[0])
    page = (tmp_path / "page.md").read_bytes()
    with pytest.raises(PlumblineError, match="it was truncated"):
        write(ask(file_of(tmp_path, BASE + LONE)))
    assert (tmp_path / "page.md").read_bytes() == page and len(ledger.read(ledger_file)) == 1


def test_tries_announced_for_a_page_that_is_there_are_said(tmp_path: Path) -> None:
    request = ask(file_of(tmp_path, BASE + GOOD))
    before = write(request).numbers["methods"]["good"]
    for planned, text in (
        (20, "every p is multiplied by 20. 20 were announced with --planned-tries, and"),
        (0, "by 20. 20"),
    ):
        result = write(replace(request, planned_tries=planned))
        assert (result.numbers["tries"], result.numbers["planned_tries"]) == (20, 20) and text in result.page
        assert "1 try counts against `base` in `loss`" in result.page
        assert result.numbers["methods"]["good"]["p_corrected"] == pytest.approx(20 * before["p"])
    (tmp_path / "l.jsonl").unlink()
    (tmp_path / "page.md").unlink()
    few = write(ask(file_of(tmp_path, BASE + GOOD + NULL + LONE), planned_tries=2))
    assert few.numbers["tries"] == 3 and "2 were announced with --planned-tries, fewer" in few.page


def test_page_is_made_again_where_ledger_s_last_line_was_torn(tmp_path: Path, capsys) -> None:
    request, ledger_file = ask(file_of(tmp_path, BASE + GOOD)), tmp_path / "l.jsonl"
    first = write(request).page
    with open(ledger_file, "ab") as file:
        file.write(b'{"baseline":"ba')
    assert write(request).page == first
    assert "l.jsonl, line 2 is incomplete" in capsys.readouterr().err
    ledger_file.write_bytes(ledger_file.read_bytes() + b'{"bas')
    assert main(["--check-page", str(request.page)]) == 0 and "line 2 is incomplete" in capsys.readouterr().err


def test_a_link_to_itself_is_named(tmp_path: Path) -> None:
    (tmp_path / "loop.md").symlink_to("loop.md")
    (tmp_path / "other.csv").symlink_to("results.csv")
    request = ask(file_of(tmp_path, BASE + GOOD))
    for part in (replace(request, ledger=tmp_path / "loop.md"), replace(request, page=tmp_path / "loop.md")):
        with pytest.raises((OSError, PlumblineError), match="symbolic links"):
            write(part)
    with pytest.raises(PlumblineError, match="is the file of numbers"):
        write(replace(request, ledger=request.path, path=tmp_path / "other.csv"))


def test_a_search_is_read_as_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "results.tsv"
    path.write_text(LOG)
    result = judge_numbers(ask(path, baseline=None))
    assert result.numbers["shape"] == "search" and result.numbers["baseline"] == "a1" and result.numbers["tries"] == 1
    assert (
        result.page.startswith(f"# Verdict on a search\n\n{result.sentence}\n")
        and "`commit` and `status` say so" in result.page
    )
    assert judge_numbers(ask(path.rename(tmp_path / "renamed.tsv"), baseline=None)).numbers["tries"] == 1
    path.write_text(LOG + "c3\t2.8\t1\tkeep\ty\n")
    assert judge_numbers(ask(path, baseline=None)).numbers["tries"] == 2  # a search that went on is another look
    with pytest.raises(PlumblineError, match="start, 'a1' in line 2"):
        judge_numbers(ask(path, baseline="b2"))
    path.write_text(LOG.replace("keep\tx", "keeeep\tx"))
    with pytest.raises(PlumblineError, match=r"line 4.*'status'.*'keeeep'.*no status.*did.*'keep'"):
        judge_numbers(ask(path, baseline=None))


def test_a_file_that_is_no_page_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("# My notes\n")
    with pytest.raises(PlumblineError, match=r"page.*verdict"):
        write(ask(file_of(tmp_path, BASE + GOOD)))
    assert (tmp_path / "page.md").read_text() == "# My notes\n" and not (tmp_path / "l.jsonl").exists()


def test_names_that_would_break_a_page_do_not(tmp_path: Path) -> None:
    forged = f"a|b`\nLedger: `x`, length 9, head `{'0' * 64}`"
    write(ask(file_of(tmp_path, [*BASE, (forged, "1", 3.2), (forged, "2", 3.1)], ".jsonl")))
    statement = ledger.read_statement(tmp_path / "page.md")
    assert statement is not None and (statement.length, statement.name) == (1, "l.jsonl")


def test_names_that_steer_a_terminal_are_shown_escaped(tmp_path: Path, capsys) -> None:
    unseen = "\u202e\u2066\u200b\x1b[31m\x9b1m\x07"
    path = tmp_path / f"re{unseen}sults.csv"
    head, base, method = f"method,{unseen}seed,status,{unseen}loss\n", f"b{unseen}", f"m{unseen}"
    rows = [f"{base},{unseen}{seed},,{3 + seed / 10}" for seed in range(3)]
    for lost in ("", f"l{unseen},{unseen}1,crash,\n"):
        path.write_text(head + "\n".join([*rows, f"{method},1,,2", f"{method},2,,2.1", lost]))
        flags = ["--baseline", base, "--metric", f"{unseen}loss", "--seed-column", f"{unseen}seed", "--lower-is-better"]
        main([str(path), *flags])
        main(["--check-page", str(page := path.with_suffix(".verdict.md"))])
        out = capsys.readouterr()
        text = out.out + out.err + page.read_text()
        assert text.count(r"\u202e\u2066\u200b") > 20
        assert not [letter for letter in text if letter != "\n" and not letter.isprintable()]


def test_the_command(tmp_path: Path, capsys) -> None:
    path = file_of(tmp_path, BASE + GOOD)
    flags = [str(path), "--baseline", "base", "--metric", "loss"]
    with pytest.raises(SystemExit) as stopped:
        main(flags)
    assert stopped.value.code == 2 and "give --higher-is-better or --lower-is-better" in capsys.readouterr().err
    assert main([*flags, "--lower-is-better"]) == 0
    page = tmp_path / "results.verdict.md"
    assert capsys.readouterr().out.startswith("`good` improves `loss` by 0.0196 (95 % interval 0.0142 to")
    assert f"$ plumbline verdict '…/{path.name}'" in page.read_text(), "nobody's home is in a page"
    numbers = json.loads((tmp_path / "results.verdict.json").read_text())
    assert numbers["methods"]["good"]["outcome"] == "keep" and numbers["terms"]["higher"] is False
    assert main(["--check-page", str(page)]) == 0
    (tmp_path / "more.csv").write_text(text_of(BASE + NULL))
    assert main([str(tmp_path / "more.csv"), *flags[1:], "--lower-is-better"]) == 0
    assert main(["--check-page", str(page)]) == 1
    assert "1 entry came since: make" in capsys.readouterr().out
    (tmp_path / "results.xlsx").touch()
    with pytest.raises(PlumblineError, match="end in one of"):
        main([str(tmp_path / "results.xlsx"), "--lower-is-better"])


def lose_runs(rows, *gone: tuple[str, str]):
    return [(method, seed, "nan" if (method, seed) in gone else value) for method, seed, value in rows]


@pytest.mark.parametrize(
    ("rows", "more", "code"),
    [
        (BASE + GOOD, [], 0),
        (BASE + WORSE, [], 10),
        (BASE + LONE, [], 11),
        (lose_runs(BASE + GOOD, ("good", "2")), [], 12),
        (lose_runs(BASE + GOOD, ("base", "2")), [], 13),
        (lose_runs(BASE + GOOD, ("base", "2")), ["--allow-diverged", "1"], 0),
        (lose_runs(BASE + GOOD, ("base", "2"), ("good", "1")), ["--allow-diverged", "1"], 0),
        (lose_runs(BASE + GOOD, ("base", "2"), ("good", "1"), ("good", "2")), ["--allow-diverged", "1"], 12),
        (lose_runs(BASE + GOOD, ("good", "1"), ("good", "2"), ("good", "3")), [], 12),
        (BASE[:1] + GOOD[:1], [], 13),
    ],
)
def test_the_exit_code_is_the_verdict_on_the_candidate(tmp_path: Path, capsys, rows, more, code: int) -> None:
    name = rows[-1][0]
    flags = [str(file_of(tmp_path, rows)), "--baseline", "base", "--metric", "loss", "--lower-is-better", *more]
    assert main([*flags, "--exit-code-of", name]) == code
    assert "Traceback" not in capsys.readouterr().err
    assert main([*flags, "--exit-code-of", name, "--json"]) == code
    report = json.loads(capsys.readouterr().out)
    assert (report["exit_code"], report["verdict"] == "keep") == (code, code == 0)
    assert main(flags) == (13 if code == 13 else 0), "a page was made, or nothing can be judged"


def test_a_misspelt_option_costs_neither_page_nor_try(tmp_path: Path, capsys) -> None:
    flags = [str(file_of(tmp_path, BASE + GOOD)), "--metric", "loss", "--lower-is-better"]
    before = sorted(tmp_path.iterdir())
    with pytest.raises(PlumblineError, match=r"--exit-code-of 'god'.*none of what.*'good'"):
        main([*flags, "--baseline", "base", "--exit-code-of", "god"])
    with pytest.raises(SystemExit):
        main([*flags, "--goal", "nan"])
    assert "--goal nan: must" in capsys.readouterr().err
    new_files = set(tmp_path.iterdir()) - set(before)
    assert all(path.name == "ledger.jsonl" and not path.read_bytes() for path in new_files)


def test_another_method_that_cannot_be_judged_is_no_try(tmp_path: Path) -> None:
    result = judge_numbers(ask(file_of(tmp_path, BASE + GOOD + LONE), baseline=None, goal=3.28))
    assert result.outcomes == {"base": "discard", "good": "keep", "lone": "cannot be judged"}
    assert result.numbers["tries"] == 2 and "`lone` cannot be judged: 'lone'" in result.sentence


def test_on_a_full_disk_neither_the_page_nor_the_entry_is_made(tmp_path: Path, monkeypatch) -> None:
    request = ask(file_of(tmp_path, BASE + GOOD))
    write(request)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    file_of(tmp_path, BASE + GOOD + LONE)
    for full in ("fsync", "write"):  # of the page's bytes, and of the ledger's line

        def fail(*_: object) -> int:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(f"os.{full}", fail)
            with pytest.raises((OSError, PlumblineError), match="No space left"):
                write(request)
        after = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        assert {name: after[name] for name in before if name != "results.csv"} == {
            name: content for name, content in before.items() if name != "results.csv"
        }
        assert after.keys() == before.keys(), "nothing half-made lies about"


def test_each_record_of_chain_is_compared_with_one_before_it(tmp_path: Path) -> None:
    result = write(ask(file_of(tmp_path, BASE + NULL + GOOD), baseline=None, chain=True))
    assert result.numbers["against"] == {"null": "base", "good": "null"}
    alone = judge_numbers(ask(tmp_path / "results.csv", baseline="null"))
    assert result.numbers["methods"]["good"]["p"] == alone.numbers["methods"]["good"]["p"]
    assert "2 seeds against 5 of `base`" in result.page and "3 seeds against 2 of `null`" in result.page
    assert main(["--check-page", str(tmp_path / "page.md")]) == 1, "one more came against `null`"
    with pytest.raises(PlumblineError, match="--baseline METHOD"):
        judge_numbers(ask(tmp_path / "results.csv", baseline=None))


def test_seeds_01_and_1_0_are_seed_1(tmp_path: Path) -> None:
    rows = [("base", "01", 3.0), ("base", "2.0", 3.1), ("x", "1", 2.0), ("x", "2", 2.2)]
    result = judge_numbers(ask(file_of(tmp_path, rows), terms={"paired": True}))
    assert result.numbers["methods"]["x"]["n"] == 2


HEAVY = ("pandas", "torch", "scipy.stats", "scipy.optimize", "tabulate", "matplotlib", "jinja2", "msgspec")


def test_verdict_loads_nothing_that_takes_long(tmp_path: Path) -> None:
    path = file_of(tmp_path, BASE + GOOD)
    code = (
        "import sys; from plumbline.verdict.__main__ import main; "
        f"main([{str(path)!r}, '--baseline', 'base', '--metric', 'loss', '--lower-is-better']); "
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.splitlines()[-1] == "[]"


@pytest.mark.parametrize("chain", [False, True])
def test_work_grows_with_the_rows_and_not_with_their_square(tmp_path: Path, monkeypatch, chain: bool) -> None:
    looks = dict.fromkeys(("identity", "is_try"), 0)

    def counting(name: str, real: property) -> property:
        def look(entry):
            looks[name] += 1
            return real.fget(entry)

        return property(look)

    for name in looks:
        monkeypatch.setattr(ledger.LedgerEntry, name, counting(name, vars(ledger.LedgerEntry)[name]))
    counts = []
    for methods in (20, 80):
        folder = tmp_path / str(methods)
        folder.mkdir()
        rows = [
            (f"m{method}", str(seed), 3 + 0.01 * seed + 0.001 * method) for method in range(methods) for seed in (1, 2)
        ]
        path = file_of(folder, BASE + rows)
        for _ in range(2):  # the second time, everything stands in the ledger
            judge_numbers(ask(path, baseline=None if chain else "base", chain=chain))
        counts.append(sum(looks.values()))
    assert counts[1] - counts[0] < 6 * counts[0], counts
