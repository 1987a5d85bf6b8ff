"""Starts and controls Docker and Podman for the environments that use them."""
