"""All that is particular to the premature document."""
