"""Makes the table of alternatives, which all studies share: other meanings of what the paper leaves open, run."""

from plumbline.results.tables.alternatives import alternatives

__all__ = ["alternatives"]
