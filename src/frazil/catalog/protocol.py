"""What every catalog does: names of namespaces, tables and views, and one atomic step, the commit.

A caller asks what a catalog can do (`Catalog.can`) rather than trying it.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

from frazil.catalog.identifiers import Identifier, parse_namespace
from frazil.catalog.request_log import RequestLog
from frazil.catalog.views import LoadedView as LoadedView
from frazil.catalog.views import ViewMethods
from frazil.errors import (
    InvalidFormatError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NoSuchViewError,
    UnsupportedError,
    ValidationError,
)
from frazil.format.changes import Requirement, Update, apply_updates
from frazil.format.metadata import TableMetadata
from frazil.storage.caches import Caches
from frazil.storage.files import FileIO
from frazil.storage.paths import redact_properties

if TYPE_CHECKING:
    from frazil.planning.scan_report import PlannedScan


class Capability(StrEnum):
    """What some catalogs can do and others cannot."""

    CHANGES = "changes of namespaces and tables"
    NAMESPACE_PROPERTIES = "properties of namespaces"
    RENAMES = "renames of tables"
    TABLE_LOCATIONS = "tables at any location"
    MULTI_TABLE_COMMITS = "commits of several tables"
    VIEWS = "views"


@dataclass(frozen=True, slots=True)
class LoadedTable:
    """A table as it was when the catalog was asked.

    Attributes:
        identifier: namespace levels and the table's name.
        metadata: the content of the metadata file.
        metadata_location: that file's path.
        io: reads and writes the table's files, with the credentials that came with the table.
        config: what the catalog says of this table alone; secrets stay in it, so never print it
            (repr does not).
    """

    identifier: Identifier
    metadata: TableMetadata
    metadata_location: str
    io: FileIO = field(repr=False, compare=False)
    config: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class StagedTable:
    """A table that nobody else sees yet: its files may be written, and a commit makes it.

    Attributes:
        identifier: namespace levels and the name that it is to have.
        metadata: the table as it will be, with all updates so far.
        io: reads and writes its files, with the credentials that came with it.
        config: as of a `LoadedTable`.
        updates: what was done since it was staged.
    """

    identifier: Identifier
    metadata: TableMetadata
    io: FileIO = field(repr=False, compare=False)
    config: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    updates: tuple[Update, ...] = ()

    def with_updates(self, updates: Sequence[Update]) -> StagedTable:
        """Return the table with more updates."""
        return replace(
            self,
            metadata=apply_updates(self.metadata, updates),
            updates=(*self.updates, *updates),
        )


@dataclass(frozen=True, slots=True)
class TableCommit:
    """What changes in one of several tables that are committed together.

    Attributes:
        identifier: the table.
        requirements: what must hold of it.
        updates: what changes, in order; none where the requirements are all.
        base: as of `Catalog.commit_table`.
    """

    identifier: Identifier
    requirements: tuple[Requirement, ...]
    updates: tuple[Update, ...]
    base: LoadedTable | None = field(default=None, repr=False, compare=False)


DeletePolicy = Callable[[TableMetadata], Callable[[str], bool]]
"""Tells of a table which of the files that it names may be deleted with it."""


def any_file(_metadata: TableMetadata) -> Callable[[str], bool]:
    """Tell that all files of a table may be deleted, wherever they lie."""
    return lambda _path: True


class Catalog(ViewMethods, ABC):
    """Namespaces, tables, and one atomic step: a table gets new metadata (rule 214).

    Identifiers and namespaces are given as ``"db.t"`` or ``("db", "t")``.

    Attributes:
        kind: the name of this kind of catalog in the configuration.
        capabilities: what it can do beside loading tables.
        property_names: properties of its own, beside those that every catalog has and those of
            stores; others that a caller gives are refused as misspelt. None lets any pass.
        property_prefixes: beginnings of further names.
        looks_up_together: whether it finds many tables as quickly as one.
        loads_by_request: whether to load a table asks a server of the catalog.
        name: the catalog's, as in its rows and in the configuration.
        properties: as configured; secrets stay in them, so never print them (repr does not).
        delete_policy: which files a purge deletes, and a commit that trims the metadata log.
        io: reaches files as the configuration says; a table's files are reached by its own `io`.
    """

    kind: ClassVar[str] = "catalog"
    capabilities: ClassVar[frozenset[Capability]] = frozenset()
    property_names: ClassVar[frozenset[str] | None] = frozenset()
    property_prefixes: ClassVar[tuple[str, ...]] = ()
    looks_up_together: ClassVar[bool] = False
    loads_by_request: ClassVar[bool] = False

    def __init__(
        self, name: str, properties: Mapping[str, str], *, io: FileIO | None = None
    ) -> None:
        self.name = name
        self.properties = dict(properties)
        self.delete_policy: DeletePolicy = any_file
        self.io = io if io is not None else FileIO(properties)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {redact_properties(self.properties)})"

    @property
    def caches(self) -> Caches:
        """What is kept of files that never change; the tables' `io` have the same caches."""
        return self.io.caches

    def can(self, capability: Capability) -> bool:
        """Return whether the catalog can do it; where it cannot, a try is an UnsupportedError."""
        return capability in self.capabilities

    # -- namespaces ------------------------------------------------------------------------------

    @abstractmethod
    def create_namespace(
        self, namespace: str | Sequence[str], properties: Mapping[str, str] | None = None
    ) -> None:
        """Make a namespace.

        Raises:
            NamespaceAlreadyExistsError: it exists.
            UnsupportedError: properties were given and the catalog keeps none.
        """

    @abstractmethod
    def drop_namespace(self, namespace: str | Sequence[str]) -> None:
        """Remove an empty namespace.

        Raises:
            NoSuchNamespaceError: it does not exist.
            NamespaceNotEmptyError: it holds tables, views or namespaces.
        """

    @abstractmethod
    def list_namespaces(self, parent: str | Sequence[str] = ()) -> list[Identifier]:
        """The namespaces directly below a namespace, or the top ones, sorted.

        Raises:
            NoSuchNamespaceError: the parent does not exist.
        """

    @abstractmethod
    def namespace_exists(self, namespace: str | Sequence[str]) -> bool:
        """Whether the namespace was made or holds something."""

    @abstractmethod
    def load_namespace_properties(self, namespace: str | Sequence[str]) -> dict[str, str]:
        """The namespace's properties; NoSuchNamespaceError if it does not exist."""

    @abstractmethod
    def update_namespace_properties(
        self,
        namespace: str | Sequence[str],
        *,
        updates: Mapping[str, str] | None = None,
        removals: Sequence[str] = (),
    ) -> None:
        """Set and remove properties in one step.

        Raises:
            NoSuchNamespaceError: it does not exist.
            ValidationError: a key is both set and removed.
            UnsupportedError: the catalog keeps no properties of namespaces.
        """

    # -- tables ----------------------------------------------------------------------------------

    @abstractmethod
    def list_tables(self, namespace: str | Sequence[str]) -> list[Identifier]:
        """The tables directly in a namespace, sorted; NoSuchNamespaceError if it does not exist."""

    def list_tables_below(self, namespace: str | Sequence[str] = ()) -> list[Identifier]:
        """The tables in a namespace and in all namespaces below it, or of the catalog, sorted.

        NoSuchNamespaceError if it does not exist; one that is dropped meanwhile holds none.
        """
        top = parse_namespace(namespace)
        found = self.list_tables(top) if top else []
        waiting = self.list_namespaces(top)
        while waiting:
            current = waiting.pop()
            with contextlib.suppress(NoSuchNamespaceError):
                found.extend(self.list_tables(current))
                waiting.extend(self.list_namespaces(current))
        return sorted(found)

    @abstractmethod
    def load_table(self, identifier: str | Sequence[str]) -> LoadedTable:
        """The table as it is now.

        Raises:
            NoSuchTableError: there is no such table; the message says where it is a view.
            InvalidMetadataError: its metadata file, or the catalog's own record, is broken.
            MissingFileError: its metadata file is gone.
        """

    def metadata_location(self, identifier: str | Sequence[str]) -> str:
        """The path of the table's current metadata file, which need not be read for it.

        Raises:
            NoSuchTableError: there is no such table.
            InvalidMetadataError: the catalog's own record is broken.
        """
        return self.load_table(identifier).metadata_location

    def metadata_locations(self, names: Sequence[Identifier]) -> dict[Identifier, str]:
        """Return where the current metadata of tables lies; those that are not there are left out.

        One look-up for all of them, where the catalog `looks_up_together`.
        """
        found = {}
        for name in names:
            with contextlib.suppress(NoSuchTableError):
                found[name] = self.metadata_location(name)
        return found

    @abstractmethod
    def table_exists(self, identifier: str | Sequence[str]) -> bool:
        """Whether there is a table of that name; its metadata is not read."""

    @abstractmethod
    def default_table_location(self, identifier: str | Sequence[str]) -> str:
        """Where a new table lies unless its creator says otherwise.

        Raises:
            ConfigurationError: neither the namespace nor the catalog has a location.
        """

    def create_table(self, identifier: str | Sequence[str], metadata: TableMetadata) -> LoadedTable:
        """Make a table of new metadata; of concurrent creators exactly one succeeds.

        How it ends is as in commit_table.

        Raises:
            TableAlreadyExistsError: the name is taken.
            NoSuchNamespaceError: the namespace does not exist.
            ValidationError: the metadata does not fit the catalog.
            CommitFailedError: no answer came, and the table was not made.
            CommitStateUnknownError: no answer came and none could be had; nothing was deleted.
        """
        return self.create_staged_table(self.stage_table(identifier, metadata))

    @abstractmethod
    def stage_table(self, identifier: str | Sequence[str], metadata: TableMetadata) -> StagedTable:
        """Begin a table that nobody sees before `create_staged_table`.

        Raises:
            TableAlreadyExistsError: the name is taken.
            NoSuchNamespaceError: the namespace does not exist.
            ValidationError: the metadata does not fit the catalog.
        """

    @abstractmethod
    def create_staged_table(self, staged: StagedTable) -> LoadedTable:
        """Make the table with all that was done to it; what it raises is as of `create_table`."""

    @abstractmethod
    def commit_table(
        self,
        identifier: str | Sequence[str],
        requirements: Sequence[Requirement],
        updates: Sequence[Update],
        *,
        base: LoadedTable | None = None,
    ) -> LoadedTable:
        """Check the requirements against the table as it is, and apply the updates, in one step.

        With AssertCreate the updates make a new table. Updates that change nothing swap nothing.

        A commit ends in one of three ways:

        - It is refused: a ValidationError, ConfigurationError, UnsupportedError,
          AccessDeniedError, NotFoundError (but MissingFileError), AlreadyExistsError or
          CommitFailedError says that the swap was not sent, or that the catalog has refused it.
          The metadata file of this try is deleted, and what the caller wrote for the commit is
          part of nothing.
        - It takes place and returns. What follows the swap, such as the deletion of old metadata
          files, makes no failure of it; an error there is logged.
        - Everything else says nothing of the outcome: CommitStateUnknownError, StorageError,
          an error of another kind, an interruption. The swap may have been sent and may still be
          under way. If it was sent nothing is deleted, and the caller may not delete either.

        Args:
            identifier: the table.
            requirements: what must hold of it; they are enough by themselves.
            updates: what changes, in order.
            base: the table that the updates were made from. A catalog that swaps a pointer refuses
                where the table is not the same any more; others look at the requirements alone.

        Returns:
            The table after the commit.

        Raises:
            CommitFailedError: a requirement does not hold, another writer was first, or no
                answer came and the catalog shows that the swap did not take place.
            CommitStateUnknownError: no answer came and none could be had.
            NoSuchTableError: there is no such table, and no AssertCreate.
            ValidationError: the updates contradict the table or the specification.
            StorageError: the store or the database failed.
        """

    def commit_tables(self, commits: Sequence[TableCommit]) -> None:
        """Commit changes of several tables, all or none; how it ends is as in `commit_table`.

        With AssertCreate the updates of a commit make a new table. What was written for any of the
        tables is deleted only where the swap of all is known not to have taken place.

        Args:
            commits: one for each table.

        Raises:
            UnsupportedError: the catalog commits each table alone.
            ValidationError: a table is there twice; and as of `commit_table`.
            TableAlreadyExistsError: a table that is to be made is there.
        """
        raise self.unsupported(Capability.MULTI_TABLE_COMMITS)

    def loading_as_of_now(self) -> Callable[[Identifier], LoadedTable]:
        """Return what loads tables as all of them are at this moment, where the catalog can.

        Elsewhere, as here, a table is as it is when it is loaded. What it raises is as of
        `load_table`, and ConflictError where what was there at this moment is gone.
        """
        return self.load_table

    @abstractmethod
    def register_table(
        self, identifier: str | Sequence[str], metadata_location: str
    ) -> LoadedTable:
        """Make a table of an existing metadata file.

        Raises:
            TableAlreadyExistsError: the name is taken.
            NoSuchNamespaceError: the namespace does not exist.
            MissingFileError, InvalidMetadataError: the file is not a table's metadata.
        """

    @abstractmethod
    def rename_table(self, source: str | Sequence[str], target: str | Sequence[str]) -> None:
        """Give a table another name.

        Raises:
            NoSuchTableError: there is no such table.
            TableAlreadyExistsError: the target's name is taken.
            NoSuchNamespaceError: the target's namespace does not exist.
            UnsupportedError: the catalog cannot rename.
        """

    @abstractmethod
    def drop_table(self, identifier: str | Sequence[str]) -> None:
        """Remove a table from the catalog; beside writers it is afterwards whole or gone.

        Raises:
            NoSuchTableError: there is no such table.
            CommitFailedError: no answer came, and the table is as it was.
            CommitStateUnknownError: no answer came and none could be had.
        """

    @abstractmethod
    def purge_table(self, identifier: str | Sequence[str]) -> tuple[str, ...]:
        """Remove a table from the catalog, and every file that its snapshots reach.

        What the table names is looked at first, so a purge that is refused changes nothing.

        Returns:
            the files that were kept, since the `delete_policy` refuses them; what a manifest names
            that was kept is not among them.

        Raises:
            NoSuchTableError: there is no such table.
            ValidationError: the table's gc.enabled is false; nothing was changed.
            StorageError: files could not be deleted; the table is gone from the catalog.
        """

    # -- the rest --------------------------------------------------------------------------------

    def all_locations(self) -> Mapping[Identifier, str]:
        """Return where the metadata files of all tables and views lie; broken ones are left out."""
        found = dict(self.metadata_locations(self.list_tables_below()))
        waiting = self.list_namespaces() if self.can(Capability.VIEWS) else []
        while waiting:
            namespace = waiting.pop()
            with contextlib.suppress(NoSuchNamespaceError):
                waiting.extend(self.list_namespaces(namespace))
                for name in self.list_views(namespace):
                    with contextlib.suppress(NoSuchViewError, InvalidFormatError):
                        found[name] = self.load_view(name).metadata_location
        return found

    def request_log(self) -> RequestLog | None:
        """Return where requests are noted together with their changes; None if nowhere."""
        return None

    def report_scan(self, identifier: str | Sequence[str], scan: PlannedScan) -> None:
        """Tell of a scan those who watch the table, later; where nobody does nothing happens."""

    def close(self) -> None:
        """Give back connections; the catalog is not used afterwards."""

    def _no_views(self) -> UnsupportedError:
        return self.unsupported(Capability.VIEWS)

    def unsupported(self, capability: Capability) -> UnsupportedError:
        """Return the error of a catalog that cannot do something."""
        return UnsupportedError(f"the {self.kind} catalog {self.name} has no {capability}")


def property_changes(updates: Mapping[str, str] | None, removals: Sequence[str]) -> dict[str, str]:
    """Return the properties to set."""
    changes = dict(updates or {})
    if both := sorted(set(changes) & set(removals)):
        raise ValidationError(f"the properties {both} are both set and removed")
    return changes
