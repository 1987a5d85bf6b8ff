"""What a study file may say about where its userland comes from."""

from weighbridge.model.options import Options


class SourceOptions(Options):
    """Base of the options of each source."""

    kind: str


def own_userland_key(environment: str) -> str:
    """The place in a study of the userland that an environment has to itself."""
    return f"environments.{environment}.userland"
