"""Lets Snakemake find its logger `plumbline` (profiles/default chooses it) by the name of this package."""

from plumbline.operate.console.log_handler import LogHandler

__all__ = ["LogHandler"]
