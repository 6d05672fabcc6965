"""Shows a board of records: a row a record with what was checked of it, and how far luck alone would have come."""
