"""The hypervisors of a site as a run keeps them: JSON."""

from pydantic import TypeAdapter

from weighbridge.model.isolation import SiteLayers

_LAYERS: TypeAdapter[SiteLayers] = TypeAdapter(SiteLayers)


def layers_json(site: SiteLayers) -> str:
    """A site's layers as a run keeps them."""
    return _LAYERS.dump_json(site).decode()


def layers_of(stored: str) -> SiteLayers:
    """The layers that are kept as ``stored``. Raises ValueError where it is something else."""
    return _LAYERS.validate_json(stored, strict=True)
