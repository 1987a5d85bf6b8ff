"""The fixtures that make runs and call the command line."""

from cli.conftest import weighbridge
from report.conftest import run

__all__ = ["run", "weighbridge"]
