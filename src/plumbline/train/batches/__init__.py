"""Brings a run's sequences from its packs to its steps: packs, micro-batches, reading ahead."""
