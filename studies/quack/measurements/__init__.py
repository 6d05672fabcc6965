"""What the quack study measures beside training: one module for each, a function of its name."""
