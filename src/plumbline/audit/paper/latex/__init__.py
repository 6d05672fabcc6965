"""Reads the tables of a paper's LaTeX as text: nothing of it is executed, and what could not be read is listed."""
