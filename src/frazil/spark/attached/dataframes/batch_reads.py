"""`spark.table`, and `spark.read` by the name of a table or by its folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from frazil.catalog.identifiers import Identifier, shown
from frazil.catalog.static import StaticCatalog
from frazil.errors import UnsupportedError, ValidationError
from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.spark.attached.dataframes.java_options import Given, changes_choice, read_choice
from frazil.spark.attached.dataframes.lake_reads import ReadsLakes
from frazil.spark.attached.dataframes.table_mark import TableMark
from frazil.spark.attached.names import SessionNames, context_to_read
from frazil.spark.plans.sparks_errors import sparks_errors
from frazil.spark.scan import Scan
from frazil.spark.session.facts import is_connect, prepare_session
from frazil.spark.sql.cached_tables import CachedTables
from frazil.spark.sql.context import CHANGES, NamedTable, NamedView, TableVersion
from frazil.spark.sql.query import query
from frazil.spark.table import Table


class LakeReader(ReadsLakes):
    """Spark's reader, which reads tables of lakes too, by name or by folder."""

    def _frazil_at(self, place: str) -> DataFrame:
        """The rows of a table by its folder."""
        with sparks_errors():
            return self._frazil_read(NamedTable(table_at(self._frazil_session, place)), place)

    def _frazil_rows(self, parts: Identifier) -> DataFrame | None:
        """The rows of a lake's table; None where the name is that of a temporary view."""
        with sparks_errors():
            named = found_name(self._frazil_names, self._frazil_session, parts)
            if isinstance(named, NamedView):
                if self._frazil_given.values:
                    raise UnsupportedError(f"the view {shown(parts)} is read without options")
                return rows_of_view(self._frazil_names, self._frazil_session, parts)
            return None if named is None else self._frazil_read(named, parts)

    def _frazil_read(self, named: NamedTable, place: Identifier | str) -> DataFrame:
        self._frazil_refuse_schema()
        return _marked_rows(self._frazil_names, named, self._frazil_given, place)


def read_table(
    names: SessionNames,
    plain: Callable[..., DataFrame],
    spark: SparkSession,
    tableName: str,
) -> DataFrame:
    """Return the rows of a table, as `SparkSession.table` does.

    Raises:
        AnalysisException: there is no such table.
    """
    parts = names.parts_of(tableName)
    if parts is not None:
        with sparks_errors():
            named = found_name(names, spark, parts)
            if isinstance(named, NamedView):
                return rows_of_view(names, spark, parts)
            if named is not None:
                return _marked_rows(names, named, Given(), parts)
    return plain(spark, tableName)


def found_name(
    names: SessionNames, spark: SparkSession, parts: Identifier
) -> NamedTable | NamedView | None:
    """Return what a name means; None where it is that of a temporary view.

    Raises:
        NoSuchTableError: there is no such table.
    """
    context = context_to_read(names, spark, parts)
    return None if context is None else context.find(parts)


def rows_of_view(names: SessionNames, spark: SparkSession, parts: Identifier) -> DataFrame:
    """Return the rows of a view."""
    context = context_to_read(names, spark, parts)
    assert context is not None
    text = f"SELECT * FROM {quote_name_always(parts)}"  # noqa: S608 The name is quoted.
    return query(context, text).alias(parts[-1])


def rows_of_choice(named: NamedTable, given: Given) -> DataFrame:
    """Return the rows that a reader's options ask for.

    Raises:
        ConfigurationError: an option is unknown or malformed.
        NoSuchSnapshotError, NoSuchRefError: there is no such version.
        ValidationError: the options do not go together.
    """
    found = _read_of_choice(named, given)
    return found.to_df() if isinstance(found, Scan) else found


def _marked_rows(
    names: SessionNames, named: NamedTable, given: Given, place: Identifier | str
) -> DataFrame:
    """The rows that a reader's options ask for, which tell of which table they are.

    Args:
        place: the name that the reader says, by which they are called; or the table's folder.
    """
    found = _read_of_choice(named, given)
    where: Identifier | str = place
    if isinstance(place, str) or given.values or not isinstance(found, Scan):
        rows = found.to_df() if isinstance(found, Scan) else found
    else:
        spark = named.table.spark
        rows = CachedTables.of(spark).rows_anew(spark, named, found.to_df)
    if not isinstance(place, str):
        lake = names.lake_and_name(place)
        assert lake is not None
        where = (lake[0].name, *named.table.identifier)
        # Columns go by the short name; the whole one is for who reads the plan.
        rows = rows.alias(shown(where)).alias(place[-1])
    if not isinstance(found, Scan) or is_connect(rows.sparkSession):
        return rows
    return TableMark.of(where, named.table.metadata, found).mark_rows(rows)


def _read_of_choice(named: NamedTable, given: Given) -> Scan | DataFrame:
    table = named.table
    if named.metadata_table == CHANGES:
        return replace(named, options=changes_choice(given)).metadata_rows(TableVersion())
    choice = read_choice(given, table.metadata)
    if choice.start is not None:
        if named.metadata_table or named.version.arguments:
            raise ValidationError("start-snapshot-id reads a table, named without a version")
        if not isinstance(table, Table):
            raise UnsupportedError("a transaction cannot hold a read of what was appended since")
        return table.incremental(from_snapshot_id=choice.start, to_snapshot_id=choice.end).to_df()
    if choice.version.arguments and named.version.arguments:
        raise ValidationError("the name says a version, and the options another one")
    version = choice.version if choice.version.arguments else named.version
    if named.metadata_table is not None:
        return named.metadata_rows(version)
    return table.scan(**version.arguments)


def table_at(spark: SparkSession, place: str) -> Table:
    """Return a table by its folder or metadata file, read only.

    Raises:
        MissingFileError: there is nothing at that place.
    """
    prepare_session(spark)
    catalog = StaticCatalog(os.fspath(place), {})
    return Table(spark, catalog, catalog.load_table(catalog.identifier))
