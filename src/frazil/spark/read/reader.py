"""The one way from a plan to rows.

Scans, changelogs, streams and everything that rewrites rows read through `TableReader`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as S

from frazil.errors import InvalidFormatError, StorageError, UnsupportedError
from frazil.format.metadata import TableMetadata
from frazil.format.metadata.table_mapping import name_mapping_of
from frazil.format.predicates.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    BoundRef,
    Expression,
    leaves,
)
from frazil.format.predicates.sql.quoting import SparkForms, quote_name_always
from frazil.format.predicates.sql.sql_text import to_spark_sql
from frazil.format.schema import Schema
from frazil.planning.deletes.index import EQUALITY_DELETES
from frazil.planning.scan_plan import DeleteWay, ScanPlan
from frazil.spark.deletes.bitmap import Words
from frazil.spark.deletes.groups import DeleteGroup, delete_groups, with_few_others
from frazil.spark.deletes.key_columns import key_schema
from frazil.spark.deletes.positions import PositionDeletes
from frazil.spark.deletes.resolve import PLACES, EqualityReading, Resolver, equality_reading
from frazil.spark.files.arrow.convert import is_scanned
from frazil.spark.files.arrow.files import TableColumns
from frazil.spark.files.file_layouts import survey
from frazil.spark.files.floats import is_float, not_pushed
from frazil.spark.files.layout.layouts import Layout, Reader
from frazil.spark.files.layout.trusted import are_footers_asked
from frazil.spark.files.lost_files import note_read
from frazil.spark.files.parquet.native import ScanContext
from frazil.spark.files.projection import (
    DELETED,
    LAST_UPDATED,
    ROW_ID,
    Projection,
    is_metadata_column,
    with_fields,
)
from frazil.spark.files.scan_names import scan_names
from frazil.spark.read.prepared import (
    PreparedRead,
    PreparedRows,
    ReadRequest,
    keep_read,
    known_read,
    settings_of,
)
from frazil.spark.read.result_columns import ScanColumn, metadata_of, result_schema
from frazil.spark.read.scan_group import ScanGroup, SharedReading
from frazil.spark.session import costs
from frazil.spark.session.facts import prepare_session, type_support
from frazil.spark.types import COMMENT_KEY
from frazil.storage.files import FileIO


@dataclass(frozen=True, slots=True)
class TableReader:
    """Reads rows of one table in one session.

    Whatever conditions are put on the rows, none on floats reaches Parquet's filters, which compare
    them otherwise; but the predicate of `rows_where` does.

    Attributes:
        spark: the session that the rows are read in.
        metadata: the table.
        io: the table's files.
    """

    spark: SparkSession
    metadata: TableMetadata
    io: FileIO

    def rows(self, plan: ScanPlan, projection: Projection) -> DataFrame:
        """Return the live rows of a plan's files, before its residual is checked.

        Equality deletes are applied as the session setting ``frazil.read.equality-deletes`` says.
        With the column ``_deleted`` the deleted rows are there too, and the column tells them.

        Args:
            plan: the files; it names every delete that applies to them.
            projection: the columns.

        Raises:
            UnsupportedError: a delete or a file that cannot be applied or read rightly.
            MissingFileError, InvalidDataFileError: a footer that had to be read cannot be.
        """
        prepare_session(self.spark)
        request = self._request(projection, self._equality(plan))
        return self._prepare(plan, request).frame()

    def rows_where(
        self,
        plan: ScanPlan,
        projection: Projection,
        where: Expression,
        *,
        without_nan: Collection[int] = (),
    ) -> DataFrame:
        """Return those of `rows` for which a predicate holds; Spark may skip parts of files by it.

        Args:
            projection: the columns, with those of the predicate, as the table names them.
            where: bound to the table's schema.
            without_nan: ids of float columns that hold no NaN in the plan's files.
        """
        if isinstance(where, AlwaysTrue):
            return self.rows(plan, projection)
        prepare_session(self.spark)
        refs = [leaf.ref for leaf in leaves(where)]
        floats = {ref.parts[0] for ref in refs if isinstance(ref, BoundRef) and is_float(ref.type)}
        tested = [field for field in projection.fields if field.name in floats]
        pushed = frozenset(field.field_id for field in tested)
        request = replace(self._request(projection, self._equality(plan)), pushed=pushed)
        forms = SparkForms(time="time" if request.support.time else "long")
        text = to_spark_sql(where, forms=forms, without_nan=without_nan)
        test = F.lit(False) if isinstance(where, AlwaysFalse) else F.expr(text)
        rows = self._prepare(plan, request).frame().where(test)
        if not tested:
            return rows
        columns = []
        for field in projection.fields:
            column = F.col(quote_name_always([field.name]))
            if field.field_id in pushed:
                column = not_pushed(column, field.field_type)
                column = column.alias(field.name, metadata=metadata_of(field))
            columns.append(column)
        return rows.select(*columns)

    def rows_of_snapshot(self, plan: ScanPlan, projection: Projection) -> DataFrame:
        """Return `rows` of a plan that will be asked for again: what is prepared is kept."""
        return self._kept_read(plan, projection).frame()

    def relation_of_snapshot(self, plan: ScanPlan, projection: Projection) -> DataFrame:
        """Return `rows_of_snapshot` for a query's text, the same columns at every call.

        What scans need stands in the metadata of the columns.
        """
        return self._kept_read(plan, projection).relation

    def keeps(self, plan: ScanPlan, projection: Projection) -> bool:
        """Return whether what `rows_of_snapshot` has prepared is kept."""
        request = self._request(projection, self._equality(plan))
        return known_read(self.spark, plan, request, self.io) is not None

    def rows_under_some_deletes(self, plan: ScanPlan, projection: Projection) -> DataFrame:
        """Return the rows that the plan's deletes leave; others may apply to the files too.

        Nothing of it is kept: what is resolved of such deletes says nothing of the files.
        """
        prepare_session(self.spark)
        return self._prepare(plan, self._request(projection, EqualityReading.JOIN)).frame()

    def with_delete_ways(self, plan: ScanPlan, projection: Projection) -> ScanPlan:
        """Return the plan with how `rows` of it would apply its deletes; no delete is read.

        It stays as it is where that cannot be told, or takes long: of very many pairs of files.
        """
        index = plan.delete_index
        if index.is_empty or index.pair_count > costs.EXPLAINED_PAIRS:
            return plan
        request = self._request(projection, self._equality(plan))
        try:
            return replace(plan, delete_ways=tuple(self._plan(plan, request).delete_ways()))
        except (InvalidFormatError, StorageError, UnsupportedError):
            return plan

    def _kept_read(self, plan: ScanPlan, projection: Projection) -> PreparedRead:
        prepare_session(self.spark)
        request = self._request(projection, self._equality(plan))
        read = known_read(self.spark, plan, request, self.io)
        if read is None:
            read = self._prepare(plan, request)
            keep_read(read, self.spark, plan, request, self.io)
        return read

    def _equality(self, plan: ScanPlan) -> EqualityReading:
        reading = equality_reading(self.spark)
        if reading is EqualityReading.AUTO and not isinstance(plan.residual, AlwaysTrue):
            # A filter may skip most of the files: resolving would read the keys of all rows.
            return EqualityReading.KNOWN
        return reading

    def _request(self, projection: Projection, equality: EqualityReading) -> ReadRequest:
        return ReadRequest(
            projection=projection,
            support=type_support(self.spark),
            mapping=name_mapping_of(self.metadata),
            equality=equality,
            settings=settings_of(self.spark, self.io),
        )

    def _prepare(self, plan: ScanPlan, request: ReadRequest) -> PreparedRead:
        return self._plan(plan, request).prepare()

    def _plan(self, plan: ScanPlan, request: ReadRequest) -> PlannedRead:
        """How the plan's files are read.

        Raises:
            UnsupportedError: a delete or a file that cannot be applied or read rightly, or that is
                encrypted.
            MissingFileError, InvalidDataFileError: a footer that had to be read cannot be.
        """
        note_read(self.metadata)
        _check_not_encrypted(plan)
        context = ScanContext(
            spark=self.spark, metadata=self.metadata, io=self.io, support=request.support
        )
        applied = plan.deletes.filter(
            pl.col("delete").is_in(plan.delete_index.deletes().implode()),
            pl.col("content") == EQUALITY_DELETES,
        )
        keys = frozenset(applied["equality_ids"].explode().drop_nulls())
        table = TableColumns(fields=plan.schema.fields, mapping=request.mapping)
        schema = key_schema(self.metadata, plan, keys, self.io)
        return PlannedRead(context, plan, request, schema, table)


@dataclass(frozen=True, slots=True)
class PlannedRead:
    """A read of a plan's files, without the rows that are deleted.

    Files are grouped by how they can be read and by the kinds of deletes that apply to them. A
    group without deletes is a plain native scan. The union of the groups is one DataFrame, which
    Spark optimizes as a whole.

    Attributes:
        plan: where equality deletes are resolved, with every delete that applies to its files.
        request: the columns, and how they are read. With the column ``_deleted`` the deleted rows
            are there too, and the column tells them.
        schema: the plan's, with every column that deletes compare.
    """

    context: ScanContext
    plan: ScanPlan
    request: ReadRequest
    schema: Schema
    table: TableColumns

    def prepare(self) -> PreparedRead:
        """The rows in the projection's columns; errors as of `TableReader.rows`."""
        projection = self.request.projection
        groups = delete_groups(self.plan)
        if not any(group.equality for group in groups):
            return self._read(self.plan, groups, projection, {})
        left, positions = self._resolver.resolve(self.plan, groups)
        return self._read(left, delete_groups(left, positions), projection, positions)

    def delete_ways(self) -> Iterator[DeleteWay]:
        """How the deletes would be applied, by their figures and what is kept; none is read."""
        resolved, left = self._resolver.foresee(self.plan, delete_groups(self.plan))
        yield from resolved
        for group in delete_groups(left):
            choices = [part.choice(self.context.io, self.schema) for part in group.equality]
            if group.has_positions:
                ordinals = group.files["ordinal"]
                choices += PositionDeletes.of(self.context, left, ordinals).choices()
            for choice in choices:
                yield DeleteWay(len(group.files), choice.way.name, choice.reason)

    @property
    def _resolver(self) -> Resolver:
        return Resolver(
            metadata=self.context.metadata,
            io=self.context.io,
            schema=self.schema,
            table=self.table,
            reading=self.request.equality,
            deleted_rows=self._deleted_rows,
        )

    def _deleted_rows(self, plan: ScanPlan) -> DataFrame:
        """The rows that the plan's deletes delete, in the columns of `PLACES`."""
        rows = self._read(plan, delete_groups(plan), Projection(PLACES), {}).frame()
        return rows.where(F.col(DELETED))

    def _read(
        self,
        plan: ScanPlan,
        groups: Sequence[DeleteGroup],
        projection: Projection,
        resolved: Mapping[int, Words],
    ) -> PreparedRead:
        """The rows of the groups; ``resolved`` is what `DeleteGroup.has_resolved` speaks of."""
        parts: list[PreparedRows] = []
        if not len(plan.files):
            groups = []
        context, table = self.context, self.table
        asks_footers = are_footers_asked(context.spark)
        # Where deleted rows are wanted too, files that have none would be read twice.
        if DELETED not in projection.metadata_names:
            groups = with_few_others(groups)
        for group in groups:
            wanted_ids = {i for part in group.equality for i in part.ids}
            scanned = _scanned_fields(projection, self.schema, wanted_ids)
            known = survey(
                context.io,
                context.metadata,
                group.files,
                scanned.fields,
                table,
                asks_footers=asks_footers,
            )
            reading = SharedReading(
                context=context,
                plan=plan,
                projection=projection,
                scanned=scanned,
                names=scan_names(scanned.fields, known.file_names, pushed=self.request.pushed),
                schema=self.schema,
                table=table,
                survey=known,
                resolved=resolved,
                pushed=self.request.pushed,
            )
            parts.extend(_group_rows(reading, group))
        if not parts:
            schema = plan.schema
            columns = result_schema(context.metadata, schema, projection, self.request.support)
            parts.append(_no_rows(context.spark, columns))
        return PreparedRead(tuple(parts))


