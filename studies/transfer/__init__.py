"""All that is particular to the transfer document."""
