"""Stands in for `plumbline.core.command_line` in an exported folder."""

from __future__ import annotations


class PlumblineError(ValueError):
    """An error a user can mend. Its message names what is at fault and the remedy."""
