"""A lake among Spark's catalogs: its namespaces and tables, by Spark's own methods."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.sql import types as S

from frazil.catalog.identifiers import Identifier
from frazil.catalog.protocol import Catalog
from frazil.errors import (
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
    UnsupportedError,
)
from frazil.spark.attached.dataframes.java_options import OF_CHANGES, READS, Given
from frazil.spark.attached.dataframes.table_writes import TableWrite
from frazil.spark.attached.names import context_of
from frazil.spark.catalog.place import SessionPlace
from frazil.spark.catalog.queries import NamedRows
from frazil.spark.catalog.tables import (
    LakeTable,
    StagedDefinition,
    StagedLakeTable,
    java_type,
    python_type,
    view_table,
)
from frazil.spark.creation import CreateTable
from frazil.spark.plans.machine import JavaObject, answers
from frazil.spark.session.facts import type_support
from frazil.spark.sql.binding.bound_text import QueriedView
from frazil.spark.sql.binding.relations import QueriedTable
from frazil.spark.sql.context import TableVersion
from frazil.spark.sql.statements.show import partition_terms
from frazil.spark.sql.statements.tables import format_properties, without_told
from frazil.spark.table import Table
from frazil.spark.types import schema_to_spark

_CATALOG: Final = "org.apache.spark.sql.connector.catalog"
_OF_SPARK: Final = frozenset({"owner", "external", "is_managed_location"})
"""Properties that Spark adds to a new table."""


class LakeCatalog(JavaObject):
    """A lake among the catalogs of a session.

    Attributes:
        lake: its name.
    """

    def __init__(self, place: SessionPlace, lake: str) -> None:
        self.machine = place.machine
        self._place = place
        self.lake = lake

    def name(self) -> str:
        """Its name."""
        return self.lake

    def toString(self) -> str:
        """What plans show."""
        return self.lake

    def initialize(self, name: str, options: Any) -> None:
        """Nothing: it is ready."""

    def defaultNamespace(self) -> Any:
        """Return where names are looked for after USE of the lake alone: nowhere."""
        return self.machine.texts(())

    def capabilities(self) -> Any:
        """What definitions may say: nothing more than columns."""
        return self.machine.jvm.java.util.HashSet()

    def tableStateOptionKeys(self) -> Any:
        """Options of a read that say which rows: what Spark hands on with a name."""
        found = self.machine.jvm.java.util.HashSet()
        for name in {*READS, *OF_CHANGES}:
            found.add(name)
        return found

    def changelogStateOptionKeys(self) -> Any:
        """Options of a read of changes: none."""
        return self.machine.jvm.java.util.HashSet()

    def useNullableQuerySchema(self) -> bool:
        """Whether columns of a new table may be NULL whatever its rows are."""
        return True

    @property
    def _catalog(self) -> Catalog:
        return self._place.names_now().lakes[self.lake].catalog

    # -- namespaces ------------------------------------------------------------------------------

    @answers("NoSuchNamespaceException")
    def listNamespaces(self, parent: Any = None) -> Any:
        """Return the namespaces, or those directly in one."""
        levels = () if parent is None else tuple(parent)
        if levels and not self._catalog.namespace_exists(levels):
            raise self._missing_namespace(levels)
        found = self._catalog.list_namespaces(levels) if levels else self._catalog.list_namespaces()
        rows = self.machine.gateway.new_array(self.machine.jvm.java.lang.String, len(found), 0)
        for place, each in enumerate(found):
            rows[place] = self.machine.texts(each)
        return rows

    @answers()
    def namespaceExists(self, levels: Any) -> bool:
        """Whether there is a namespace."""
        return not len(levels) or self._catalog.namespace_exists(tuple(levels))

    @answers("NoSuchNamespaceException")
    def loadNamespaceMetadata(self, levels: Any) -> Any:
        """Return the properties of a namespace."""
        if not len(levels):
            return self.machine.map({})
        try:
            found = self._catalog.load_namespace_properties(tuple(levels))
        except NoSuchNamespaceError as error:
            raise self._missing_namespace(tuple(levels)) from error
        return self.machine.map(dict(found))

    @answers()
    def createNamespace(self, levels: Any, properties: Any) -> None:
        """Make a namespace."""
        given = {str(key): str(properties[key]) for key in properties}
        given.pop("owner", None)
        self._catalog.create_namespace(tuple(levels), given)

    @answers()
    def dropNamespace(self, levels: Any, cascade: bool) -> bool:
        """Remove a namespace, and what is in it where that is said."""
        name = tuple(levels)
        if cascade:
            for table in self._catalog.list_tables(name):
                self._catalog.drop_table(table)
        elif self._catalog.list_tables(name):
            raise NamespaceNotEmptyError(f"the namespace {'.'.join(name)} has tables")
        self._catalog.drop_namespace(name)
        return True

    @answers()
    def alterNamespace(self, levels: Any, changes: Any) -> None:
        """Refuse: ALTER NAMESPACE does it by its text."""
        raise UnsupportedError(f"{'.'.join(levels)} is altered by ALTER NAMESPACE alone")

    # -- tables ----------------------------------------------------------------------------------

    @answers("NoSuchNamespaceException")
    def listTables(self, levels: Any) -> Any:
        """Return the tables of a namespace."""
        name = tuple(levels)
        if not name:
            return self._identifiers(())
        if not self._catalog.namespace_exists(name):
            raise self._missing_namespace(name)
        return self._identifiers(self._catalog.list_tables(name))

    @answers("NoSuchNamespaceException")
    def listTableSummaries(self, levels: Any) -> Any:
        """Return the tables of a namespace with their kind."""
        kind = self.machine.connector.catalog.TableSummary
        return self.machine.array(
            kind, [kind.of(each, "MANAGED") for each in self.listTables(levels)]
        )

    @answers()
    def tableExists(self, identifier: Any) -> bool:
        """Whether there is a table, or a view."""
        try:
            self._rows_named(identifier).queried_relation(
                self._place.names_now(), self._place.spark
            )
        except (NoSuchTableError, NoSuchNamespaceError):
            return False
        return True

    def invalidateTable(self, identifier: Any) -> None:
        """Nothing: a table is looked up at each use."""

    @answers("NoSuchTableException")
    def loadTable(self, identifier: Any, *more: Any) -> Any:
        """Return a table: to a writer one that takes rows, to a reader one that has a query."""
        version, writes = _version_to_load(more)
        names = self._place.names_now()
        options = more[1] if len(more) == 2 and not writes else {}
        given = Given.of({str(key): options[key] for key in options})
        try:
            named = self._rows_named(identifier).at_version(
                names, self._place.spark, version, given
            )
            found = named.queried_relation(names, self._place.spark)
        except (NoSuchTableError, NoSuchNamespaceError) as error:
            raise self._missing_table(identifier) from error
        if writes and not isinstance(found, QueriedView):
            terms = partition_terms(found.named.table.metadata)
            return LakeTable(self._place, named.parts, found.schema, terms)
        return self._as_view(identifier, named, self._columns(found))

    @answers("TableAlreadyExistsException", "NoSuchNamespaceException")
    def createTable(self, identifier: Any, *more: Any) -> Any:
        """Make a table without rows."""
        columns, definition = self._definition_of(more)
        properties = dict(definition.properties)
        names, name = self._place.names_now(), _whole_name(identifier)
        command = CreateTable(
            identifier=name,
            schema=columns,
            partition_by=definition.partition_by,
            location=properties.pop("location", None),
            format_version=properties.pop("format-version", None),
            properties=properties,
        )
        try:
            with names.change():
                context_of(names, self._place.spark, self.lake).create(command)
        except NoSuchNamespaceError as error:
            raise self._missing_namespace(name[:-1]) from error
        except TableAlreadyExistsError as error:
            exists = self.machine.catalyst.analysis.TableAlreadyExistsException(identifier)
            raise self.machine.spark_error(exists) from error
        return LakeTable(self._place, self._parts(identifier), columns)

    @answers()
    def stageCreate(self, identifier: Any, *more: Any) -> Any:
        """Begin to make a table together with its rows."""
        return self._stage(identifier, more, TableWrite.create)

    @answers()
    def stageReplace(self, identifier: Any, *more: Any) -> Any:
        """Begin to replace a table together with its rows."""
        return self._stage(identifier, more, TableWrite.replace_table)

    @answers()
    def stageCreateOrReplace(self, identifier: Any, *more: Any) -> Any:
        """Begin to make a table, or to replace it, together with its rows."""
        return self._stage(identifier, more, TableWrite.create_or_replace)

    @answers("NoSuchTableException")
    def alterTable(self, identifier: Any, changes: Any) -> Any:
        """Change properties and columns, as Spark's declarative pipelines ask for it.

        ALTER TABLE comes by its text.
        """
        names = self._place.names_now()
        try:
            named = self._rows_named(identifier).at_version(
                names, self._place.spark, TableVersion(), Given()
            )
        except (NoSuchTableError, NoSuchNamespaceError) as error:
            raise self._missing_table(identifier) from error
        found = named.queried_relation(names, self._place.spark)
        if isinstance(found, QueriedView) or found.named.metadata_table is not None:
            raise UnsupportedError(f"{identifier.toString()} is no table that can be altered")
        alter(found.named.table, changes)
        return LakeTable(self._place, self._parts(identifier), found.schema)

    @answers()
    def dropTable(self, identifier: Any) -> bool:
        """Remove a table from the catalog; its files stay."""
        return self._was_removed(self._catalog.drop_table, identifier)

    @answers()
    def purgeTable(self, identifier: Any) -> bool:
        """Remove a table and its files."""
        return self._was_removed(self._catalog.purge_table, identifier)

    @answers("NoSuchTableException")
    def renameTable(self, old: Any, new: Any) -> None:
        """Give a table another name."""
        try:
            self._catalog.rename_table(_whole_name(old), _whole_name(new))
        except NoSuchTableError as error:
            raise self._missing_table(old) from error

    def supportedCustomMetrics(self) -> Any:
        """None."""
        return self.machine.array(self.machine.connector.metric.CustomMetric, ())

    # -- parts -----------------------------------------------------------------------------------

    def _was_removed(self, remove: Callable[[Identifier], object], identifier: Any) -> bool:
        try:
            remove(_whole_name(identifier))
        except (NoSuchTableError, NoSuchNamespaceError):
            return False
        return True

    def _parts(self, identifier: Any) -> Identifier:
        return (self.lake, *_whole_name(identifier))

    def _rows_named(self, identifier: Any) -> NamedRows:
        return NamedRows(self._parts(identifier))

    def _columns(self, found: QueriedTable | QueriedView) -> S.StructType:
        if isinstance(found, QueriedView):
            schema = found.named.view.metadata.schema
            return schema_to_spark(schema, support=type_support(self._place.spark))
        return found.schema if found.named.metadata_table is None else found.no_rows().schema

    def _stage(self, identifier: Any, more: tuple[Any, ...], make: Any) -> Any:
        columns, definition = self._definition_of(more)
        return StagedLakeTable(self._place, self._parts(identifier), columns, definition, make)

    def _definition_of(self, more: tuple[Any, ...]) -> tuple[S.StructType, StagedDefinition]:
        """The columns of a new table, and what else is said of it."""
        if len(more) == 1:
            columns, terms, properties = (
                more[0].columns(),
                more[0].partitions(),
                more[0].properties(),
            )
        else:
            columns, terms, properties = more
        given = {str(key): str(properties[key]) for key in properties}
        # A writer that names no format says Spark's default, which is parquet.
        of_format = format_properties(given.pop("provider", None))
        given = {
            key.removeprefix("option."): value
            for key, value in without_told(given).items()
            if key not in _OF_SPARK
        }
        return python_type(self.machine, columns), StagedDefinition(
            tuple(str(term.describe()) for term in terms), {**given, **of_format}
        )

    def _as_view(self, identifier: Any, named: NamedRows, columns: S.StructType) -> Any:
        """A table of Spark's first kind whose rows are a query that our parser reads."""
        catalyst = self.machine.catalyst
        levels = ".".join(identifier.namespace())
        some, none = self.machine.jvm.scala.Some, self.machine.jvm.scala.Option.empty()
        name = catalyst.TableIdentifier(identifier.name(), some(levels) if levels else none)
        table = view_table(self.machine, name, java_type(self.machine, columns), named.text)
        return self.machine.connector.catalog.V1Table(table)

    def _identifiers(self, names: Any) -> Any:
        kind = self.machine.connector.catalog.Identifier
        return self.machine.array(
            kind, [kind.of(self.machine.texts(each[:-1]), each[-1]) for each in names]
        )

    def _missing_table(self, identifier: Any) -> Py4JJavaError:
        return self.machine.spark_error(
            self.machine.catalyst.analysis.NoSuchTableException(identifier)
        )

    def _missing_namespace(self, levels: Identifier) -> Py4JJavaError:
        return self.machine.spark_error(
            self.machine.catalyst.analysis.NoSuchNamespaceException(
                self.machine.sequence((self.lake, *levels))
            )
        )

    class Java:
        """What the virtual machine takes it for."""

        implements: Final = [
            f"{_CATALOG}.StagingTableCatalog",
            f"{_CATALOG}.SupportsNamespaces",
        ]


