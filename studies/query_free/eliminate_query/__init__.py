"""Takes W_Q out of a checkpoint where a theorem of the paper allows it: the verb, and what it is made of."""
