"""What snapshots did to rows, as one DataFrame: rows of changed files, each with its change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Final

import polars as pl
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as S

from frazil.errors import ValidationError
from frazil.format.arguments import one_or_several
from frazil.format.metadata import TableMetadata
from frazil.format.predicates import AlwaysTrue, Expression
from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.format.schema import Schema
from frazil.format.snapshots import APPEND, REPLACE
from frazil.format.types import NestedField
from frazil.planning.changes import appended_files, changed_files, without_contained
from frazil.planning.changes_range import SnapshotRange
from frazil.planning.changes_whole import Compared, whole_changes
from frazil.planning.plan import plan
from frazil.planning.scan_plan import ScanPlan
from frazil.spark.changes.change_files import LabelledFiles, Part, labelled_files, snapshots_of
from frazil.spark.changes.columns import (
    CHANGE_ORDINAL,
    CHANGE_TYPE,
    CHANGELOG_COLUMNS,
    COMMIT_SNAPSHOT_ID,
    ChangeType,
)
from frazil.spark.changes.netting import net_changes, with_updates, without_copies
from frazil.spark.conditions import Condition, condition_of
from frazil.spark.files.projection import (
    DELETED,
    FILE_ORDINAL_FIELD,
    METADATA_COLUMNS,
    POS,
    projection_beside,
)
from frazil.spark.read.reader import TableReader
from frazil.spark.row_level.values.expressions import check_not_random
from frazil.spark.session.facts import (
    is_case_sensitive,
    prepare_session,
    time_zone_of,
    type_support,
)
from frazil.spark.session.free_names import free_names
from frazil.spark.types import schema_to_spark
from frazil.storage.files import FileIO


@dataclass(frozen=True)
class Changelog:
    """The changes of a range of snapshots.

    Attributes:
        spark: the session that reads.
        metadata: the table.
        io: the table's files.
        snapshots: the range.
        schema: the schema that all rows are read with.
        where: which rows, before and after a change alike.
        may_begin_with_append: whether the snapshot before the range may have expired if the first
            one is an append, which says all of itself.
    """

    spark: SparkSession
    metadata: TableMetadata
    io: FileIO
    snapshots: SnapshotRange
    schema: Schema
    where: str | Column | Expression | None = None
    may_begin_with_append: bool = False

    def __post_init__(self) -> None:
        for field in self.schema.fields:
            if field.name.lower() in CHANGELOG_COLUMNS:
                raise ValidationError(
                    f"the table has a column {field.name!r}, which is the name of a column of "
                    "changelogs: rename it to read changes"
                )

    def changes(self) -> DataFrame:
        """Every snapshot's own inserts and deletes."""
        return self._union([*self._of_one_kind(), *self._without_copies()])

    def changes_with_updates(self, identifier_columns: str | Sequence[str]) -> DataFrame:
        """As `changes`, with the two sides of an update of one key told as such."""
        identifier = self._identifier(identifier_columns)
        paired = [with_updates(each, identifier) for each in self._without_copies()]
        return self._union([*self._of_one_kind(), *paired])

    def changes_of_files(self) -> DataFrame:
        """As `changes`, with the rows that a snapshot only copied from one file to another.

        Snapshots that only rewrite files have no place in the range.
        """
        rows = self._union(self._reader.rows(self._parts))
        before, rewrites = [], 0
        for snapshot in self.snapshots.snapshots:
            before.append(F.lit(rewrites))
            rewrites += snapshot.operation == REPLACE
        if not rewrites:
            return rows
        place = F.col(CHANGE_ORDINAL)
        return rows.withColumn(CHANGE_ORDINAL, place - F.get(F.array(*before), place))

    def net_changes(self) -> DataFrame:
        """The inserts and deletes that are left after all snapshots."""
        kinds = {part.change_type for part in self._parts}
        whole = self._union(self._reader.rows(self._parts))
        return net_changes(whole) if len(kinds) > 1 else whole

    @cached_property
    def _parts(self) -> tuple[Part, ...]:
        changed = [
            (ordinal, snapshot)
            for ordinal, snapshot in enumerate(self.snapshots.snapshots)
            if snapshot.operation != REPLACE
        ]
        parts: list[Part] = []
        if self.may_begin_with_append and self._first_is_append_alone:
            _, first = changed.pop(0)
            appended = appended_files(
                self.metadata, [first], self.io, where=self._condition.implied, schema=self.schema
            )
            parts.append(self._part(ChangeType.INSERT, [0] * appended.file_count, appended))
        compared = [
            Compared(snapshot, self.snapshots.parent_of(ordinal)) for ordinal, snapshot in changed
        ]
        found = whole_changes(
            self.metadata, compared, self.io, where=self._condition.implied, schema=self.schema
        )
        places = pl.Series([ordinal for ordinal, _ in changed], dtype=pl.Int32)
        parts += [
            self._part(kind, places.gather(files.changes), files.plan)
            for kind, several in (
                (ChangeType.INSERT, found.added),
                (ChangeType.DELETE, found.removed),
            )
            for files in several
        ]
        for place in sorted(found.alone):
            parts += self._parts_of(changed[place][0], compared[place])
        return tuple(part for part in parts if part.plan.file_count)

    @property
    def _first_is_append_alone(self) -> bool:
        """Whether the range begins with an append whose parent has expired: it says all itself."""
        found = self.snapshots
        is_lost = found.start is None and found.start_id is not None
        return is_lost and found.snapshots[:1] != () and found.snapshots[0].operation == APPEND

    def _parts_of(self, ordinal: int, compared: Compared) -> list[Part]:
        """The parts of one snapshot, with the deletes that came or went."""
        changed = changed_files(
            self.metadata,
            compared.snapshot,
            compared.parent,
            self.io,
            where=self._condition.implied,
            schema=self.schema,
        )
        restored = without_contained(changed.restored, self.io)
        return [
            self._part(kind, [ordinal] * plan.file_count, plan, base)
            for kind, plan, base in (
                (ChangeType.INSERT, changed.added, None),
                (ChangeType.DELETE, changed.removed, None),
                (ChangeType.DELETE, changed.deleted.plan, changed.deleted.base),
                (ChangeType.INSERT, restored.plan, restored.base),
            )
        ]

    def _part(
        self,
        kind: ChangeType,
        ordinals: Sequence[int] | pl.Series,
        plan: ScanPlan,
        base: ScanPlan | None = None,
    ) -> Part:
        return Part(
            change_type=kind, snapshots=snapshots_of(ordinals, self._ids), plan=plan, base=base
        )

    @cached_property
    def _ids(self) -> list[int]:
        return [snapshot.snapshot_id for snapshot in self.snapshots.snapshots]

    @cached_property
    def _mixed_snapshots(self) -> frozenset[int]:
        """Ordinals of the snapshots that both insert and delete."""
        inserting, deleting = (
            {o for part in self._parts if part.change_type is kind for o in part.change_ordinals}
            for kind in (ChangeType.INSERT, ChangeType.DELETE)
        )
        return frozenset(inserting & deleting)

    def _of_one_kind(self) -> list[DataFrame]:
        """The rows of snapshots that only insert or only delete."""
        return self._reader.rows(self._parts_to_read(mixed=False))

    def _without_copies(self) -> list[DataFrame]:
        """The rows of the other snapshots, without those that were only written anew."""
        rows = self._reader.rows(self._parts_to_read(mixed=True))
        return [without_copies(reduce(DataFrame.union, rows))] if rows else []

    def _parts_to_read(self, *, mixed: bool) -> list[Part]:
        parts = (part.of_snapshots(self._mixed_snapshots, among=mixed) for part in self._parts)
        return [part for part in parts if part.plan.file_count]

    @cached_property
    def _reader(self) -> ChangedRows:
        return ChangedRows(
            spark=self.spark,
            metadata=self.metadata,
            io=self.io,
            schema=self.schema,
            condition=self._condition,
        )

    @cached_property
    def _condition(self) -> Condition:
        condition = condition_of(
            self.where,
            self.schema,
            spark=self.spark,
            case_sensitive=is_case_sensitive(self.spark),
            time_zone=time_zone_of(self.spark),
        )
        if not condition.is_exact:
            # Both sides of a change are tested, and a copied row has two.
            shape = schema_to_spark(self.schema, support=type_support(self.spark))
            rows = self.spark.createDataFrame([], shape)
            check_not_random(rows, condition.flag(), condition.text)
        return condition

    def _union(self, frames: Sequence[DataFrame]) -> DataFrame:
        return reduce(DataFrame.union, frames) if frames else self._reader.no_rows()

    def _identifier(self, columns: str | Sequence[str]) -> list[tuple[str, ...]]:
        names = one_or_several(columns, argument="identifier_columns")
        if not names:
            raise ValidationError("identifier_columns is empty: give at least one column name")
        cased = is_case_sensitive(self.spark)
        paths = []
        for name in names:
            field = self.schema.field_or_none(name, case_sensitive=cased)
            if field is None:
                raise ValidationError(self.schema.missing(name))
            if self.schema.is_inside_collection(field.field_id):
                raise ValidationError(
                    f"rows cannot be identified by {name!r}: it lies inside a list or map"
                )
            paths.append(self.schema.name_path(field.field_id))
        return paths


