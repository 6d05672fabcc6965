"""Holds the components of the slot `ffn`: feed-forward networks, (B, T, D) to (B, T, D)."""
