"""Reads documents from their sources: each yields `Document`s, which `plumbline.data.documents` gathers."""
