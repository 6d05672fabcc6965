"""``python -m plumbline``: the command `plumbline`."""

from plumbline.command import NAME, main

main(prog_name=NAME)
