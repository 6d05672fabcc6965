"""Holds the components of the slot `norm`: normalisation over the last dimension."""
