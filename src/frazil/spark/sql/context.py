"""What a name in a statement means: a table of the lake, one of its versions or metadata tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from pyspark.sql import DataFrame, SparkSession

from frazil.catalog.identifiers import Identifier, shown
from frazil.catalog.protocol import Capability, Catalog, LoadedView
from frazil.errors import (
    NoSuchNamespaceError,
    NoSuchTableError,
    NoSuchViewError,
    UnsupportedError,
    ValidationError,
)
from frazil.format.snapshots import MAIN_BRANCH
from frazil.later import later
from frazil.spark.session.facts import is_temporary_view

if TYPE_CHECKING:
    from frazil.spark.changes.changes_table import changes_table
    from frazil.spark.creation import CreateTable
    from frazil.spark.table import Table
    from frazil.spark.transaction.table import TransactionTable
    from frazil.table.conflicts.validation import Isolation
else:
    changes_table = later("frazil.spark.changes.changes_table", "changes_table")
    Table = later("frazil.spark.table", "Table")


METADATA_TABLES: Final = frozenset(
    {
        "history",
        "metadata_log_entries",
        "snapshots",
        "refs",
        "manifests",
        "entries",
        "files",
        "data_files",
        "delete_files",
        "partitions",
        "position_deletes",
        "all_manifests",
        "all_entries",
        "all_files",
        "all_data_files",
        "all_delete_files",
        "changes",
    }
)
"""Names that can stand after a table's, as Java has them."""

CHANGES: Final = "changes"
"""The one whose rows are those of the table's data."""

_OF_A_VERSION: Final = frozenset(
    {
        "manifests",
        "entries",
        "files",
        "data_files",
        "delete_files",
        "partitions",
        "position_deletes",
    }
)
"""Those that show one snapshot."""

_OF_ALL: Final = frozenset(name for name in METADATA_TABLES if name.startswith("all_"))
"""Those that show every snapshot."""

SPARK_CATALOG: Final = "spark_catalog"
_GLOBAL_TEMP: Final = "global_temp"


LakeTable: TypeAlias = "Table | TransactionTable"
"""What a name means: a table, or a table in the transaction that statements run in."""


class OpenTransaction(Protocol):
    """The transaction that statements run in."""

    @property
    def catalog(self) -> Catalog:
        """The catalog with the changes so far."""
        ...

    def commit(self) -> None:
        """Commit everything."""
        ...

    def rollback(self) -> None:
        """Forget everything."""
        ...

    def table(self, identifier: str | Sequence[str]) -> TransactionTable:
        """Return a table with the changes so far."""
        ...

    def create(self, command: CreateTable) -> TransactionTable:
        """Make a table as a part of the transaction."""
        ...


class SparksNameError(Exception):
    """A statement is about a name of Spark's own catalog; Spark runs it."""


@dataclass(slots=True)
class CurrentNamespace:
    """What USE has set; names of one part are looked for here.

    Attributes:
        own: what it has set; nothing before.
        around: tells what the session's own USE has set, which counts before.
    """

    own: Identifier = ()
    around: Callable[[], Identifier] | None = None

    @property
    def levels(self) -> Identifier:
        """The namespace's levels; none where nothing is set."""
        return self.own or (() if self.around is None else self.around())

    @levels.setter
    def levels(self, levels: Identifier) -> None:
        self.own = levels


@dataclass(frozen=True, slots=True)
class TableVersion:
    """Which version of a table a name means; the current one where nothing is said."""

    ref: str | None = None
    snapshot_id: int | None = None
    as_of: Any = None

    @property
    def arguments(self) -> dict[str, Any]:
        """What is said, as arguments of a scan."""
        said = {"ref": self.ref, "snapshot_id": self.snapshot_id, "as_of": self.as_of}
        return {name: value for name, value in said.items() if value is not None}


