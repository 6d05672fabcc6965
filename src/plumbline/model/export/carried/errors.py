"""Stands in for `plumbline.core.errors` in an exported folder."""

from __future__ import annotations


class PlumblineError(ValueError):
    """An error that a user can fix. Its message names what is at fault and the remedy."""
