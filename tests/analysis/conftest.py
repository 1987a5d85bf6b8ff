"""The fixture that makes runs."""

from report.conftest import finished_run, run

__all__ = ["finished_run", "run"]