@dataclass(frozen=True, slots=True)
class NamedTable:
    """A table that a name means.

    Attributes:
        table: as it is now.
        version: the one that the name says, as ``t.branch_x`` does.
        metadata_table: the one that the name says, as ``t.snapshots`` does.
        options: of a read of ``t.changes``, which say between which snapshots.
    """

    table: LakeTable
    version: TableVersion = field(default_factory=TableVersion)
    metadata_table: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    def metadata_rows(self, version: TableVersion) -> DataFrame:
        """Return the rows of the metadata table; one about the table as a whole is as of now.

        Raises:
            NoSuchSnapshotError, NoSuchRefError: there is no such version.
            UnsupportedError: it shows all snapshots, and a version is asked for.
            ValidationError: it is that of changes, and a version is asked for.
        """
        name, table = str(self.metadata_table), self.table
        if name == CHANGES:
            if version.arguments:
                raise ValidationError(
                    f"{table.name}.{name} has no versions: the options start-snapshot-id and "
                    "end-snapshot-id of a read say between which snapshots"
                )
            return changes_table(table.spark, table.metadata, table.io, self.options)
        if version not in (TableVersion(), TableVersion(ref=MAIN_BRANCH)) and name in _OF_ALL:
            raise UnsupportedError(
                f"{table.name}.{name} shows all snapshots: read it without a version"
            )
        read: Callable[..., DataFrame] = getattr(table.inspect.dataframes, name)
        if name in _OF_A_VERSION:
            return read(**version.arguments)
        if version.arguments:
            table.scan(**version.arguments)
        return read()


@dataclass(frozen=True, slots=True)
class NamedView:
    """A view that a name means, as it is now.

    Attributes:
        catalog: the one that has it.
        view: the view.
    """

    catalog: Catalog
    view: LoadedView


@dataclass(frozen=True, slots=True)
class ViewScope:
    """What names mean in a view's query: what they meant where the view was made.

    Attributes:
        catalog: the one of names without a catalog.
        namespace: the one of names of one part.
        reading: the views around, the view itself last.
        is_new: the view is being made, and may read nothing that ends with the session.
    """

    catalog: str
    namespace: Identifier
    reading: tuple[Identifier, ...]
    is_new: bool = False

    def whole_name(self, context: SqlContext, parts: Identifier) -> Identifier:
        """Return a name with the catalog and the namespace before it.

        Raises:
            ValidationError: it is that of a temporary view, and the view is new.
            NoSuchTableError: it has no namespace, and the view none for it.
        """
        if self.is_new and context.is_temporary_view(parts):
            raise ValidationError(
                f"{shown(parts)} is a temporary view, which a view of the lake cannot read: it "
                "ends with the session"
            )
        if len(parts) == 1:
            if not self.namespace:
                raise NoSuchTableError(f"the name {shown(parts)} has no namespace")
            return (self.catalog, *self.namespace, *parts)
        if context.is_catalog(parts[0]) or parts[0] == self.catalog:
            return parts
        return (self.catalog, *parts)


