"""A lake: a catalog of Iceberg tables beside a Spark session."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, Unpack

from pyspark.sql import DataFrame, SparkSession

from frazil.catalog.config import open_catalog, refuse_unknown, resolve
from frazil.catalog.identifiers import Identifier, parse_table_identifier, shown
from frazil.catalog.protocol import Catalog
from frazil.errors import (
    ConfigurationError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
    ValidationError,
)
from frazil.later import later
from frazil.spark.lake.migration import MigrationCommands
from frazil.spark.lake.namespaces import NamespaceCommands
from frazil.spark.lake.sessions import SessionCommands
from frazil.spark.lake.transactions import LakeTransactions
from frazil.spark.lake.views import ViewCommands
from frazil.storage.files import FileIO
from frazil.storage.moved import MovedFileIO
from frazil.storage.on_driver import OnDriver

if TYPE_CHECKING:
    from frazil.catalog.registration import register_table
    from frazil.catalog.static import StaticCatalog
    from frazil.spark.creation import CreateKwargs, CreateTable
    from frazil.spark.hadoop.stores import stores_of
    from frazil.spark.procedures.call import call
    from frazil.spark.row_level.options import CommitOptions
    from frazil.spark.row_level.writes import Rows
    from frazil.spark.schemas.schema_like import SchemaLike
    from frazil.spark.session.facts import prepare_session, take_cache_sizes
    from frazil.spark.sql.context import CurrentNamespace, SqlContext
    from frazil.spark.sql.execute_immediate import immediate_statement, is_immediate
    from frazil.spark.sql.run import run_sql
    from frazil.spark.stream.source.options import StreamSettings
    from frazil.spark.table import Table
    from frazil.storage.caches import CacheStatistics
    from frazil.table.updates.replacement import DefinitionKwargs
else:
    register_table = later("frazil.catalog.registration", "register_table")
    StaticCatalog = later("frazil.catalog.static", "StaticCatalog")
    CreateTable = later("frazil.spark.creation", "CreateTable")
    stores_of = later("frazil.spark.hadoop.stores", "stores_of")
    call = later("frazil.spark.procedures.call", "call")
    CommitOptions = later("frazil.spark.row_level.options", "CommitOptions")
    prepare_session, take_cache_sizes = later(
        "frazil.spark.session.facts", "prepare_session", "take_cache_sizes"
    )
    CurrentNamespace, SqlContext = later(
        "frazil.spark.sql.context", "CurrentNamespace", "SqlContext"
    )
    immediate_statement, is_immediate = later(
        "frazil.spark.sql.execute_immediate", "immediate_statement", "is_immediate"
    )
    run_sql = later("frazil.spark.sql.run", "run_sql")
    Table = later("frazil.spark.table", "Table")


DEFAULT_CATALOG_NAME = "default"


def connect(
    spark: SparkSession | None = None,
    *,
    warehouse: str | None = None,
    name: str = DEFAULT_CATALOG_NAME,
    **properties: str,
) -> Lake:
    """Return a lake on a catalog; by default an embedded SQLite catalog in the warehouse.

    Settings are taken from the keywords, else from the environment
    (``FRAZIL_CATALOG__<NAME>__URI``), else from ``~/.frazil.yaml``; their names are PyIceberg's.

    Args:
        spark: the session that moves the data, classic or Spark Connect; it has to be given.
        warehouse: where new tables lie: a folder or a URI such as ``s3://bucket/warehouse``.
        name: the catalog's name, in its rows and in the configuration.
        **properties: ``type`` (``sql`` or ``hadoop``), ``uri``, ``s3.endpoint`` (as
            ``**{"s3.endpoint": …}``) and the others.

    Raises:
        ConfigurationError: no session is given, or a setting is missing, unknown or malformed.

    Examples:
        >>> lake = frazil.connect(spark, warehouse="/data/lake")
    """
    # A Spark Connect session is another class of the same face.
    if spark is None or not (hasattr(spark, "createDataFrame") and hasattr(spark, "conf")):
        given_instead = "" if spark is None else f", not {type(spark).__name__}"
        raise ConfigurationError(
            f"connect() takes a Spark session{given_instead}: frazil.connect(spark, warehouse=…); "
            "spark = frazil.local_session() starts one on this machine"
        )
    given = dict(properties)
    if warehouse is not None:
        given["warehouse"] = warehouse
    prepare_session(spark)
    config = resolve(name, given)
    catalog = open_catalog(config, stores=stores_of(config.properties, spark))
    take_cache_sizes(spark, catalog.caches)
    return Lake(spark, catalog)


def open_table(
    location: str | PathLike[str],
    *,
    spark: SparkSession | None = None,
    moved: Mapping[str, str] | None = None,
    **properties: str,
) -> Table:
    """Return a table without a catalog, read only: of a metadata file, or the newest of a folder.

    Args:
        location: the path of a ``*.metadata.json`` file or of the folder that holds ``metadata/``.
        spark: the session that reads it; the active one unless given.
        moved: old path prefix → new path prefix, for a table whose absolute paths no longer hold.
        **properties: storage settings, as for `connect`.

    Raises:
        MissingFileError: there is nothing at that place.
        InvalidMetadataError: the metadata breaks the specification.
        ConfigurationError: a setting is unknown or malformed.

    Examples:
        >>> trips = frazil.open_table("/data/lake/db/trips")
    """
    refuse_unknown(properties)
    session = spark or SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
    prepare_session(session)
    stores = stores_of(properties, session)
    io = (
        MovedFileIO(moved, properties, stores=stores)
        if moved
        else FileIO(properties, stores=stores)
    )
    take_cache_sizes(session, io.caches)
    catalog = StaticCatalog(os.fspath(location), properties, io=io)
    return Table(session, catalog, catalog.load_table(catalog.identifier))


class Lake(
    OnDriver,
    LakeTransactions,
    MigrationCommands,
    NamespaceCommands,
    SessionCommands,
    ViewCommands,
):
    """Namespaces and tables of one catalog, with a Spark session to fill and read them.

    Identifiers are ``"namespace.table"`` or tuples of names.

    Attributes:
        spark: the session.
        catalog: the catalog below.
    """

    def __init__(self, spark: SparkSession, catalog: Catalog) -> None:
        self.spark = spark
        self.catalog = catalog
        self._current = CurrentNamespace()
        self._transactions = self._statement_transactions()

    def __repr__(self) -> str:
        return f"Lake({self.catalog!r})"

    def __enter__(self) -> Lake:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Detach, roll back transactions of statements, and give back the catalog's connections."""
        self.detach()
        self._transactions.close()
        self.catalog.close()

    # -- tables ----------------------------------------------------------------------------------

    def create_table(
        self,
        identifier: str | Sequence[str],
        schema: SchemaLike,
        **definition: Unpack[CreateKwargs],
    ) -> Table:
        """Make an empty table.

        Args:
            identifier: its name.
            schema: a `Schema`, a Spark ``StructType``, DDL text, or a DataFrame, of which only the
                schema is taken (`create_table_as_select` takes its rows too).
            definition: see `CreateKwargs`.

        Raises:
            TableAlreadyExistsError: the name is taken.
            NoSuchNamespaceError: the namespace is not there.
            ValidationError: the schema, a partition or a sort expression breaks a rule.

        Examples:
            >>> lake.create_table("db.visits", "id bigint, ts timestamp", partition_by=["day(ts)"])
        """
        # What is named twice is refused: an empty table takes neither rows nor options.
        command = CreateTable(
            identifier=identifier, schema=schema, rows=None, options=CommitOptions(), **definition
        )
        return self._create(command)

    def create_table_if_not_exists(
        self,
        identifier: str | Sequence[str],
        schema: SchemaLike,
        **definition: Unpack[CreateKwargs],
    ) -> Table:
        """Return the table of that name, made as `create_table` makes it unless it is there."""
        try:
            return self.load_table(identifier)
        except NoSuchTableError:
            try:
                return self.create_table(identifier, schema, **definition)
            except TableAlreadyExistsError:
                return self.load_table(identifier)

    def create_table_as_select(
        self,
        identifier: str | Sequence[str],
        df: Rows,
        *,
        snapshot_properties: Mapping[str, str] | None = None,
        **definition: Unpack[CreateKwargs],
    ) -> Table:
        """Make a table of a DataFrame's schema and rows in one commit.

        Args:
            identifier: its name.
            df: the rows, as of `Table.append`.
            snapshot_properties: entries for the snapshot's summary.
            definition: see `CreateKwargs`.

        Raises:
            TableAlreadyExistsError: the name is taken; nothing was written.

        Examples:
            >>> lake.create_table_as_select("db.copy", df, partition_by=["month(ts)"])
        """
        options = CommitOptions(snapshot_properties=snapshot_properties)
        command = CreateTable(identifier=identifier, rows=df, options=options, **definition)
        return self._create(command)

    def replace_table_as_select(
        self,
        identifier: str | Sequence[str],
        df: Rows,
        *,
        snapshot_properties: Mapping[str, str] | None = None,
        **definition: Unpack[DefinitionKwargs],
    ) -> Table:
        """Give a table a DataFrame's schema and rows in one commit; its history stays.

        Raises:
            NoSuchTableError: there is no such table.
        """
        table = self.load_table(identifier)
        return table.replace_as_select(df, snapshot_properties=snapshot_properties, **definition)

    def create_or_replace_table_as_select(
        self, identifier: str | Sequence[str], df: Rows, **options: Any
    ) -> Table:
        """Call `replace_table_as_select` if the table is there, else `create_table_as_select`."""
        if self.catalog.table_exists(identifier):
            fixed = sorted({"location", "format_version"} & set(options))
            if fixed:
                raise ValidationError(
                    f"{shown(parse_table_identifier(identifier))} exists: replacing keeps its "
                    f"{' and '.join(fixed)}"
                )
            return self.replace_table_as_select(identifier, df, **options)
        return self.create_table_as_select(identifier, df, **options)

    def load_table(self, identifier: str | Sequence[str]) -> Table:
        """Return the table as it is now; NoSuchTableError if there is none.

        Examples:
            >>> trips = lake.load_table("db.trips")
        """
        return Table(self.spark, self.catalog, self.catalog.load_table(identifier))

    def table(self, identifier: str | Sequence[str]) -> DataFrame:
        """Return the table's rows as a DataFrame, as `SparkSession.table` does.

        Every file is read, since ``DataFrame.where`` comes after the files were chosen: for a part
        of the rows use ``load_table(…).scan(where=…)`` or `sql`, which open what they need.

        Raises:
            NoSuchTableError: there is no such table.

        Examples:
            >>> lake.table("db.trips").groupBy("city").count().show()
        """
        return self.load_table(identifier).to_df()

    def read_stream(
        self,
        identifier: str | Sequence[str],
        *,
        checkpoint: str | PathLike[str] | None = None,
        **settings: Unpack[StreamSettings],
    ) -> DataFrame:
        """Return a table's rows as a streaming DataFrame: see `Table.read_stream`.

        Raises:
            NoSuchTableError: there is no such table; and the errors of `Table.read_stream`.
        """
        return self.load_table(identifier).read_stream(checkpoint=checkpoint, **settings)

    def table_exists(self, identifier: str | Sequence[str]) -> bool:
        """Return whether there is a table of that name."""
        return self.catalog.table_exists(identifier)

    def list_tables(self, namespace: str | Sequence[str] | None = None) -> list[Identifier]:
        """Return the tables directly in a namespace; without one the tables of all namespaces.

        Raises:
            NoSuchNamespaceError: there is no such namespace.

        Examples:
            >>> lake.list_tables("db")
        """
        if namespace is None:
            return self.catalog.list_tables_below()
        return self.catalog.list_tables(namespace)

    def drop_table(self, identifier: str | Sequence[str]) -> None:
        """Remove a table from the catalog; its files stay (`purge_table` deletes them)."""
        self.catalog.drop_table(identifier)

    def drop_table_if_exists(self, identifier: str | Sequence[str]) -> None:
        """Remove a table from the catalog if it is there; its files stay."""
        try:
            self.catalog.drop_table(identifier)
        except (NoSuchTableError, NoSuchNamespaceError):
            return

    def purge_table(self, identifier: str | Sequence[str]) -> None:
        """Remove a table and every file that its snapshots reach."""
        self.catalog.purge_table(identifier)

    def rename_table(self, source: str | Sequence[str], target: str | Sequence[str]) -> None:
        """Give a table another name; its files stay where they are."""
        self.catalog.rename_table(source, target)

    def register_table(self, identifier: str | Sequence[str], metadata_location: str) -> Table:
        """Give a table that lies somewhere a name in the lake.

        Args:
            identifier: the name.
            metadata_location: a metadata file, or the table's folder, whose newest metadata is
                taken, as by `open_table`. So a dropped table comes back.

        Raises:
            NoSuchTableError: there is no metadata file in the folder.
            TableAlreadyExistsError: the lake has the name.
            NoSuchNamespaceError: its namespace is missing.
        """
        loaded = register_table(self.catalog, identifier, metadata_location)
        return Table(self.spark, self.catalog, loaded)

    # -- SQL -------------------------------------------------------------------------------------

    def sql(
        self,
        statement: str,
        args: Mapping[str, Any] | Sequence[Any] | None = None,
        **frames: Any,
    ) -> DataFrame:
        """Run a statement of SQL, as ``spark.sql`` does, in Spark's and Iceberg's syntax.

        Names are those of the lake's tables, with or without the catalog's name before them, and
        of Spark's temporary views. What names none of them goes to Spark as it is. A query reads
        the snapshots of this moment, and opens the files that its predicates allow.

        Args:
            statement: one statement.
            args: values of ``:name`` by name, or of ``?`` in their order.
            **frames: DataFrames, and whatever is rows to `Table.append`, that stand in the
                statement as ``{name}``; numbers and texts too.

        Returns:
            The rows; without columns where a statement has no result.

        Raises:
            SqlSyntaxError: the statement cannot be read; nothing was done.
            AnalysisException, ParseException: of Spark, where the mistake is in a query.
            FrazilError: what the method behind the statement raises.

        Examples:
            >>> lake.sql("SELECT city, count(*) FROM db.trips WHERE fare > :f GROUP BY 1", {"f": 9})
            >>> lake.sql("SELECT t.fare FROM db.trips t JOIN {new} n ON t.id = n.id", new=df)
        """
        if is_immediate(statement):
            return self.sql(immediate_statement(self.spark, statement, args), None, **frames)
        found = self._transactions.run(statement, args, frames)
        if found is not None:
            return found
        context = SqlContext(
            self.spark, self.catalog, self._current, frames, begin=self._transactions.begin
        )
        return run_sql(context, statement, args)

    # -- procedures ------------------------------------------------------------------------------

    def call(
        self, statement: str, *, on_progress: Callable[[Any], None] | None = None
    ) -> DataFrame:
        """Run a procedure of maintenance by the text that Iceberg's Java runtime takes in SQL.

        Names, arguments and columns of the result are Java's. Arguments stand in their order or by
        name, and names may be in any case. A timestamp without a zone is in the session's. The work
        is done when this returns; the result is small.

        Args:
            statement: ``CALL system.procedure(arguments)``.
            on_progress: called with what the procedure is at, if it tells.

        Raises:
            ProcedureError: the text is no CALL, or names no procedure or wrong arguments.
            FrazilError: what the method behind the procedure raises.

        Examples:
            >>> lake.call("CALL system.rewrite_data_files(table => 'db.trips')").show()
        """
        return call(self.spark, self.catalog, statement, on_progress)

    # -- memory ----------------------------------------------------------------------------------

    def cache_statistics(self) -> dict[str, CacheStatistics]:
        """Return what this lake keeps of files that never change, by the name of the cache.

        Its tables share these caches; `frazil.connect` sets their sizes.

        Examples:
            >>> lake.cache_statistics()["manifests"].size_in_bytes
        """
        return self.catalog.caches.statistics

    def clear_caches(self) -> None:
        """Forget what this lake keeps of files; the next reads fetch and decode them again.

        Examples:
            >>> lake.clear_caches()
        """
        self.catalog.caches.clear()

    # -- parts -----------------------------------------------------------------------------------

    def _create(self, command: CreateTable) -> Table:
        return Table(self.spark, self.catalog, command.run(self.spark, self.catalog))
