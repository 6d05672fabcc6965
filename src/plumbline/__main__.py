"""``python -m plumbline``: the command `plumbline`."""

from plumbline.cli import NAME, main

main(prog_name=NAME)
