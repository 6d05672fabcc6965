"""Runs experiments from their verbs (`plumbline setup-trainer`, `try`, `confirm`, `screen`, `noise`, `log`, `page`),
and judges a user's own methods.
"""