_LABELLED: Final = "_frazil_labelled_file"
_BASE: Final = "_frazil_taken_before"
# Room for a trillion rows a file, in eight million files.
_POSITION_BITS: Final = 40
_LABELS: Final = S.StructType(
    [
        S.StructField(CHANGE_TYPE, S.StringType(), False),
        S.StructField(CHANGE_ORDINAL, S.IntegerType(), False),
        S.StructField(COMMIT_SNAPSHOT_ID, S.LongType(), False),
    ]
)
_POS, _DELETED = (
    next(field for field in METADATA_COLUMNS if field.name == name) for name in (POS, DELETED)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedRows:
    """Reads parts of one table.

    Attributes:
        schema: the schema that rows are read with, whatever they were written with.
        condition: which rows, over the schema's columns.
    """

    spark: SparkSession
    metadata: TableMetadata
    io: FileIO
    schema: Schema
    condition: Condition

    def rows(self, parts: Sequence[Part]) -> list[DataFrame]:
        """The changed rows: the table's columns and the changelog's.

        Raises:
            UnsupportedError: a delete or a file that cannot be applied or read rightly.
            MissingFileError, InvalidDataFileError: a file that had to be looked at cannot be read.
        """
        prepare_session(self.spark)
        frames: list[DataFrame] = []
        for is_left in (True, False):
            chosen = [part for part in parts if (part.base is None) == is_left]
            decided = self.condition.is_exact and all(
                isinstance(part.plan.residual, AlwaysTrue) for part in chosen
            )
            if chosen:
                files = labelled_files(chosen)
                places = (FILE_ORDINAL_FIELD,) if _are_mixed(files.labels) else ()
                found = [self._read(files.read, places)] if is_left else self._rows_taken(files)
                frames += [self._with_labels(rows, files, decided=decided) for rows in found]
        return frames

    def no_rows(self) -> DataFrame:
        """No rows, in the columns of `rows`."""
        prepare_session(self.spark)
        nothing = plan(self.metadata, None, self.io, schema=self.schema)
        rows = self._read(nothing, ())
        labels = (F.lit(None).cast(each.dataType).alias(each.name) for each in _LABELS.fields)
        return rows.select("*", *labels)

    def _rows_taken(self, files: LabelledFiles) -> list[DataFrame]:
        """Rows that the deletes take, and that those before had not taken yet."""
        ordinals = files.read.files["ordinal"]
        had_deletes = ordinals.is_in(files.base.delete_index.ordinals().implode())
        first, again = (
            files.restricted_to(ordinals.filter(~had_deletes)),
            files.restricted_to(ordinals.filter(had_deletes)),
        )
        frames = []
        if len(first.read.files):
            frames.append(self._deleted_rows(first.read, self.schema.fields))
        if len(again.read.files):
            now = self._deleted_rows(again.read, self.schema.fields)
            before = self._deleted_rows(again.base, ()).select(_place().alias(_BASE))
            frames.append(now.join(before, _place() == F.col(_BASE), "left_anti"))
        return frames

    def _deleted_rows(self, read: ScanPlan, columns: Sequence[NestedField]) -> DataFrame:
        """The rows that deletes take, with their places."""
        places = (FILE_ORDINAL_FIELD, _POS, _DELETED)
        return self._read(read, places, columns).where(F.col(DELETED))

    def _read(
        self,
        read: ScanPlan,
        metadata_columns: Sequence[NestedField],
        columns: Sequence[NestedField] | None = None,
    ) -> DataFrame:
        fields = self.schema.fields if columns is None else columns
        projection = projection_beside(metadata_columns, self.schema, fields)
        reader = TableReader(self.spark, self.metadata, self.io)
        return reader.rows_under_some_deletes(read, projection)

    def _with_labels(self, rows: DataFrame, files: LabelledFiles, *, decided: bool) -> DataFrame:
        """The rows that match, with their labels."""
        names = [field.name for field in self.schema.fields]
        places = rows.columns[len(names) :]
        known_file, *free = free_names([_LABELLED, *places], names)
        if rows.columns != [*names, *free]:
            rows = rows.toDF(*names, *free)
        if not decided:
            rows = self.condition.matching_rows(rows)
        columns: list[Column | str] = [F.col(quote_name_always([name])) for name in names]
        if not _are_mixed(files.labels):
            values = files.labels.row(0, named=True)
            labels = [
                F.lit(values[label.name]).cast(label.dataType).alias(label.name)
                for label in _LABELS.fields
            ]
            return rows.select(*columns, *labels)
        table = files.labels.select(
            pl.col("ordinal").alias(known_file), *CHANGELOG_COLUMNS
        ).rechunk()
        schema = S.StructType([S.StructField(known_file, S.LongType(), False), *_LABELS.fields])
        known = F.broadcast(self.spark.createDataFrame(table.to_arrow(), schema))
        ordinal = free[places.index(FILE_ORDINAL_FIELD.name)]
        joined = rows.join(known, F.col(ordinal) == F.col(known_file))
        return joined.select(*columns, *CHANGELOG_COLUMNS)


def _are_mixed(labels: pl.DataFrame) -> bool:
    """Whether the files have not all the same labels."""
    return labels.select(CHANGELOG_COLUMNS).n_unique() > 1


def _place() -> Column:
    """A row's file and position as one number, which Spark joins by cheaply."""
    file = F.shiftleft(F.col(FILE_ORDINAL_FIELD.name), _POSITION_BITS)
    return file.bitwiseOR(F.col(POS))
