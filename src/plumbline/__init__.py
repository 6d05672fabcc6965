"""Rebuilds the tables and figures of five studies of Transformer pretraining."""

__version__ = "0.1.0"

#: Version of the numerics: part of every RunSpec, bumped by any change that moves a golden loss.
#: Runs made under another number are then known to be old; an innocent refactor never reruns a GPU month.
NUMERICS = 2
