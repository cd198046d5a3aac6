"""What carries requests to a server: its library comes with an extra."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from frazil.catalog.rest.settings import TransportSettings, tls_context
from frazil.errors import ConfigurationError
from frazil.later import later

if TYPE_CHECKING:
    from frazil.catalog.rest.exchange.transport import Transport
else:
    Transport = later("frazil.catalog.rest.exchange.transport", "Transport")


def transport_of(properties: Mapping[str, str]) -> Transport:
    """Return what carries requests as a catalog's properties say."""
    settings, tls = TransportSettings.of(properties), tls_context(properties)
    try:
        return Transport(settings, tls)
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"a REST catalog needs {error.name}: pip install 'frazil[rest]'"
        ) from error
