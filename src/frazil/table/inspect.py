"""The metadata tables that need no engine, as polars frames."""

from __future__ import annotations

from frazil.format.metadata import TableMetadata
from frazil.storage.files import FileIO


class Inspector:
    """Metadata tables of one table."""

    def __init__(self, metadata: TableMetadata, metadata_location: str, io: FileIO) -> None:
        self._metadata = metadata
        self._metadata_location = metadata_location
        self._io = io
