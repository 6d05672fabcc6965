"""Holds what every other room stands on: errors, files, frames, fingerprints, process records, permissions."""
