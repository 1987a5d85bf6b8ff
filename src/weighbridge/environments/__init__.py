"""The environments that a study can compare, such as `native`, `docker` and `podman`, with one kind per module.

Each module has an object PLUGIN, which the registry finds.
"""
