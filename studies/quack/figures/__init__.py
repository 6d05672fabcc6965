"""Holds the quack study's figures, one file each."""
