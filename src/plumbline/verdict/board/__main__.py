"""Writes a board of records as pages that open from disk: what each claims, what its logs say, and what luck gives.

    plumbline board records/track_3_optimization --rules track3 --out board
    plumbline board results/verdict --out board    # a project's own verdicts

It writes index.html, progress.svg, card.svg and board.json. Nothing of the folder is run or changed.
"""

from __future__ import annotations

from pathlib import Path

from plumbline.core.command_line import Parser, positive, run
from plumbline.core.errors import visible
from plumbline.verdict.board.board_page import write_board
from plumbline.verdict.board.board_rows import board_of
from plumbline.verdict.board.project_board import project_board
from plumbline.verdict.gate.board_reading import read_board
from plumbline.verdict.gate.judgement import judge_board, noise_of
from plumbline.verdict.gate.rules import known, read_rules


def arguments() -> Parser:
    """The parser of the verb's command line."""
    parser = Parser(__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="the folder of the records")
    parser.add_argument("--rules", help=f"a rules file, or one of {', '.join(known())}; without it a project's own")
    parser.add_argument("--out", type=Path, default=Path("board"), metavar="FOLDER", help="where the pages go")
    parser.add_argument("--tries", type=positive, help="how many tries each record stands for, in the band of luck")
    return parser


def main() -> int:
    """Run the verb `plumbline board` and return its exit code.

    Raises:
        PlumblineError: the folder or the rules cannot be read.
    """
    from dataclasses import replace

    given = arguments().parse_args()
    if given.rules is None:
        board = project_board(given.folder)
    else:
        rules = read_rules(given.rules)
        found = read_board(given.folder, rules)
        board = board_of(judge_board(found, rules), rules, noise_of(found))
    if given.tries:
        board = replace(board, tries=given.tries)
    for path in write_board(board, given.out):
        print(visible(str(path)))
    return 0


if __name__ == "__main__":
    run(main)
