"""Turns the YAML of studies into run specs, and finds components, corpora, suites and a study's own code. No torch."""
