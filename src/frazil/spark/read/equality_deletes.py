"""Equality deletes of a scan as anti-joins (SPEC rules 178, 229-234)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_
from typing import Final

import polars as pl
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from frazil.errors import UnsupportedError
from frazil.format import types as I
from frazil.format.schema import Schema
from frazil.spark.read.arrow_files import TableColumns
from frazil.spark.read.arrow_scan import scan_with_arrow
from frazil.spark.read.file_rows import FileValue, attach
from frazil.spark.read.footers import file_facts
from frazil.spark.read.inputs import GLOBAL_SCOPE, ReadInput
from frazil.spark.read.layouts import layout_of
from frazil.spark.read.native import ScanContext, Wanted, scan_by_id
from frazil.spark.read.projection import with_fields

BROADCAST_ROWS: Final = 1_000_000
"""Up to so many deleted keys are sent to every executor; more are shuffled with the rows."""

_CHECKED_FILES: Final = 256
_KEY: Final = "_frazil_deleted_key_"
_SEQUENCE: Final = "_frazil_delete_sequence"
_SCOPE: Final = "_frazil_delete_scope"
ROW_SEQUENCE: Final = "_frazil_sequence"
ROW_SCOPE: Final = "_frazil_scope"


def key_schema(plan: ReadInput, ids: frozenset[int]) -> Schema:
    """The read schema with the key columns that have been dropped since added to it (rule 232).

    A field that was dropped from a struct is added to that struct.

    Raises:
        UnsupportedError: a key that no schema of the table knows, or one in a list or a map.
    """
    schema = plan.schema
    newest_first = sorted(plan.metadata.schemas, key=lambda s: s.schema_id, reverse=True)
    for field_id in sorted(ids):
        holders = (s for s in (schema, *newest_first) if field_id in s.field_ids)
        former = next(holders, None)
        if former is None:
            raise UnsupportedError(
                f"an equality delete compares the column of id {field_id}, which no schema of the "
                "table's metadata holds any more: its deletes cannot be applied"
            )
        if former.is_inside_collection(field_id):
            raise UnsupportedError(
                f"an equality delete compares {former.find_column_name(field_id)!r}, which is in a "
                "list or a map: a row has no one value of it (rule 231)"
            )
        place = [former.find_field(field_id)]
        while place[0].field_id in former.parent_ids:
            place.insert(0, former.find_field(former.parent_ids[place[0].field_id]))
        schema = Schema(_with_dropped(schema.fields, place), schema.schema_id)
    return schema


def _with_dropped(
    fields: tuple[I.NestedField, ...], place: Sequence[I.NestedField]
) -> tuple[I.NestedField, ...]:
    """The fields with the last of `place`, which leads to it from its top-level column."""
    top, *below = place
    if all(field.field_id != top.field_id for field in fields):
        # The name may have been given to another column since; files without it have its default.
        name = f"{top.name} (dropped {top.field_id})"
        return (*fields, replace(top, name=name, required=False))
    return tuple(
        replace(field, field_type=I.StructType(_with_dropped(field.field_type.fields, below)))
        if field.field_id == top.field_id and below and isinstance(field.field_type, I.StructType)
        else field
        for field in fields
    )


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


def matching(
    columns: Mapping[int, Column],
    known: Mapping[str, Column],
    schema: Schema,
    group: EqualityDeletes,
    keys: DataFrame,
) -> Column:
    """The condition under which a row is deleted by one of the group's keys.

    Args:
        columns: the rows' top-level columns by field id, in scan types.
        known: `ROW_SEQUENCE` and `ROW_SCOPE` of the rows, where the group needs them.
        schema: holds every compared column.
        keys: of `deleted_keys`.
    """
    conditions = []
    for place, field_id in enumerate(group.ids):
        left = _leaf(columns, schema, field_id)
        # NULL in a compared column matches NULL (rule 230).
        conditions.append(left.eqNullSafe(keys[f"{_KEY}{place}"]))
    if group.needs_sequence:
        conditions.append(known[ROW_SEQUENCE] < keys[_SEQUENCE])
    if group.needs_scope:
        here = known[ROW_SCOPE] == keys[_SCOPE]
        anywhere = keys[_SCOPE] == GLOBAL_SCOPE
        has_global = (group.deletes["scope"] == GLOBAL_SCOPE).any()
        conditions.append(here | anywhere if has_global else here)
    return reduce(and_, conditions)


def deleted_keys(
    context: ScanContext, schema: Schema, group: EqualityDeletes, table: TableColumns
) -> DataFrame:
    """The deleted keys with their sequence numbers and scopes, hinted as to how to join them.

    Raises:
        InvalidDataFileError: a delete file that lacks a compared column.
    """
    keys = _read_keys(context, schema, group, table)
    small = int(group.deletes["record_count"].sum()) <= BROADCAST_ROWS
    return F.broadcast(keys) if small else keys.hint("merge")


def _read_keys(
    context: ScanContext, schema: Schema, group: EqualityDeletes, table: TableColumns
) -> DataFrame:
    fields = with_fields((), schema, set(group.ids)).fields
    fields = tuple(replace(field, required=False, initial_default=None) for field in fields)
    names = {field.field_id: f"c{field.field_id}" for field in fields}
    wanted = Wanted(fields=fields, names=names, ordinal=True)
    # Spark takes a path once: a file that is listed for several scopes is read once for all.
    place = pl.col("path").rank("dense").cast(pl.Int64) - 1
    listed = group.deletes.with_columns(place.alias("ordinal"))
    files = listed.unique("ordinal", keep="first", maintain_order=True)
    native = _native_files(context, files, fields, table)
    parts: list[DataFrame] = []
    if len(native):
        parts.append(scan_by_id(context, native, wanted))
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
    parquet = files.filter(pl.col("format") == "parquet")
    if len(parquet) > _CHECKED_FILES:
        return parquet
    facts = file_facts(context.io, parquet["path"].to_list())
    native = [
        facts[path].has_field_ids
        and layout_of(
            facts[path].columns,
            has_ids=True,
            fields=fields,
            mapping=table.mapping,
            table_fields=table.fields,
        ).is_complete_by_id
        for path in parquet["path"]
    ]
    return parquet.filter(pl.Series(native, dtype=pl.Boolean))


def _leaf(columns: Mapping[int, Column], schema: Schema, field_id: int) -> Column:
    path = schema.name_path(field_id)
    top_id = field_id
    while top_id in schema.parent_ids:
        top_id = schema.parent_ids[top_id]
    return reduce(Column.getField, path[1:], columns[top_id])
