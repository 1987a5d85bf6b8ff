"""The kinds of storage that hold a workload's data, such as a directory, a volume or NFS, with one per module.

Each module has an object PLUGIN, which the registry finds.
"""
