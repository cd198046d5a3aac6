"""Native Parquet scans by field id, or by a file's own names."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import polars as pl
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as S

from frazil.format import types as I
from frazil.format.metadata import TableMetadata
from frazil.format.predicates.sql.quoting import SparkForms, quote_name_always, spark_text
from frazil.format.schema import Schema
from frazil.spark.abilities import missing_ability_error, reads_variants
from frazil.spark.files.arrow.convert import is_scanned, scan_type
from frazil.spark.files.floats import holds_floats, not_pushed
from frazil.spark.files.layout.footers import FooterColumn
from frazil.spark.files.parquet.file_log import (
    METADATA_COLUMN,
    ORDINAL,
    POSITION,
    ParquetScan,
    RowPlace,
    read_parquet,
)
from frazil.spark.session.by_session import BySession
from frazil.spark.session.facts import is_connect
from frazil.spark.types import FIELD_ID_KEY, SparkTypeSupport, with_fields_made
from frazil.storage.files import FileIO

EXISTS_DEFAULT: Final = "EXISTS_DEFAULT"
CURRENT_DEFAULT: Final = "CURRENT_DEFAULT"

SCAN_METADATA: Final = frozenset({FIELD_ID_KEY, EXISTS_DEFAULT, CURRENT_DEFAULT})
"""What the metadata of a scan's columns has for Spark's reader."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanContext:
    """What every scan of one read shares.

    Attributes:
        metadata: the table; its folder is where scratch files may lie if the driver sees nothing
            else.
        io: the table's files.
        support: the session's newer types.
    """

    spark: SparkSession
    metadata: TableMetadata
    io: FileIO
    support: SparkTypeSupport


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a scan yields.

    Attributes:
        fields: the top-level columns to read, of types that files can hold.
        names: the scan's column name of each by field id.
        named_alike: ids of nested columns that every file has under the scan's names, at any
            depth; of others Spark must not cut the schema down, since it finds parts by name.
        pushed: ids of columns whose floats only predicates for Parquet's filters are about; no
            condition on the floats of others may reach the files.
        ordinal: whether rows carry their file's ordinal (`ORDINAL`).
        position: whether rows carry their position in the file (`POSITION`).
    """

    fields: tuple[I.NestedField, ...]
    names: Mapping[int, str]
    named_alike: frozenset[int] = frozenset()
    pushed: frozenset[int] = frozenset()
    ordinal: bool = False
    position: bool = False


@dataclass(frozen=True, slots=True)
class _StoredColumn:
    """A column as files have it and as the scan yields it.

    Attributes:
        floats: the table's type, where Spark must push nothing on its floats and would; else None.
    """

    stored: str
    name: str
    stored_type: S.DataType
    target: S.DataType
    floats: I.IcebergType | None

    @property
    def is_typed_as_wanted(self) -> bool:
        return self.stored_type == self.target and self.floats is None

    @property
    def is_as_wanted(self) -> bool:
        return self.stored == self.name and self.is_typed_as_wanted


@dataclass(frozen=True, slots=True)
class NativeScan:
    """Spark's scan of Parquet files, before its columns are named and typed as wanted."""

    parquet: ParquetScan
    columns: tuple[_StoredColumn, ...]
    wanted: Wanted

    @property
    def place(self) -> RowPlace | None:
        """Where a row is, in the words of `parquet.rows`, if those are the wanted columns too."""
        is_as_wanted = all(column.is_as_wanted for column in self.columns)
        return self._place if is_as_wanted and self.wanted.position else None

    def frame(self) -> DataFrame:
        """The wanted columns, and `ORDINAL` and `POSITION` where they are wanted."""
        data, wanted, place = self.parquet.rows, self.wanted, self._place
        is_placed = wanted.ordinal or wanted.position
        if not is_placed and all(column.is_as_wanted for column in self.columns):
            return data
        if place is not None and all(c.is_typed_as_wanted for c in self.columns):
            # Text is one call to Spark; columns are a dozen each.
            texts = [
                f"{quote_name_always([c.stored])} as {quote_name_always([c.name])}"
                for c in self.columns
            ]
            if wanted.ordinal:
                texts.append(f"{place.ordinal} as {ORDINAL}")
            if wanted.position:
                texts.append(f"{place.position} as {POSITION}")
            return data.selectExpr(*texts)
        chosen = []
        for column in self.columns:
            value = F.col(quote_name_always([column.stored]))
            if column.is_as_wanted:
                chosen.append(value)
                continue
            if column.stored_type != column.target:
                value = value.cast(column.target)
            elif column.floats is not None:
                value = not_pushed(value, column.floats)
            chosen.append(value.alias(column.name))
        if wanted.ordinal:
            chosen.append(self.parquet.ordinal().alias(ORDINAL))
        if wanted.position:
            chosen.append(self.parquet.position().alias(POSITION))
        return data.select(*chosen)

    @property
    def _place(self) -> RowPlace | None:
        """As `RowPlace`, where no column of the files hides Spark's own."""
        hidden = METADATA_COLUMN not in (column.stored.lower() for column in self.columns)
        return self.parquet.place if hidden else None


