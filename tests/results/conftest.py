"""The published world, built once."""

from tests.studies.transfer.conftest import published

__all__ = ["published"]
