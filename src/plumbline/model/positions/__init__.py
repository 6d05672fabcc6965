"""Holds the components of the slot `positions`: how a model knows where a token stands."""
