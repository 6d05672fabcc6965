"""What it measures beside its runs."""
