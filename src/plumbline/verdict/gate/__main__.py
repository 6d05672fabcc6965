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
from plumbline.verdict.gate.board_reading import find_record, read_board
from plumbline.verdict.gate.gate_words import judgement_to_json, write_board_table, write_lines
from plumbline.verdict.gate.judgement import judge_board, judge_record, pool_noise
from plumbline.verdict.gate.rules import list_known_rules, read_rules


def arguments() -> Parser:
    """The parser of the verb's command line."""
    parser = Parser(__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="the folder of the records, with their logs")
    parser.add_argument("--rules", required=True, help=f"a rules file, or one of {', '.join(list_known_rules())}")
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--record", help="the record that is judged; without it the newest")
    choice.add_argument("--all", action="store_true", help="a row for every record; the exit code is 0")
    parser.add_argument("--json", action="store_true", help="print one object")
    return parser


def main() -> int:
    """Run the verb `plumbline gate` and return its exit code.

    Raises:
        PlumblineError: the rules or the folder cannot be read.
        UsageError: no record has the name.
    """
    options = arguments().parse_args()
    rules = read_rules(options.rules)
    board = read_board(options.folder, rules)
    if options.all:
        judgements = judge_board(board, rules)
        noise = pool_noise(board)
        if options.json:
            print(
                json.dumps(
                    {
                        "rules": rules.name,
                        "sigma": noise.sigma.sigma or None,
                        "freedom": noise.sigma.df,
                        "records": [judgement_to_json(each, rules) for each in judgements],
                    },
                    indent=1,
                )
            )
        else:
            print(write_board_table(judgements, rules, noise))
        return 0
    judgement = judge_record(find_record(board, options.record), board, rules)
    print(
        json.dumps(judgement_to_json(judgement, rules), indent=1)
        if options.json
        else "\n".join(write_lines(judgement, rules))
    )
    return judgement.exit_code


if __name__ == "__main__":
    run(main)
