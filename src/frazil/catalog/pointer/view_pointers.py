"""Views of catalogs that keep where a view's metadata file lies, and write that file themselves."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence

from frazil.catalog.identifiers import Identifier, parse_table_identifier, shown
from frazil.catalog.metadata_files import read_view_metadata, view_metadata_file
from frazil.catalog.outcome import Sending, new_metadata_file
from frazil.catalog.views import LoadedView, ViewMethods
from frazil.errors import CommitFailedError
from frazil.format.schema import Schema
from frazil.format.views import (
    ViewMetadata,
    ViewRequirement,
    ViewUpdate,
    ViewVersion,
    apply_view_updates,
    check_view_requirements,
    new_view_metadata,
)
from frazil.storage.files import FileIO
from frazil.storage.locations import metadata_version, new_view_metadata_file_path
from frazil.storage.paths import normalize_location


class PointerViewMethods(ViewMethods):
    """What is the same of all of them; a kind says how its pointers are read, made and moved."""

    io: FileIO

    def load_view(self, identifier: str | Sequence[str]) -> LoadedView:
        name = parse_table_identifier(identifier)
        location = self._view_location(name)
        return LoadedView(name, read_view_metadata(self.io, location), location)

    def create_view(
        self,
        identifier: str | Sequence[str],
        schema: Schema,
        version: ViewVersion,
        *,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> LoadedView:
        name = parse_table_identifier(identifier)
        self._require_free(name)
        place = (
            self.default_view_location(name) if location is None else normalize_location(location)
        )
        metadata = new_view_metadata(schema, version, location=place, properties=properties)
        view = LoadedView(name, metadata, new_view_metadata_file_path(metadata, version=0))
        data = view_metadata_file(metadata, path=view.metadata_location)
        with new_metadata_file(self.io, view.metadata_location, data) as sending:
            self._insert_view(view, sending)
        return view

    def register_view(self, identifier: str | Sequence[str], metadata_location: str) -> LoadedView:
        name = parse_table_identifier(identifier)
        self._require_free(name)
        metadata = read_view_metadata(self.io, metadata_location)
        view = LoadedView(name, metadata, metadata_location)
        self._insert_view(view, Sending())
        return view

    def commit_view(
        self,
        identifier: str | Sequence[str],
        requirements: Sequence[ViewRequirement],
        updates: Sequence[ViewUpdate],
        *,
        base: LoadedView | None = None,
    ) -> LoadedView:
        current = self.load_view(identifier)
        if base is not None:
            require_pointer(base, current.metadata_location)
        check_view_requirements(current.metadata, requirements)
        updated = apply_view_updates(current.metadata, updates)
        if updated is current.metadata:
            return current
        return self._swap_view(current, next_view(current, updated))

    # -- pointers --------------------------------------------------------------------------------

    @abstractmethod
    def _view_location(self, name: Identifier) -> str:
        """Return where a view's metadata file lies."""

    @abstractmethod
    def _require_free(self, name: Identifier) -> None:
        """Check that a view may get a name."""

    @abstractmethod
    def _insert_view(self, view: LoadedView, sending: Sending) -> None:
        """Make the pointer of a new view."""

    @abstractmethod
    def _swap_view(self, base: LoadedView, view: LoadedView) -> LoadedView:
        """Write a view's metadata file, and move the pointer there; return the view."""


def next_view(base: LoadedView, updated: ViewMetadata) -> LoadedView:
    """Return a view with new metadata, at a path of its own."""
    number = metadata_version(base.metadata_location)
    path = new_view_metadata_file_path(updated, version=0 if number is None else number + 1)
    return LoadedView(base.identifier, updated, path)


def require_pointer(base: LoadedView, found: str | None) -> None:
    """Check that a view's pointer is where it was.

    Raises CommitFailedError where it is elsewhere.
    """
    if found != base.metadata_location:
        raise CommitFailedError(
            f"{shown(base.identifier)} points to {found}, not to {base.metadata_location}: "
            f"another writer was first"
        )
