"""Holds the learning-rate schedules, one file each: a component that is a function of progress, with its options.

Progress is 0 at the end of the warm-up and 1 at the last step; the value is a share of the peak.
"""
