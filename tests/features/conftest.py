"""The fixtures that make runs and call the command line."""

from cli.conftest import weighbridge
from report.conftest import finished_run, run

__all__ = ["finished_run", "run", "weighbridge"]
