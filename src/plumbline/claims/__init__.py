"""Claims: every checkable statement of a document, what was measured, and a verdict by a stated rule."""
