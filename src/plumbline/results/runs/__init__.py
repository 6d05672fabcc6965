"""Reads finished runs for tables, figures and claims, and checks that they can be compared.

expected_runs.py  which runs are expected
finished_runs.py  what they hold, as frames
comparability.py  whether their numbers can stand side by side
"""
