"""Equality deletes of a scan as bits and joins (SPEC rules 178, 229-234)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_
from typing import Any, Final

import polars as pl
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from frazil.format import types as I
from frazil.format.schema import Schema
from frazil.planning.deletes.index import GLOBAL_SCOPE
from frazil.spark.deletes.integer_keys import IntegerKeys, as_long, is_integer
from frazil.spark.deletes.joins import Deleted, Joined, join_of
from frazil.spark.deletes.ways import ChosenWay, cheapest
from frazil.spark.files.arrow.files import TableColumns
from frazil.spark.files.arrow_scan import scan_with_arrow
from frazil.spark.files.file_rows import FileValue, attach
from frazil.spark.files.layout.footers import file_facts
from frazil.spark.files.layout.layouts import layout_of
from frazil.spark.files.parquet.native import ScanContext, Wanted, scan_by_id
from frazil.spark.files.projection import with_fields
from frazil.spark.session import costs
from frazil.storage.files import FileIO

_CHECKED_FILES: Final = 256
_KEY: Final = "_frazil_deleted_key_"
_HASH: Final = "_frazil_deleted_hash"
_SEQUENCE: Final = "_frazil_delete_sequence"
_SCOPE: Final = "_frazil_delete_scope"
ROW_SEQUENCE: Final = "_frazil_sequence"
ROW_SCOPE: Final = "_frazil_scope"

BY_VALUE: Final = (
    I.IntegerType,
    I.LongType,
    I.DateType,
    I.TimestampType,
    I.TimestamptzType,
    I.TimestampNanoType,
    I.TimestamptzNanoType,
    I.DecimalType,
    I.StringType,
    I.UUIDType,
    I.FixedType,
    I.BinaryType,
)
"""Types that Spark hashes by value and orders; of floats -0.0 and NaN are left to its joins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EqualityDeletes:
    """The equality deletes of one list of ids that apply to some data files.

    Attributes:
        ids: the compared columns.
        deletes: rows of the plan's delete files.
        needs_sequence: whether a delete is older than a data file: numbers have to be compared.
        needs_scope: whether a delete is of another partition than a data file.
    """

    ids: tuple[int, ...]
    deletes: pl.DataFrame
    needs_sequence: bool
    needs_scope: bool

    @property
    def may_hold_nulls(self) -> bool:
        """Whether a compared value may be NULL."""
        return bool(self.deletes["may_hold_null_keys"].any())

    @property
    def join(self) -> ChosenWay[Callable[[DataFrame], DataFrame]]:
        """How the deleted keys are joined with rows."""
        keys, size = (int(self.deletes[n].sum()) for n in ("record_count", "file_size_in_bytes"))
        return join_of({"keys": keys, "bytes": size}, keys=costs.SENT_KEYS)

    def choice(self, io: FileIO, schema: Schema) -> ChosenWay[Any]:
        """Return which way rows are compared with the keys, without a look at them."""
        keys = self.integer_keys(io, schema)
        if keys is not None and keys.way.bears(keys.load()):
            return cheapest([keys.way], keys.load())
        return self.join

    def integer_keys(self, io: FileIO, schema: Schema) -> IntegerKeys | None:
        """The keys where the bits of one column's values say all that there is to say."""
        if len(self.ids) > 1 or self.ids[0] in schema.parent_ids:
            return None
        if self.may_hold_nulls or self.needs_sequence or self.needs_scope:
            return None
        field = schema.find_field(self.ids[0])
        return IntegerKeys(io, self.deletes, field) if is_integer(field.field_type) else None


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of some data files, as deletes see them.

    Attributes:
        columns: top-level columns by field id, in scan types.
        known: `ROW_SEQUENCE` and `ROW_SCOPE`, where the deletes need them.
    """

    columns: Mapping[int, Column]
    known: Mapping[str, Column]


def top_level_id(schema: Schema, field_id: int) -> int:
    """The id of the top-level column that a field is or lies in."""
    while field_id in schema.parent_ids:
        field_id = schema.parent_ids[field_id]
    return field_id


def deleted_by_keys(
    context: ScanContext, schema: Schema, group: EqualityDeletes, table: TableColumns, rows: Rows
) -> Deleted:
    """What finds the rows that the group's deletes delete.

    Args:
        schema: holds every compared column.

    Raises:
        InvalidDataFileError: a delete file that lacks a compared column, if it is read here.
    """
    integers = group.integer_keys(context.io, schema)
    words = None if integers is None else integers.words(table)
    if integers is not None and words is not None:
        value = as_long(rows.columns[integers.field.field_id], integers.field.field_type)
        return integers.way.apply(context.spark, words, value)
    keys = _read_keys(context, schema, group, table)
    conditions = _same_keys(schema, group, rows, keys)
    if group.needs_sequence:
        conditions.append(rows.known[ROW_SEQUENCE] < keys[_SEQUENCE])
    if group.needs_scope:
        here = rows.known[ROW_SCOPE] == keys[_SCOPE]
        anywhere = keys[_SCOPE] == GLOBAL_SCOPE
        has_global = (group.deletes["scope"] == GLOBAL_SCOPE).any()
        conditions.append(here | anywhere if has_global else here)
    return Joined(group.join.way.apply(keys), reduce(and_, conditions))


def _same_keys(schema: Schema, group: EqualityDeletes, rows: Rows, keys: DataFrame) -> list[Column]:
    """The compared columns are equal; NULL equals NULL (rule 230).

    Spark joins fastest by one long: the hash of the columns, where they are not one integer. The
    columns themselves are then compared in a form that it does not take for more keys of the join.
    """
    nullable = group.may_hold_nulls
    left = [_leaf(rows.columns, schema, field_id) for field_id in group.ids]
    right = [keys[f"{_KEY}{place}"] for place in range(len(group.ids))]
    if not _is_hashed(schema, group):
        return [a.eqNullSafe(b) if nullable else a == b for a, b in zip(left, right, strict=True)]
    conditions = [F.xxhash64(*left) == keys[_HASH]]
    for a, b in zip(left, right, strict=True):
        same = (a >= b) & (a <= b)
        conditions.append(same | (a.isNull() & b.isNull()) if nullable else same)
    return conditions


def _is_hashed(schema: Schema, group: EqualityDeletes) -> bool:
    kinds = [schema.find_field(field_id).field_type for field_id in group.ids]
    if len(kinds) == 1 and is_integer(kinds[0]) and not group.may_hold_nulls:
        return False
    return all(isinstance(kind, BY_VALUE) for kind in kinds)


def _read_keys(
    context: ScanContext, schema: Schema, group: EqualityDeletes, table: TableColumns
) -> DataFrame:
    fields = with_fields((), schema, set(group.ids)).fields
    fields = tuple(replace(field, required=False, initial_default=None) for field in fields)
    # No file has such a name, which a condition that Spark pushes could meet.
    names = {field.field_id: f"_frazil_key_{field.field_id}" for field in fields}
    wanted = Wanted(fields=fields, names=names, ordinal=True)
    # Spark takes a path once: a file that is listed for several scopes is read once for all.
    place = pl.col("file_path").rank("dense").cast(pl.Int64) - 1
    listed = group.deletes.with_columns(place.alias("ordinal"))
    files = listed.unique("ordinal", keep="first", maintain_order=True)
    native = _native_files(context, files, fields, table)
    parts: list[DataFrame] = []
    if len(native):
        parts.append(scan_by_id(context, native, wanted).frame())
    others = files.join(native.select("ordinal"), on="ordinal", how="anti")
    if len(others):
        # A file that lacks a compared column is refused: it would read as deletes of NULL.
        needed = replace(wanted, fields=tuple(replace(field, required=True) for field in fields))
        parts.append(scan_with_arrow(context, others, needed, table))
    rows = reduce(DataFrame.unionByName, parts)
    columns = {field_id: F.col(name) for field_id, name in names.items()}
    keys = [
        _leaf(columns, schema, field_id).alias(f"{_KEY}{place}")
        for place, field_id in enumerate(group.ids)
    ]
    if _is_hashed(schema, group):
        compared = [_leaf(columns, schema, field_id) for field_id in group.ids]
        keys.append(F.xxhash64(*compared).alias(_HASH))
    if not (group.needs_sequence or group.needs_scope):
        return rows.select(*keys)
    attached, known = attach(
        context.spark,
        rows,
        listed["ordinal"],
        [
            FileValue.of_longs(_SEQUENCE, listed["sequence_number"]),
            FileValue.of_longs(_SCOPE, listed["scope"]),
        ],
    )
    return attached.select(*keys, known[_SEQUENCE].alias(_SEQUENCE), known[_SCOPE].alias(_SCOPE))


def _native_files(
    context: ScanContext,
    files: pl.DataFrame,
    fields: Sequence[I.NestedField],
    table: TableColumns,
) -> pl.DataFrame:
    parquet = files.filter(pl.col("file_format") == "parquet")
    if len(parquet) > _CHECKED_FILES:
        return parquet
    facts = file_facts(context.io, parquet["file_path"].to_list())
    native = [
        facts[path].has_field_ids
        and layout_of(
            facts[path].columns,
            has_ids=True,
            fields=fields,
            mapping=table.mapping,
            table_fields=table.fields,
        ).is_complete_by_id
        for path in parquet["file_path"]
    ]
    return parquet.filter(pl.Series(native, dtype=pl.Boolean))


def _leaf(columns: Mapping[int, Column], schema: Schema, field_id: int) -> Column:
    path = schema.name_path(field_id)
    return reduce(Column.getField, path[1:], columns[top_level_id(schema, field_id)])
