"""Tables that lie somewhere get a name in a catalog."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress

from frazil.catalog.identifiers import Identifier, shown
from frazil.catalog.outcome import after_the_change
from frazil.catalog.protocol import Catalog, LoadedTable
from frazil.catalog.static import is_metadata_file, newest_metadata_file
from frazil.errors import InvalidFormatError, NoSuchTableError, StorageError
from frazil.storage.paths import normalize_location, redact

_LOG = logging.getLogger(__name__)


def register_table(catalog: Catalog, identifier: str | Sequence[str], location: str) -> LoadedTable:
    """Give a table a name in a catalog.

    `location` is a metadata file, or the table's folder, whose newest metadata is taken.
    """
    is_file = is_metadata_file(location)
    path = location if is_file else newest_metadata_file(catalog.io, normalize_location(location))
    return catalog.register_table(identifier, path)


def drop_and_tell(catalog: Catalog, identifier: Identifier) -> None:
    """Remove a table's name, and log where its metadata stays, which brings the table back."""
    location = None
    with suppress(InvalidFormatError, NoSuchTableError, StorageError):
        # A table whose metadata cannot be read can still be dropped; who drops says what a view is.
        location = catalog.metadata_location(identifier)
    catalog.drop_table(identifier)
    with after_the_change(f"whether files of {shown(identifier)} stay is not known"):
        # A catalog of folders has deleted them.
        if location is not None and catalog.io.exists(location):
            _LOG.warning(
                "dropped %s: its files stay, and register_table with %s brings it back",
                shown(identifier),
                redact(location, catalog.properties),
            )
