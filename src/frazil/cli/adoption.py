"""Tables and views of one catalog get names in another: where they are, what becomes of each."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Literal
from urllib.parse import urlsplit

from frazil.catalog.config import CatalogConfig, open_catalog, resolve, sources_of
from frazil.catalog.identifiers import Identifier, parse_namespace, shown
from frazil.catalog.metadata_files import read_metadata
from frazil.catalog.pointer.filesystem import FilesystemCatalog
from frazil.catalog.protocol import Capability, Catalog, LoadedTable, LoadedView
from frazil.catalog.static import newest_metadata_file
from frazil.errors import (
    ConfigurationError,
    FrazilError,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    ValidationError,
)
from frazil.storage.paths import (
    join,
    name_of,
    normalize_location,
    parent_of,
    redact,
    scheme_of,
)
from frazil.storage.stores.remote_options import is_storage_property

Action = Literal["register", "registered", "exists", "not Iceberg", "failed"]
Kind = Literal["table", "view", "other"]
"""What has a name: a table or a view of Iceberg, or other files."""


_METASTORE: Final = "hive"
_METASTORE_PORT: Final = 9083
_FOLDER: Final = "filesystem"


@dataclass(frozen=True, slots=True)
class AdoptionSource:
    """A catalog whose tables and views are to get names in another one.

    Attributes:
        catalog: holds them.
        namespace: whose names are meant, and those below it; ``()`` means all.
    """

    catalog: Catalog
    namespace: Identifier = ()

    @classmethod
    def of(cls, text: str, properties: Mapping[str, str]) -> AdoptionSource:
        """Open what a command line names.

        Args:
            text: ``hive://host:port/db``, a folder of tables, or the name of a configured catalog,
                with ``/`` and a namespace behind it or not.
            properties: of the other catalog; how stores are reached is taken from them, where the
                text is not the name of a catalog.

        Raises:
            ConfigurationError: there is no such folder or catalog, or the address is malformed.
            UnsupportedError: the catalog is of a kind that this release does not have.
        """
        stores = {key: value for key, value in properties.items() if is_storage_property(key)}
        if scheme_of(text) == _METASTORE:
            return cls(*_metastore(text, stores))
        if scheme_of(text) or text.startswith(("/", ".", "~")):
            return cls(*_folder(os.path.expanduser(text), stores))
        name, _, namespace = text.partition("/")
        if not sources_of(name):
            raise ConfigurationError(
                f"no catalog {name} is configured: frazil catalog ls shows those that are; a "
                f"folder is written ./{text} or /{text}"
            )
        return cls(open_catalog(resolve(name)), parse_namespace(namespace))

    def names(self) -> Iterator[tuple[Identifier, Kind]]:
        """Yield the names and what has them, those of tables first, each kind sorted.

        Raises:
            NoSuchNamespaceError: there is no such namespace.
        """
        tables = self.catalog.list_tables_below(self.namespace)
        named: list[tuple[Identifier, Kind]] = [(name, "table") for name in tables]
        if isinstance(self.catalog, FilesystemCatalog):
            others = _others_below(self.catalog, self.namespace, tables)
            named += ((name, "other") for name in others)
        yield from sorted(named)
        if self.catalog.can(Capability.VIEWS):
            yield from ((name, "view") for name in sorted(self._views()))

    def _views(self) -> Iterator[Identifier]:
        waiting = [self.namespace] if self.namespace else self.catalog.list_namespaces()
        while waiting:
            current = waiting.pop()
            with suppress(NoSuchNamespaceError):
                waiting.extend(self.catalog.list_namespaces(current))
                yield from self.catalog.list_views(current)


@dataclass(frozen=True, slots=True)
class Adopted:
    """One table or view, and what becomes of it.

    Attributes:
        source: its name where it is.
        target: its name in the other catalog.
        action: what will be done, or was done.
        kind: what it is.
        metadata_file: of it as it is now; None if that cannot be read.
        format_version: of the table or view.
        reason: why nothing is done, or what to know of the name.
    """

    source: Identifier
    target: Identifier
    action: Action
    kind: Kind = "table"
    metadata_file: str | None = None
    format_version: int | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Adoption:
    """What one command does.

    Attributes:
        source: where the tables are.
        target: gets their names; None if it is not there yet, and so holds nothing.
        into: the namespace of all new names; None keeps the namespaces of the source.
    """

    source: AdoptionSource
    target: Catalog | None
    into: Identifier | None = None

    def plan_all(self, names: Iterable[tuple[Identifier, Kind]]) -> Iterator[Adopted]:
        """Yield what is to be done with each of the source's names; a failure is of one alone."""
        taken: dict[Identifier, Identifier] = {}
        for name, kind in names:
            new = name if self.into is None else (*self.into, name[-1])
            row = Adopted(name, new, "register", kind)
            if kind == "other":
                yield replace(row, action="not Iceberg")
                continue
            first = taken.setdefault(new, name)
            if first != name:
                yield replace(
                    row, action="failed", reason=f"{shown(first)} takes this name already"
                )
                continue
            try:
                yield self._view(row) if kind == "view" else self._table(row)
            except FrazilError as error:
                yield replace(row, action="failed", reason=self._one_line(error))

    def carry_out(self, planned: Adopted) -> Adopted:
        """Return a table or view after its name was made, if it was to be made."""
        if planned.action != "register" or planned.metadata_file is None or self.target is None:
            return planned
        is_view = planned.kind == "view"
        register = self.target.register_view if is_view else self.target.register_table
        try:
            make_namespace(self.target, planned.target[:-1])
            register(planned.target, planned.metadata_file)
        except FrazilError as error:
            return replace(planned, action="failed", reason=self._one_line(error))
        return replace(planned, action="registered")

    def missing_namespaces(self, planned: Iterable[Adopted]) -> list[Identifier]:
        """Return the namespaces that are to be made, sorted."""
        needed = {each.target[:-1] for each in planned if each.action == "register"}
        if self.target is None:
            return sorted(needed)
        return sorted(each for each in needed if not self._has_namespace(self.target, each))

    def _table(self, row: Adopted) -> Adopted:
        source = self.source.catalog
        try:
            found = source.load_table(row.source)
        except NoSuchTableError:
            if not isinstance(source, FilesystemCatalog):
                raise
            return self._of_folder(row, source)
        row = _with_file(row, found)
        there = self._target_table(row.target)
        if there is not None:
            return _outcome_of_existing(row, found, there)
        if row.target != row.source and self._is_in_target_as(row.source, found):
            raise _second_name(row)
        if self.target is not None and self.target.view_exists(row.target):
            raise ValidationError(f"{shown(row.target)} is a view: choose a namespace with --into")
        return row

    def _view(self, row: Adopted) -> Adopted:
        found = self.source.catalog.load_view(row.source)
        row = replace(_with_file(row, found), reason=_looks_elsewhere(row, found))
        target = self.target
        if target is None:
            return row
        if not target.can(Capability.VIEWS):
            raise target.unsupported(Capability.VIEWS)
        if target.view_exists(row.target):
            return _outcome_of_existing(row, found, target.load_view(row.target))
        is_there = row.target != row.source and target.view_exists(row.source)
        if is_there and _is_same_table(found, target.load_view(row.source)):
            raise _second_name(row)
        if target.table_exists(row.target):
            raise ValidationError(f"{shown(row.target)} is a table: choose a namespace with --into")
        return row

    def _of_folder(self, row: Adopted, source: FilesystemCatalog) -> Adopted:
        """What becomes of a folder that a catalog with pointers of its own has, or had."""
        place = join(source.warehouse, *row.source)
        has = self._places.get(place)
        if has is not None:
            name = None if has == row.target else f"as {shown(has)}"
            there = None if self.target is None else self._target_table(has)
            known = row if there is None else _with_file(row, there)
            return replace(known, action="exists", reason=name)
        path = newest_metadata_file(source.io, place)
        found = LoadedTable(row.source, read_metadata(source.io, path), path, source.io)
        there = self._target_table(row.target)
        if there is not None:
            return _outcome_of_existing(_with_file(row, found), found, there)
        if self.target is not None and self.target.view_exists(row.target):
            raise ValidationError(f"{shown(row.target)} is a view: choose a namespace with --into")
        reason = "as its newest metadata file says: no other catalog that has it may write to it"
        return replace(_with_file(row, found), reason=reason)

    @cached_property
    def _places(self) -> dict[str, Identifier]:
        """The folders of the target's tables, looked up once."""
        names = [] if self.target is None else self.target.list_tables_below()
        found = {} if self.target is None else self.target.metadata_locations(names)
        # Metadata lies in a folder of the table's own, unless a property says otherwise.
        return {parent_of(parent_of(place)): name for name, place in found.items()}

    def _target_table(self, name: Identifier) -> LoadedTable | None:
        if self.target is None or not self.target.table_exists(name):
            return None
        return self.target.load_table(name)

    def _is_in_target_as(self, name: Identifier, found: LoadedTable) -> bool:
        there = self._target_table(name)
        return there is not None and _is_same_table(found, there)

    @staticmethod
    def _has_namespace(target: Catalog, namespace: Identifier) -> bool:
        with suppress(FrazilError):
            return target.namespace_exists(namespace)
        return False

    def _one_line(self, error: FrazilError) -> str:
        """An error in one line without secrets."""
        ours = {} if self.target is None else self.target.properties
        text = redact(str(error), self.source.catalog.properties)
        return " ".join(redact(text, ours).split())


