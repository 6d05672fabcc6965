"""Starts jobs from a process that has imported the packages already, so that a short job does not wait for them."""
