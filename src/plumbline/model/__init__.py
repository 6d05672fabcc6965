"""Builds the decoder that a spec describes: slots with one component a file, attention, residual stream, loss."""
