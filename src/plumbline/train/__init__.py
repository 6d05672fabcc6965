"""Pretraining: one run from its spec to weights, metrics, a manifest and an outcome."""
