"""Reads the tables of a paper's LaTeX as text: nothing of it is executed, and what it could not read it says."""
