"""A catalog as the server uses it: for each client, with the places that the client may use."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Callable
from typing import Final

from frazil.catalog.identifiers import Identifier, shown
from frazil.catalog.protocol import Capability, Catalog, LoadedTable, LoadedView
from frazil.errors import ConfigurationError, FrazilError
from frazil.format.metadata import TableMetadata
from frazil.serve.answers import forbidden
from frazil.serve.rights.access import Principal
from frazil.serve.rights.owners import Owners
from frazil.serve.rights.places import ANYWHERE, ConfinedIO, Places, folders_of
from frazil.serve.settings import ServeSettings
from frazil.storage.caches import BoundedCache
from frazil.storage.files import FileIO
from frazil.storage.paths import is_secret, join, normalize_location, parent_of
from frazil.storage.stores.remote_options import is_storage_property

_CACHED_BYTES: Final = 64 << 20
_TOLD_TO_CLIENTS: Final = ("s3.endpoint", "s3.region", "s3.path-style-access", "client.region")
_FOR_A_TABLE: Final = "t"


class ServedCatalog:
    """A catalog, and what clients may do with it.

    Files are opened in the warehouse alone, unless the settings allow any location. Where a client
    may use some namespaces only, what it changes and plans is confined to their folders and the
    table's own.

    Args:
        catalog: Frazil's; its `io` is replaced by a confined one.
        settings: of the server.

    Raises:
        ConfigurationError: the catalog has no warehouse, and not any location is allowed.
    """

    def __init__(self, catalog: Catalog, settings: ServeSettings) -> None:
        self.catalog = catalog
        self.settings = settings
        self.requests = None if settings.read_only else catalog.request_log()
        self.bodies: BoundedCache[bytes] = BoundedCache(_CACHED_BYTES)
        warehouse = catalog.properties.get("warehouse")
        self.warehouse = normalize_location(warehouse) if warehouse else None
        self.owners = Owners(catalog)
        self._places = ANYWHERE
        if not settings.any_location:
            if self.warehouse is None:
                raise ConfigurationError(
                    "the catalog has no warehouse, so every place of a table would be outside "
                    "of it: give --warehouse, or --any-location to trust the clients"
                )
            self._places = Places.of_folders(self.warehouse)
            catalog.io = ConfinedIO(
                catalog.io.properties,
                reads=self._places,
                writes=self._places,
                caches=catalog.io.caches,
            )
        # What a snapshot names need not be the table's, whoever asks for its end.
        catalog.delete_policy = _own_files

    def can_change(self, capability: Capability = Capability.CHANGES) -> bool:
        """Whether clients may change the catalog in a way."""
        return not self.settings.read_only and self.catalog.can(capability)

    def require_read(self, principal: Principal, namespace: Identifier) -> None:
        """Check that a client may read a namespace; HttpError where not."""
        if not principal.may_read(namespace):
            raise forbidden(f"this token may not read {shown(namespace)}")

    def require_write(self, principal: Principal, namespace: Identifier) -> None:
        """Check that a client may change a namespace; HttpError where not."""
        if not principal.may_write(namespace):
            raise forbidden(f"this token may not change {shown(namespace)}")

    def places_to_write(
        self, principal: Principal, *changed: LoadedTable | LoadedView, as_of_now: bool = False
    ) -> Places:
        """Return where a client may put files and say that some are.

        Folders of tables and views that it may not change are left out, wherever they lie.

        Args:
            principal: the client.
            changed: its tables and views that it changes; their own folders may be used as well.
            as_of_now: whether it counts where others' tables lie at this moment.
        """
        if principal.writes_everything:
            return self._places
        own = [folder for each in changed for folder in folders_of(each.metadata)]
        granted = Places.of_folders(*(self._folder_of(each) for each in principal.writes), *own)
        others = self.owners.folders_of_others(principal.may_write, as_of_now=as_of_now)
        return granted.without_folders(*others).with_folders(*own)

    def place_of_new_table(self, principal: Principal, identifier: Identifier) -> str:
        """Return where a new table lies whose client names no place.

        Where a table of another name has its files there, it is a folder beside it.
        """
        catalog = self.catalog
        place = catalog.default_table_location(identifier)
        if not catalog.can(Capability.TABLE_LOCATIONS):
            return place
        is_free = self.places_to_write(principal).hold(place)
        if is_free and catalog.looks_up_together:
            folder = Places.of_folders(place)
            is_free = not any(folder.hold(each) for each in catalog.all_locations().values())
        return place if is_free else f"{place.rstrip('/')}-{uuid.uuid4().hex}"

    def catalog_for(self, principal: Principal, *changed: LoadedTable | LoadedView) -> Catalog:
        """Return the catalog as a client may change it; the arguments are as of above."""
        if principal.writes_everything:
            return self.catalog
        return self._confine(self.places_to_write(principal, *changed))

    def catalog_to_purge(self, principal: Principal, table: LoadedTable) -> Catalog:
        """Return the catalog as a client may purge a table: no file of a table of others goes."""
        if principal.writes_everything:
            return self.catalog
        others = self.owners.folders_of_others(principal.may_write, as_of_now=True)
        return self._confine(self.places_to_write(principal, table).without_folders(*others))

    def _confine(self, places: Places) -> Catalog:
        def policy(metadata: TableMetadata) -> Callable[[str], bool]:
            is_own = _own_files(metadata)
            return lambda path: is_own(path) and places.hold(path)

        view = copy.copy(self.catalog)
        view.io = ConfinedIO(self.catalog.io.properties, reads=places, writes=places)
        view.delete_policy = policy
        return view

    def io_to_plan(self, principal: Principal, table: LoadedTable) -> FileIO:
        """Return the files of a table as a scan of a client may open them."""
        if principal.reads_everything:
            return table.io
        own = folders_of(table.metadata)
        granted = (self._folder_of(each) for each in principal.reads | principal.writes)
        others = self.owners.folders_of_others(principal.may_read, as_of_now=False)
        places = Places.of_folders(*granted, *own).without_folders(*others).with_folders(*own)
        return ConfinedIO(table.io.properties, reads=places, writes=Places(()))

    def client_properties(self) -> dict[str, str]:
        """Return what every client is told of the store; none of it is a secret."""
        properties = self.catalog.properties
        found = {name: properties[name] for name in _TOLD_TO_CLIENTS if name in properties}
        return {name: value for name, value in found.items() if "@" not in value}

    def credentials_for(self, principal: Principal) -> list[dict[str, object]]:
        """Return the store's credentials for a client, none unless they are to be given.

        They open the whole store, so only those get them who may change the whole catalog.
        """
        are_given = self.settings.vend_credentials and not self.settings.read_only
        if not are_given or not principal.writes_everything or self.warehouse is None:
            return []
        config = {
            name: value
            for name, value in self.catalog.properties.items()
            if is_storage_property(name)
        }
        if not any(is_secret(name) for name in config):
            return []
        return [{"prefix": self.warehouse, "config": config}]

    def _folder_of(self, namespace: Identifier) -> str:
        """Where new tables of a namespace lie."""
        try:
            return parent_of(self.catalog.default_table_location((*namespace, _FOR_A_TABLE)))
        except FrazilError:
            if self.warehouse is None:
                raise
            return join(self.warehouse, *namespace)


def _own_files(metadata: TableMetadata) -> Callable[[str], bool]:
    """Tell which files lie in a table's own folders."""
    return Places.of_folders(*folders_of(metadata)).hold
