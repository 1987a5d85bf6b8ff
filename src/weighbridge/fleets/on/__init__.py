"""What provides the machines of a fleet: one plug-in a module."""