def _check_not_encrypted(plan: ScanPlan) -> None:
    for frame in (plan.files, plan.deletes):
        encrypted = frame.filter(pl.col("key_metadata").is_not_null())
        if len(encrypted):
            raise UnsupportedError(
                f"the file {encrypted['file_path'][0]} is encrypted; reading encrypted tables is "
                "not supported"
            )


def _scanned_fields(projection: Projection, schema: Schema, keys: set[int]) -> Projection:
    """The columns to read: those of the result that files can hold, and the compared ones."""
    stored = [
        field
        for field in projection.fields
        if field.name in (ROW_ID, LAST_UPDATED) or not is_metadata_column(field)
    ]
    widened = with_fields(stored, schema, keys)
    return Projection(tuple(f for f in widened.fields if is_scanned(f.field_type)))


def _group_rows(reading: SharedReading, group: DeleteGroup) -> list[PreparedRows]:
    """The rows of each part of the group that is read in one way."""
    parts: dict[tuple[int, tuple[int, ...]], list[pl.DataFrame]] = {}
    every = reading.survey.files
    ways = every.select("layout", "spec_id").unique(maintain_order=True).rows()
    for layout_index, spec_id in ways:
        layout = reading.survey.layouts[layout_index]
        constants = _constant_ids(reading, layout, spec_id)
        is_of_way = (pl.col("layout") == layout_index) & (pl.col("spec_id") == spec_id)
        files = every if len(ways) == 1 else every.filter(is_of_way)
        parts.setdefault((layout_index, constants), []).append(files)
    found: list[PreparedRows] = []
    for (layout_index, constants), members in parts.items():
        layout = reading.survey.layouts[layout_index]
        for files in _without_repeats(pl.concat(members)):
            found.extend(ScanGroup(reading, group, files, layout, constants).rows())
    return found