@dataclass(frozen=True, slots=True)
class SqlContext:
    """The lake as statements see it.

    Attributes:
        spark: the session.
        catalog: the lake's catalog; its name may stand before names.
        current: the namespace of names that have none.
        frames: rows and values that stand in the text as ``{name}``.
        scope: what names mean where the text is a view's; None where it is the user's.
        transaction: what the statements are part of; each is a commit where there is none.
        begin: begins a transaction of an isolation for one statement alone.
        loaded: the tables of a statement that reads each as it is first loaded; None where each
            place of a name loads it.
    """

    spark: SparkSession
    catalog: Catalog
    current: CurrentNamespace
    frames: Mapping[str, Any] = field(default_factory=dict)
    scope: ViewScope | None = None
    transaction: OpenTransaction | None = None
    begin: Callable[[Isolation], OpenTransaction] | None = None
    loaded: dict[tuple[int, Identifier], LakeTable] | None = None

    @property
    def name(self) -> str:
        """What stands before names of the lake's tables."""
        return self.catalog.name

    @property
    def current_place(self) -> Identifier | None:
        """The catalog and the namespace that are in use; None where they are Spark's."""
        return (self.name, *self.current.levels)

    def name_of(self, catalog: Catalog) -> str:
        """Return what stands before names of a catalog's tables."""
        return self.name if catalog is self.catalog else catalog.name

    def whole_name(self, parts: Identifier) -> Identifier:
        """Return a table's name in a query with all that can stand before it."""
        own = self.without_catalog(parts)
        levels = self.current.levels if len(own) == 1 else ()
        return (self.name, *levels, *own)

    def identifier(self, parts: Identifier) -> Identifier:
        """Return a table's identifier in the lake.

        Raises:
            SparksNameError: the name begins with Spark's own catalog.
            ValidationError: the name has no namespace, and none is set.
        """
        self._refuse_spark(parts)
        whole, parts = parts, self.without_catalog(parts)
        if len(parts) == 1:
            if whole is parts and self.current.levels and self.is_view(parts[0]):
                raise ValidationError(
                    f"{shown(parts)} is a temporary view, which goes before the table "
                    f"{shown((*self.current.levels, *parts))}: write the namespace too"
                )
            if not self.current.levels:
                raise ValidationError(
                    f"the table name {shown(parts)} has no namespace: write namespace.table, or "
                    "set one with USE namespace"
                )
            return (*self.current.levels, *parts)
        return parts

    def new_name(self, parts: Identifier, source: Identifier) -> Identifier:
        """Return the identifier that RENAME gives: a name in the lake, with or without its own.

        Args:
            source: the identifier before; a name of one part stays in its namespace.

        Raises:
            ValidationError: the name is one of Spark's own catalog.
        """
        if self.is_of_spark(parts):
            raise ValidationError(f"{shown(source)} cannot be renamed out of {self.name}")
        own = self.without_catalog(parts)
        return (*source[:-1], *own) if len(own) == 1 else own

    def namespace(self, parts: Identifier) -> Identifier:
        """Return the levels of a namespace of the lake; none for the catalog's own name."""
        self._refuse_spark(parts)
        return () if parts == (self.name,) else self.without_catalog(parts)

    def _refuse_spark(self, parts: Identifier) -> None:
        if self.is_of_spark(parts):
            raise SparksNameError(shown(parts))

    def without_catalog(self, parts: Identifier) -> Identifier:
        """Return a name less the name of the catalog before it."""
        if len(parts) > 1 and parts[0] == self.name:
            return parts[1:]
        return parts

    def is_of_spark(self, parts: Identifier) -> bool:
        """Whether a name says that it is Spark's."""
        return parts[0].lower() == SPARK_CATALOG and parts[0] != self.name

    def create(self, command: CreateTable) -> None:
        """Make a table."""
        if self.transaction is None:
            command.run(self.spark, self.catalog)
        else:
            self.transaction.create(command)

    def load(self, parts: Identifier) -> LakeTable:
        """Return a table of the lake.

        Raises:
            NoSuchTableError: there is none of that name.
        """
        return self.load_table(self.catalog, self.identifier(parts))

    def to_change(self, parts: Identifier) -> LakeTable:
        """Return a table that the statement changes.

        Raises:
            NoSuchTableError: there is none of that name.
            ValidationError: it is not of the lake that the transaction is one of.
        """
        table = self.load(parts)
        self.check_changes(table.catalog)
        return table

    def check_changes(self, catalog: Catalog) -> None:
        """Check that the statement may change tables of a catalog: of the lake's own it may.

        Raises:
            ValidationError: it is not that of the lake that the transaction is one of.
        """

    def find(self, parts: Identifier) -> NamedTable | NamedView | None:
        """Return what a name in a query means; None where it is nothing of the lake.

        Raises:
            NoSuchTableError: the name begins with the catalog's or with a table's, and there is
                nothing of that name.
        """
        if self.is_of_spark(parts):
            return None
        own = self.without_catalog(parts)
        if len(own) == 1 and own is parts and (not self.current.levels or self.is_view(own[0])):
            return None
        whole = (*self.current.levels, *own) if len(own) == 1 else own
        candidates = [whole]
        if own is parts and len(own) == 2 and self.current.levels:
            # A table of the current namespace, and what stands after its name.
            candidates.append((*self.current.levels, *own))
        for candidate in candidates:
            found = self.find_in(self.catalog, candidate)
            if found is not None:
                return found
        if own is not parts or self._follows_a_table(own):
            raise NoSuchTableError(f"there is no table {shown(whole)} in {self.name}")
        return None

    def _follows_a_table(self, parts: Identifier) -> bool:
        """Whether the last part of a name stands after that of a table of the lake."""
        if len(parts) < 3 or self.is_catalog(parts[0]):
            return False
        return self._table(self.catalog, parts[:-1]) is not None

    def with_options(
        self, named: NamedTable | NamedView, options: Mapping[str, str]
    ) -> NamedTable | NamedView:
        """Return what a name with the options of a read means.

        Raises:
            UnsupportedError: options are those of an attached session.
        """
        if isinstance(named, NamedTable) and named.metadata_table == CHANGES:
            return replace(named, options={key.lower(): value for key, value in options.items()})
        raise UnsupportedError(
            f"the options {', '.join(options)} of a read are of an attached session: say AS OF"
        )

    def is_catalog(self, name: str) -> bool:
        """Whether a name is that of a lake, or of one of Spark's catalogs."""
        is_known = self.is_lake(name) or name == SPARK_CATALOG
        return is_known or self.spark.conf.get(f"spark.sql.catalog.{name}", None) is not None

    def is_lake(self, name: str) -> bool:
        """Whether a name stands before names of a lake's tables."""
        return name == self.name

    def is_temporary_view(self, parts: Identifier) -> bool:
        """Whether a name is that of a temporary view."""
        if len(parts) == 2 and parts[0].lower() == _GLOBAL_TEMP:
            return not self.catalog.namespace_exists(parts[:1])
        return len(parts) == 1 and self.is_view(parts[0])

    def find_in(self, catalog: Catalog, whole: Identifier) -> NamedTable | NamedView | None:
        """Return what a whole name means in a catalog; None where that has nothing of the name."""
        table = self._table(catalog, whole)
        if table is not None:
            return NamedTable(table)
        view = self._view(catalog, whole)
        if view is not None:
            return NamedView(catalog, view)
        if len(whole) < 3:
            return None
        said = _said_after(whole[-1])
        table = None if said is None else self._table(catalog, whole[:-1])
        if table is None or said is None:
            return None
        return NamedTable(table, *said)

    def _table(self, catalog: Catalog, identifier: Identifier) -> LakeTable | None:
        try:
            return self.load_table(catalog, identifier)
        except (NoSuchTableError, NoSuchNamespaceError):
            return None

    def _view(self, catalog: Catalog, identifier: Identifier) -> LoadedView | None:
        if len(identifier) < 2 or not catalog.can(Capability.VIEWS):
            return None
        try:
            return catalog.load_view(identifier)
        except (NoSuchViewError, NoSuchNamespaceError):
            return None

    def load_table(self, catalog: Catalog, identifier: Identifier) -> LakeTable:
        """Return a table of a catalog, with what the transaction of the statement did to it.

        Raises:
            NoSuchTableError: there is none of that name.
        """
        key = (id(catalog), identifier)
        if self.loaded is not None and key in self.loaded:
            return self.loaded[key]
        found: LakeTable
        if self.transaction is not None and catalog is self.catalog:
            found = self.transaction.table(identifier)
        else:
            found = Table(self.spark, catalog, catalog.load_table(identifier))
        if self.loaded is not None:
            self.loaded[key] = found
        return found

    def in_new_transaction(self, catalog: Catalog) -> SqlContext | None:
        """Return the lake of a catalog as a statement sees it that is a transaction by itself.

        None where the statement is part of one, or the catalog commits each table alone.
        """
        begin = self._begin_of(catalog)
        if self.transaction is not None or not catalog.can(Capability.MULTI_TABLE_COMMITS):
            return None
        return None if begin is None else self._in_transaction(catalog, begin("snapshot"))

    def _begin_of(self, catalog: Catalog) -> Callable[[Isolation], OpenTransaction] | None:
        return self.begin if catalog is self.catalog else None

    def _in_transaction(self, catalog: Catalog, transaction: OpenTransaction) -> SqlContext:
        del catalog
        return replace(self, catalog=transaction.catalog, transaction=transaction)

    def is_view(self, name: str) -> bool:
        """Whether a name is that of a temporary view, which goes before tables."""
        return is_temporary_view(self.spark, name)


def _said_after(word: str) -> tuple[TableVersion, str | None] | None:
    """What the last part of a name says of a table."""
    if word.lower() in METADATA_TABLES:
        return TableVersion(), word.lower()
    kind, _, value = word.partition("_")
    if kind.lower() in ("branch", "tag") and value:
        return TableVersion(ref=value), None
    number = word.rpartition("_")[2]
    if number.isascii() and number.isdigit():
        if word.lower() == f"snapshot_id_{number}":
            return TableVersion(snapshot_id=int(number)), None
        if word.lower() == f"at_timestamp_{number}":
            return TableVersion(as_of=int(number)), None
    return None
