"""The fixture that makes runs."""

from report.conftest import run

__all__ = ["run"]
