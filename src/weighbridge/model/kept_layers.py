"""How a run keeps the layers of isolation. Pure."""

from pydantic import TypeAdapter

from weighbridge.model.isolation import Layers

_LAYERS: TypeAdapter[Layers] = TypeAdapter(Layers)


def layers_json(layers: Layers) -> str:
    """The layers as a run keeps them: a JSON list of objects."""
    return _LAYERS.dump_json(layers).decode()


def layers_of(stored: str) -> Layers:
    """The layers that are kept as ``stored``. Raises ValueError where it is no such list."""
    return _LAYERS.validate_json(stored, strict=True)
