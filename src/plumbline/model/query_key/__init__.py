"""Holds the components of the slot `query_key`: what happens to queries and keys before positions and scores."""
