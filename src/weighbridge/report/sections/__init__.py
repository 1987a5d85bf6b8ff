"""The sections of a run's report page."""
