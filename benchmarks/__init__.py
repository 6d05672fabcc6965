"""Questions about speed and their answers. A package, so that none of that name which is installed stands before it."""
