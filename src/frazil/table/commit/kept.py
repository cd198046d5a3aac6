"""What an operation keeps between the tries of its commit."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from frazil.format.metadata import TableMetadata

Value = TypeVar("Value")


class KeptBetweenTries(Generic[Value]):
    """Values that were made for a table's definition, as long as that definition stays.

    Manifests are written in a format version, with the current schema and with partition specs in
    their header. All that a value depends on beside these belongs in its key: a `ManifestFile` as
    a whole, for another try may see the same path under other sequence numbers and row ids.
    """

    def __init__(self) -> None:
        self._metadata: TableMetadata | None = None
        self._made_for: tuple[object, ...] | None = None
        self._values: dict[Hashable, Value] = {}

    def get_or_make(
        self, metadata: TableMetadata, key: Hashable, make: Callable[[], Value]
    ) -> Value:
        """Return the value of the key, made now unless it is there for this definition."""
        found = self.find(metadata, key)
        if found is None:
            found = self._values[key] = make()
        return found

    def find(self, metadata: TableMetadata, key: Hashable) -> Value | None:
        """Return the value of the key if it is there for this definition."""
        if metadata is not self._metadata:
            made_for = (metadata.format_version, metadata.schema, dict(metadata.specs_by_id))
            if made_for != self._made_for:
                self._values.clear()
            self._metadata, self._made_for = metadata, made_for
        return self._values.get(key)

    def clear(self) -> None:
        """Forget everything."""
        self._values.clear()
