"""The environments that are virtual machines."""