def make_namespace(catalog: Catalog, namespace: Identifier) -> None:
    """Make a namespace where it is missing, and those above it."""
    for count in range(1, len(namespace) + 1):
        if not catalog.namespace_exists(namespace[:count]):
            with suppress(NamespaceAlreadyExistsError):
                catalog.create_namespace(namespace[:count])


def _with_file(row: Adopted, found: LoadedTable | LoadedView) -> Adopted:
    version = found.metadata.format_version
    return replace(row, metadata_file=found.metadata_location, format_version=version)


def _second_name(row: Adopted) -> ValidationError:
    return ValidationError(
        f"the catalog has this {row.kind} as {shown(row.source)}: of two names each would undo "
        f"what is committed by the other"
    )


def _looks_elsewhere(row: Adopted, found: LoadedView) -> str | None:
    """What to know of the tables that a view's query names; they do not move with its name."""
    version = found.metadata.current_version
    if version.default_catalog is not None:
        return f"its query looks for tables in the catalog {version.default_catalog}"
    if row.source[:-1] != row.target[:-1]:
        return f"its query looks for tables in {shown(version.default_namespace)}, as before"
    return None


def _outcome_of_existing(
    row: Adopted, found: LoadedTable | LoadedView, there: LoadedTable | LoadedView
) -> Adopted:
    """What becomes of a table or view whose new name exists."""
    if not _is_same_table(found, there):
        reason = f"{shown(row.target)} is another {row.kind}, at {there.metadata.location}"
        raise ValidationError(f"{reason}: choose a namespace with --into")
    if there.metadata_location == found.metadata_location:
        return replace(row, action="exists", reason=None)
    reason = (
        f"one of the catalogs was written to since: the {row.kind} is at "
        f"{there.metadata_location} here; only one of them may be written to"
    )
    return replace(row, action="exists", reason=reason)


