"""Evaluates models: items in the hub's form, the harness's own tasks over them, scores per task and per example."""
