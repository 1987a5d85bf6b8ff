"""What a study file may say about where its userland comes from."""

from weighbridge.model.options import Options


class SourceOptions(Options):
    """Base of the options of each source."""

    kind: str
