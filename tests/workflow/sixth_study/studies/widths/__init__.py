"""All that is particular to the made-up document."""
