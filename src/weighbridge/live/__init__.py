"""Reports the progress of a run as Prometheus metrics while the run is measured."""
