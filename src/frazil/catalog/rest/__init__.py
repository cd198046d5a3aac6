"""Tables behind a server of Iceberg's REST protocol."""

from __future__ import annotations

from frazil.catalog.rest.catalog import RestCatalog

__all__ = ["RestCatalog"]
