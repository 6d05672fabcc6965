"""The documents' theorems as executable checks."""
