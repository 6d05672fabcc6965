"""Holds the components of the slot `mixer`: how scores become weights, and weights and values become head outputs."""
