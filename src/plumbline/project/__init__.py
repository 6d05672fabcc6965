"""Knows a configuration: its runs, paths, targets, fingerprints and command lines."""