def scan_by_id(context: ScanContext, files: pl.DataFrame, wanted: Wanted) -> NativeScan:
    """The files' columns by field id (SPEC rule 52), under the scan's names, in scan types.

    A top-level column that a file lacks is its initial default (rule 55), else NULL (rule 56).
    """
    columns = [_scan_field(field, wanted.names[field.field_id], context) for field in wanted.fields]
    schema = S.StructType(
        [
            column
            if field.field_id in wanted.named_alike
            else S.StructField(
                column.name, _with_own_names(column.dataType), column.nullable, column.metadata
            )
            for field, column in zip(wanted.fields, columns, strict=True)
        ]
    )
    # Others have names that no file has, or parts that have.
    names = list(wanted.names.values())
    return _scan(context, files, schema, wanted, names, found_by_name=wanted.named_alike)


def scan_by_name(
    context: ScanContext, files: pl.DataFrame, wanted: Wanted, columns: Sequence[FooterColumn]
) -> NativeScan:
    """The columns of files without ids, by the names in the files, as `scan_by_id` yields them.

    Args:
        columns: the files' columns with the ids that the table gives them.
    """
    by_id = {column.field_id: column for column in columns}
    stored: list[S.StructField] = []
    for field in wanted.fields:
        column = by_id.get(field.field_id)
        target = _scan_field(field, wanted.names[field.field_id], context)
        if column is None:
            metadata = {k: v for k, v in (target.metadata or {}).items() if k != FIELD_ID_KEY}
            stored.append(
                S.StructField(_absent_name(field), _without_ids(target.dataType), True, metadata)
            )
        else:
            data_type = _stored_type(target.dataType, field.field_type, column)
            stored.append(S.StructField(column.name, data_type, target.nullable))
    names = [field.name for field in stored]
    held = [field_id for field_id in by_id if field_id is not None]
    return _scan(context, files, S.StructType(stored), wanted, names, found_by_name=held)


_READS_VARIANTS: Final = BySession[bool]()


def check_variants(spark: SparkSession, schema: Schema) -> None:
    """Check that Spark knows the files of a table: else its reader reads no column of them.

    Raises:
        UnsupportedError: they have variants, which this Spark does not know.
    """
    fields = schema.fields_by_id.values()
    if not any(isinstance(field.field_type, I.VariantType) for field in fields):
        return
    if not _READS_VARIANTS.get_or_make(spark, _reads_variants):
        raise missing_ability_error(
            "reader of Parquet files with columns of the type variant",
            since="4.1",
            instead="keep such columns out of the table",
        )


def _reads_variants(spark: SparkSession) -> bool:
    # A server of Connect tells nothing of that; there Spark's own error is raised.
    return is_connect(spark) or reads_variants(spark._jvm)


