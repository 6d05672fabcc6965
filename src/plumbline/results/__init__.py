"""Tables: finished runs in, what a document prints and what was measured out, side by side and traceable."""
