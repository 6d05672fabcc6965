"""Holds the components of the slot `projections`: from the stream to queries, keys and values, and back."""