def default_text(field: I.NestedField, support: SparkTypeSupport) -> str | None:
    """SQL text of a field's initial default in the scan's type; None where there is none."""
    if field.initial_default is None or field.field_type.is_nested:
        return None
    forms = SparkForms(uuid="binary", time="time" if support.time else "long")
    return spark_text(field.field_type, field.initial_default, forms)


def _scan(
    context: ScanContext,
    files: pl.DataFrame,
    schema: S.StructType,
    wanted: Wanted,
    stored_names: Sequence[str],
    *,
    found_by_name: Collection[int],
) -> NativeScan:
    """Scan files.

    Args:
        found_by_name: ids of columns that files have under the names that the scan gives them, so
            that Spark pushes conditions on them.
    """
    check_variants(context.spark, context.metadata.schema)
    parquet = read_parquet(
        context.spark,
        files.select(
            "ordinal",
            pl.col("file_path").alias("path"),
            pl.col("file_size_in_bytes").alias("size"),
        ),
        schema,
        io=context.io,
        table_location=context.metadata.location,
        rows=int(files["record_count"].sum()),
        numbered=wanted.position,
    )
    targets = [scan_type(field.field_type, context.support) for field in wanted.fields]
    guarded = {
        field.field_id
        for field in wanted.fields
        if field.field_id in found_by_name
        and field.field_id not in wanted.pushed
        and holds_floats(field.field_type)
    }
    columns = [
        _StoredColumn(
            name,
            wanted.names[field.field_id],
            schema[name].dataType,
            target,
            field.field_type if field.field_id in guarded else None,
        )
        for field, name, target in zip(wanted.fields, stored_names, targets, strict=True)
    ]
    return NativeScan(parquet, tuple(columns), wanted)


def _scan_field(field: I.NestedField, name: str, context: ScanContext) -> S.StructField:
    metadata: dict[str, Any] = {FIELD_ID_KEY: field.field_id}
    default = default_text(field, context.support)
    if default is not None:
        metadata |= {EXISTS_DEFAULT: default, CURRENT_DEFAULT: default}
    nullable = not field.required or default is not None
    return S.StructField(name, scan_type(field.field_type, context.support), nullable, metadata)


def _absent_name(field: I.NestedField) -> str:
    return f"absent (field {field.field_id})"


def _stored_type(target: S.DataType, field_type: I.IcebergType, column: FooterColumn) -> S.DataType:
    """The type to read by the file's names; positions match those of the target."""
    match target, field_type:
        case S.StructType(), I.StructType(fields=fields):
            by_id = {child.field_id: child for child in column.children}
            renamed: list[S.StructField] = []
            scanned = [field for field in fields if is_scanned(field.field_type)]
            for part, field in zip(target.fields, scanned, strict=True):
                child = by_id.get(field.field_id)
                if child is None:
                    renamed.append(
                        S.StructField(_absent_name(field), _without_ids(part.dataType), True)
                    )
                else:
                    inner = _stored_type(part.dataType, field.field_type, child)
                    renamed.append(S.StructField(child.name, inner, part.nullable))
            return S.StructType(renamed)
        case S.ArrayType(), I.ListType(element_type=element_type):
            element = _stored_type(target.elementType, element_type, column.children[0])
            return S.ArrayType(element, target.containsNull)
        case S.MapType(), I.MapType(key_type=key_type, value_type=value_type):
            return S.MapType(
                _stored_type(target.keyType, key_type, column.children[0]),
                _stored_type(target.valueType, value_type, column.children[1]),
                target.valueContainsNull,
            )
        case _:
            return target


def _with_own_names(data_type: S.DataType) -> S.DataType:
    """The same type under names that are not the result's.

    The cast to the result's names stays in the plan, and Spark does not look through it for the
    parts that a query takes.
    """
    return with_fields_made(
        data_type,
        lambda f, kind: S.StructField(f"{f.name} (scanned)", kind, f.nullable, f.metadata),
    )


def _without_ids(data_type: S.DataType) -> S.DataType:
    """The same type; with ids in it, Spark would look for ids in the files."""
    return with_fields_made(data_type, lambda f, kind: S.StructField(f.name, kind, f.nullable))
