"""Serves the state of a running run to Prometheus, with ``--metrics``."""

from weighbridge.cli.declared import option
from weighbridge.cli.feature import Feature, Watcher
from weighbridge.cli.help import OUTPUT

FEATURE = Feature(
    watchers=(
        Watcher(
            "metrics",
            option(
                "--metrics 127.0.0.1:PORT",
                "Serve the progress of the run to Prometheus at this loopback address. Port 0 selects any free port.",
                OUTPUT,
            ),
            "weighbridge.features.monitoring.option:watching",
        ),
    )
)
