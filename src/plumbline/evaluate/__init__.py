"""Evaluates models: items in the hub's form, the harness's own tasks over them, scores per task and per example.

`probes` reads numbers per layer and head, of a checkpoint or while a run trains.
"""
