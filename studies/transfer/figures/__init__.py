"""Holds the transfer study's figures, one file each: finished runs in, a picture and its numbers out."""
