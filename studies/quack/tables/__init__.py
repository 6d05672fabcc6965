"""The quack study's tables, one file each."""
