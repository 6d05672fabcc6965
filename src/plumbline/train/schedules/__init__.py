"""Learning-rate schedules, one file each, with one function: `decay(progress, floor)`."""
