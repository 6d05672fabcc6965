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
from plumbline.verdict.board.board_rows import make_board
from plumbline.verdict.board.project_board import read_project_board
from plumbline.verdict.gate.board_reading import read_board
from plumbline.verdict.gate.judgement import judge_board, pool_noise
from plumbline.verdict.gate.rules import list_known_rules, read_rules


def arguments() -> Parser:
    """The parser of the verb's command line."""
    parser = Parser(__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="the folder of the records")
    parser.add_argument(
        "--rules", help=f"a rules file, or one of {', '.join(list_known_rules())}; without it a project's own"
    )
    parser.add_argument("--out", type=Path, default=Path("board"), metavar="FOLDER", help="where the pages go")
    parser.add_argument("--tries", type=positive, help="how many tries each record stands for, in the band of luck")
    return parser


def main() -> int:
    """Run the verb `plumbline board` and return its exit code.

    Raises:
        PlumblineError: the folder or the rules cannot be read.
    """
    from dataclasses import replace

    options = arguments().parse_args()
    if options.rules is None:
        board = read_project_board(options.folder)
    else:
        rules = read_rules(options.rules)
        records = read_board(options.folder, rules)
        board = make_board(judge_board(records, rules), rules, pool_noise(records))
    if options.tries:
        board = replace(board, tries=options.tries)
    for path in write_board(board, options.out):
        print(visible(str(path)))
    return 0


if __name__ == "__main__":
    run(main)
