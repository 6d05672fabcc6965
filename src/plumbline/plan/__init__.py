"""Estimates what targets cost, before they are run and while they are, and from the same model the time limits of
jobs.

Seconds of a job = start-up + operations x relative step time / (operations a second x devices). The speed and the
start-up are measured on finished runs where there are any, else stated in config/machines.yaml. Operations are counted
from the modules where that was done (`plumbline.plan.model_counts`), else estimated. Nothing here imports torch, except
to count.
"""
