"""The sources of a root filesystem, such as Debian packages or a Docker image, with one source per module.

Each module has an object PLUGIN, which the registry finds.
"""
