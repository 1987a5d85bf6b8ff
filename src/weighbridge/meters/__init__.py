"""Meters: what was used while a trial ran, read from the kernel with little disturbance."""
