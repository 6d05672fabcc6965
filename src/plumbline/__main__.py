"""Runs the command `plumbline` as ``python -m plumbline``."""

from plumbline.cli import NAME, main

main(prog_name=NAME)
