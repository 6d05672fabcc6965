"""Packs for a real run, as the tests of training have them."""

from tests.train.conftest import packs

__all__ = ["packs"]
