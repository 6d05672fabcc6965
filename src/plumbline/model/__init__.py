"""Builds the decoder that a spec describes: slots with one component a file, attention, residual stream, loss.

Beside it stands what training, probing and scoring share: how ranks and numbers are set up, and reading a model from a
finished run or a folder in Hugging Face form. `export` writes a run as such a folder.
"""
