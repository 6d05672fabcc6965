"""Runs experiments from their verbs: `plumbline try`, `confirm`, `noise`, `log`, `page`."""
