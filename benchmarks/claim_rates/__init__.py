"""How often each claim of a paper would come out as reproduced if the paper were right, and if nothing differed."""