def _whole_name(identifier: Any) -> Identifier:
    return (*identifier.namespace(), identifier.name())


def _version_to_load(more: tuple[Any, ...]) -> tuple[TableVersion | str, bool]:
    """Which version is asked for, and whether it is asked to write, by the arguments of a load."""
    if not more:
        return TableVersion(), False
    first = more[0]
    if isinstance(first, str):
        return first, False
    if isinstance(first, int):
        return TableVersion(as_of=first // 1000), False
    if not str(first.getClass().getName()).endswith("TableContext"):
        return TableVersion(), not first.isEmpty()
    travel = first.timeTravel()
    if not travel.isPresent():
        return TableVersion(), not first.writePrivileges().isEmpty()
    said = travel.get()
    if said.getClass().getSimpleName().endswith("Version"):
        return str(said.version()), False
    return TableVersion(as_of=said.timestampMicros() // 1000), False


_OF_PROPERTIES: Final = frozenset({"SetProperty", "RemoveProperty"})
_OF_COLUMNS: Final = frozenset(
    {"AddColumn", "DeleteColumn", "UpdateColumnType", "UpdateColumnComment"}
)


def alter(table: Any, changes: Any) -> None:
    """Change a table in one commit, or as a part of the transaction that it is in.

    Args:
        changes: Spark's `TableChange` objects.

    Raises:
        UnsupportedError: a change is of another kind; then nothing is done.
        ValidationError: there is no such column, or a property is reserved.
    """
    told = [(str(each.getClass().getSimpleName()), each) for each in changes]
    lacking = sorted({kind for kind, _ in told} - _OF_PROPERTIES - _OF_COLUMNS)
    if lacking:
        raise UnsupportedError(f"Spark asks for {', '.join(lacking)}: use ALTER TABLE")
    if isinstance(table, Table):
        with table.transaction() as transaction:
            _apply(transaction, told)
    else:
        _apply(table, told)


def _apply(table: Any, told: Sequence[tuple[str, Any]]) -> None:
    """Change a table in a transaction."""
    columns = [(kind, each) for kind, each in told if kind in _OF_COLUMNS]
    if columns:
        with table.update_schema() as update:
            for kind, each in columns:
                _change_column(update, kind, each)
    new = {str(each.property()): str(each.value()) for kind, each in told if kind == "SetProperty"}
    gone = [str(each.property()) for kind, each in told if kind == "RemoveProperty"]
    if new:
        table.set_properties(new)
    if gone:
        table.remove_properties(*gone)


def _change_column(update: Any, kind: str, change: Any) -> None:
    """Note one change in a builder."""
    name = tuple(str(part) for part in change.fieldNames())
    if kind == "AddColumn":
        update.add_column(name, str(change.dataType().sql()), doc=change.comment())
    elif kind == "DeleteColumn":
        update.delete_column(name)
    elif kind == "UpdateColumnType":
        update.update_column(name, str(change.newDataType().sql()))
    else:
        comment = change.newComment()
        update.update_column(name, doc=str(comment) if comment else None)