def _is_same_table(left: LoadedTable | LoadedView, right: LoadedTable | LoadedView) -> bool:
    ids = [_uuid(left), _uuid(right)]
    if ids[0] is None:
        return left.metadata_location == right.metadata_location
    return ids[0] == ids[1]


def _uuid(loaded: LoadedTable | LoadedView) -> str | None:
    if isinstance(loaded, LoadedView):
        return loaded.metadata.view_uuid
    return loaded.metadata.table_uuid


def _metastore(text: str, stores: Mapping[str, str]) -> tuple[Catalog, Identifier]:
    parts = urlsplit(text)
    try:
        port = parts.port or _METASTORE_PORT
    except ValueError:
        port = 0
    if not parts.hostname or not port or "@" in parts.netloc or parts.query or parts.fragment:
        raise ConfigurationError(
            "the address of the metastore is malformed: write hive://host:port or "
            "hive://host:port/database, without a user"
        )
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    properties = {**stores, "type": _METASTORE, "uri": f"thrift://{host}:{port}"}
    namespace = parse_namespace(parts.path.strip("/"))
    return open_catalog(CatalogConfig(_METASTORE, properties)), namespace


def _folder(path: str, stores: Mapping[str, str]) -> tuple[Catalog, Identifier]:
    """The warehouse of a folder; one whose tables lie directly in it is a namespace of its own."""
    place = normalize_location(path)
    catalog = _warehouse(place, stores)
    if not catalog.io.is_folder(place):
        raise ConfigurationError(f"there is no folder {redact(place)}")
    above, name = parent_of(place), name_of(place)
    if not name or name_of(above).endswith(":"):
        return catalog, ()
    beside = _warehouse(above, stores)
    if not beside.namespace_exists((name,)):
        raise ConfigurationError(
            f"{redact(place)} is a table: name the folder that it lies in, {redact(above)}"
        )
    return (beside, (name,)) if beside.list_tables((name,)) else (catalog, ())


def _warehouse(place: str, stores: Mapping[str, str]) -> FilesystemCatalog:
    return FilesystemCatalog(_FOLDER, {**stores, "warehouse": place})


def _others_below(
    catalog: FilesystemCatalog, namespace: Identifier, tables: list[Identifier]
) -> Iterator[Identifier]:
    """The topmost folders that hold files and no table of Iceberg; a table has a namespace."""
    for child in catalog.list_namespaces(namespace):
        holds_tables = any(each[: len(child)] == child for each in tables)
        if len(child) < 2 or holds_tables:
            yield from _others_below(catalog, child, tables)
        elif next(catalog.io.list(join(catalog.warehouse, *child)), None) is not None:
            yield child
