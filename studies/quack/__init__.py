"""All that is particular to the quack document."""
