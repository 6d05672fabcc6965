"""Checks a record of a community before it is taken: its numbers against its own logs, the goal and the record before.

    plumbline gate records/track_3_optimization --rules track3
    plumbline gate records/track_10min_16mb --rules parameter-golf --all

It prints eight lines for a comment. The exit code is the verdict: 0 keep, 10 discard, 11 undecided, 12 a run has no
number, 13 the record cannot be judged, because its logs do not contain what it states. It runs nothing in the folder.
"""

from __future__ import annotations

import json
from pathlib import Path

from plumbline.core.command_line import Parser, run
from plumbline.verdict.gate.board_reading import find, read_board
from plumbline.verdict.gate.gate_words import as_json, board_table, eight_lines
from plumbline.verdict.gate.judgement import judge_board, judge_record, noise_of
from plumbline.verdict.gate.rules import known, read_rules


def arguments() -> Parser:
    """The parser of the verb's command line."""
    parser = Parser(__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="the folder of the records, with their logs")
    parser.add_argument("--rules", required=True, help=f"a rules file, or one of {', '.join(known())}")
    one = parser.add_mutually_exclusive_group()
    one.add_argument("--record", help="the record that is judged; without it the newest")
    one.add_argument("--all", action="store_true", help="a row for every record; the exit code is 0")
    parser.add_argument("--json", action="store_true", help="print one object")
    return parser


def main() -> int:
    """Run the verb `plumbline gate` and return its exit code.

    Raises:
        PlumblineError: the rules or the folder cannot be read.
        UsageError: no record has the name.
    """
    given = arguments().parse_args()
    rules = read_rules(given.rules)
    board = read_board(given.folder, rules)
    if given.all:
        judged = judge_board(board, rules)
        noise = noise_of(board)
        if given.json:
            print(
                json.dumps(
                    {
                        "rules": rules.name,
                        "sigma": noise.sigma.sigma or None,
                        "freedom": noise.sigma.df,
                        "records": [as_json(each, rules) for each in judged],
                    },
                    indent=1,
                )
            )
        else:
            print(board_table(judged, rules, noise))
        return 0
    one = judge_record(find(board, given.record), board, rules)
    print(json.dumps(as_json(one, rules), indent=1) if given.json else "\n".join(eight_lines(one, rules)))
    return one.exit_code


if __name__ == "__main__":
    run(main)
