"""Runs the command `plumbline` as ``python -m plumbline``."""

from plumbline.cli import main

main()
