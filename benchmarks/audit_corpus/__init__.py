"""Measures what `plumbline audit` reads and says of papers that others wrote: the bar of the audit."""
