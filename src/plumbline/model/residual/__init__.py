"""Holds the components of the slot `residual`: the stream that sublayers read from and write to."""
