"""One package a study: its tables, figures, claims and audit rows. Found by name; nothing lists them."""
