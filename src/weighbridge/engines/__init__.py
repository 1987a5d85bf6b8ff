"""Starts and controls Docker, Podman and VirtualBox for the environments that use them."""
