"""Keeps finished runs in a git repository for others to read: a registry of runs, with one page as its index."""

from weighbridge.cli.feature import Feature

FEATURE = Feature(
    commands={"registry": "weighbridge.features.archive.options:REGISTRY"},
    after="export",
    documents={"registry": "weighbridge.features.archive.document:RegistryDocument"},
)
