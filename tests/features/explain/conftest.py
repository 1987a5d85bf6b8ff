"""The fixtures that call the command line."""

from cli.conftest import weighbridge

__all__ = ["weighbridge"]
