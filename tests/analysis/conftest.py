"""The fixture that makes runs."""

from report.conftest import _quick_pages, run, static_charts

__all__ = ["_quick_pages", "run", "static_charts"]
