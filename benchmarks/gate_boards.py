"""What `plumbline gate` finds in whole folders of records of other communities: counts, and the kinds of what fails.

    python benchmarks/gate_boards.py track3=FOLDER parameter-golf=FOLDER track1=FOLDER nanochat=FOLDER

Each FOLDER is one of your own clones: modded-nanogpt's records/track_3_optimization (track3) and its root (track1),
parameter-golf's records/track_10min_16mb, nanochat's root. Names of people, code and logs stay there; what is written
is counts, the numbers of records, and what does not hold of them.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from machine_description import describe

from plumbline.core.command_line import run
from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic_write_text
from plumbline.core.formats import format_count
from plumbline.verdict.board.board_page import describe_progress
from plumbline.verdict.board.board_rows import make_board
from plumbline.verdict.board.progress import place_records
from plumbline.verdict.formatting import format_p, write_grid
from plumbline.verdict.gate.board_reading import read_board
from plumbline.verdict.gate.examined_records import NOT_SHOWN
from plumbline.verdict.gate.judgement import Judgement, judge_board, pool_noise
from plumbline.verdict.gate.rules import read_rules

PAGE = Path(__file__).with_suffix(".md")


def number_of(judgement: Judgement) -> str:
    """The number of a record; its place on the board where it has a title for a name."""
    name = judgement.evidence.record.name
    return (
        f"#{name}"
        if len(name) < 12
        else f"no. {judgement.evidence.record.order + 1} ({judgement.evidence.record.date[:10]})"
    )


def section(rules_name: str, folder: Path) -> str:
    """What was found of one board."""
    rules = read_rules(rules_name)
    board_evidence = read_board(folder, rules)
    judgements = judge_board(board_evidence, rules)
    noise, sigma = pool_noise(board_evidence), pool_noise(board_evidence).sigma
    verdicts = Counter(each.verdict for each in judgements)
    kinds = Counter(kind for each in judgements for kind in {fault.kind for fault in each.evidence.faults})
    claimed = [each for each in judgements if each.evidence.record.printed_n is not None]
    exact = sum(len(each.evidence.values) == each.evidence.record.printed_n for each in claimed)
    copied = [each for each in judgements if each.evidence.copies]
    runs, logs = (
        sum(len(each.evidence.values) for each in judgements),
        sum(len(each.evidence.record.logs) for each in judgements),
    )
    facts = [
        ("records", str(len(judgements))),
        ("logs that hold an evaluation, runs that count", f"{logs:,}, {runs:,}"),
        (
            "nothing fails: the headline is its logs', code and configuration are the same",
            str(sum(each.evidence.is_checked for each in judgements)),
        ),
        *((kind if kind == NOT_SHOWN else f"does not hold: {kind}", str(times)) for kind, times in kinds.most_common()),
        *((f"verdict: {verdict}", str(times)) for verdict, times in verdicts.most_common()),
        ("records that print a number of runs; whose logs hold exactly as many", f"{len(claimed)}; {exact}"),
        (
            "records with a run in two files of their folder; such files",
            f"{len(copied)}; {sum(each.evidence.copies for each in copied)}",
        ),
        ("could not be read, or only in part", str(sum(bool(each.evidence.record.unread) for each in judgements))),
    ]
    if sigma.sigma:
        facts.append(
            (
                f"sigma of a run pooled over {noise.records} records; degrees of freedom; Bartlett's p",
                f"{sigma.sigma:.3g}; {sigma.df:g}; {format_p(noise.bartlett)}",
            )
        )
    board = make_board(judgements, rules, noise)
    text = [
        f"## {rules.name}",
        write_grid(["what", "count"], facts),
        describe_progress(board, place_records(board)),
        failing(judgements),
        unread(judgements),
        steps(judgements),
    ]
    return "\n\n".join(each for each in text if each)


def failing(judgements: Sequence[Judgement]) -> str:
    """Which records fail, by kind."""
    rows: dict[str, list[str]] = {}
    for each in judgements:
        for kind in dict.fromkeys(fault.kind for fault in each.evidence.faults):
            rows.setdefault(kind, []).append(number_of(each))
    if not rows:
        return ""
    return (
        "What does not hold or is not shown, and of which: "
        + "; ".join(f"*{kind}*: {', '.join(names)}" for kind, names in rows.items())
        + "."
    )


#: Why something could not be read: the gate's words, and what is written of them.
REASONS = {
    "no log is named": "no log is named",
    "is not in the folder": "the log that is named is not there",
    "holds an evaluation": "no log of its folder holds an evaluation in the form of the rules",
    "MiB": "a log is too large",
    "has no number": "its file has no headline",
    "form": "the headline has another form",
}


def unread(judgements: Sequence[Judgement]) -> str:
    """What could not be read, and why, with counts."""
    why = Counter(
        next((text for pattern, text in REASONS.items() if pattern in reason), "another reason")
        for each in judgements
        for reason in each.evidence.record.unread
    )
    return (
        "Not read, and why: " + "; ".join(f"{pattern}: {times}" for pattern, times in why.most_common()) + "."
        if why
        else ""
    )


def steps(judgements: Sequence[Judgement]) -> str:
    """From one best record to the next: the gain, and its p."""
    rows, beaten, both_hold = [], 0, []
    for each in judgements:
        before, test, record = each.before, each.predecessor, each.evidence.record
        if before is None or test is None or not record.marked or min(test.n, test.n_baseline) < 2:
            continue
        if record.step is not None and before.record.step is not None and record.step >= before.record.step:
            continue
        both = before.pools and each.evidence.pools
        beaten += test.p < 0.01
        both_hold += [test.p < 0.01] if both else []
        runs, ps = f"{test.n} against {test.n_baseline}", (format_p(test.p), format_p(test.welch.p_greater))
        rows.append([number_of(each), runs, f"{test.gain:.5f}", *ps, "yes" if both else "no"])
    if not rows:
        return ""
    head = (
        f"Against the best before, two runs or more of each: {format_count(len(rows), 'step')}, {beaten} at p < .01; "
        f"of the {len(both_hold)} whose logs hold on both sides, {sum(both_hold)}. Gains are in the metric; a step "
        "fewer "
        "counts "
        "as the rules say."
    )
    return f"{head}\n\n{write_grid(['record', 'runs', 'gain', 'p, pooled', 'p, Welch', 'logs hold'], rows)}"


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("boards", nargs="+", metavar="RULES=FOLDER")
    parser.add_argument("--out", type=Path, default=PAGE)
    options = parser.parse_args()
    began, sections = time.process_time(), []
    for board in options.boards:
        rules_name, _, folder = board.partition("=")
        if not folder:
            raise PlumblineError(f"{board}: write RULES=FOLDER")
        sections.append(section(rules_name, Path(folder)))
    names = " ".join(f"{board.partition('=')[0]}=FOLDER" for board in options.boards)
    head = [
        "# Records of other communities, held against their own logs",
        f"{describe(with_torch=False)}. {time.process_time() - began:.0f} s of CPU time. "
        f"`python benchmarks/gate_boards.py {names}`",
        "The folders are public clones, by their newest commit that was at hand: modded-nanogpt of 2026-08-01 (four "
        "logs of 2024-11-04 are missing in it), parameter-golf of 2026-05-02, nanochat of 2026-07-03. A fault is one "
        "of the evidence as it lies in the folder, as the rules file has it read, and says nothing of whether a change "
        "works. Sigma and p are [the gate's](../docs/gate.md). The Track 1 rules waive the goal's test for changes of "
        "the system alone, which the gate cannot tell; its folders may hold logs of other tries beside the record's.",
    ]
    atomic_write_text(options.out, "\n\n".join([*head, *sections]) + "\n")
    print(options.out)
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    run(main)
