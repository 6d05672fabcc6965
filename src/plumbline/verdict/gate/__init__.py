"""Checks the records of a community as they lie in its repository: what they print, their logs, and what follows."""
