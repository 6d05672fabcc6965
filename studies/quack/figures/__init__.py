"""The quack study's figures, one file each."""