def _without_repeats(files: pl.DataFrame) -> list[pl.DataFrame]:
    """The files in parts that hold a path once: Spark takes a path that is listed twice once."""
    if not files["file_path"].is_duplicated().any():
        return [files]
    nth = files.select(pl.int_range(pl.len()).over("file_path").alias("nth"))["nth"]
    return files.with_columns(nth).partition_by("nth", maintain_order=True, include_key=False)


def _constant_ids(reading: SharedReading, layout: Layout, spec_id: int) -> tuple[int, ...]:
    """Ids of scanned columns whose value is the file's identity partition value (rule 53).

    A file whose columns are not known takes the partition value too: all its rows have it.
    """
    spec = reading.context.metadata.spec_by_id(spec_id)
    scanned = {field.field_id for field in reading.scanned.fields}
    unknown = layout.reader is Reader.ARROW or not layout.columns
    absent = scanned if unknown else layout.missing
    return tuple(sorted(spec.identity_source_ids & scanned & absent))


def _no_rows(spark: SparkSession, schema: S.StructType) -> PreparedRows:
    """Rows of a schema that there are none of, as Spark's optimizer knows."""
    # What is made of no data alone may have any size to Spark, and makes a join shuffle.
    rows = spark.createDataFrame([], schema).limit(0)
    if len({name.lower() for name in schema.names}) < len(schema.names):
        return PreparedRows(rows)
    comments = [(field.metadata or {}).get(COMMENT_KEY) for field in schema.fields]
    columns = map(ScanColumn, schema.names, schema.names, comments)
    return PreparedRows(rows, tuple(columns), is_small=True)
