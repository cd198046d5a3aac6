"""Equality deletes of a scan as bits and joins (SPEC rules 178, 229-234)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_
from typing import Any, Final

import numpy as np
import polars as pl
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from frazil.errors import InvalidDataFileError
from frazil.format import types as I
from frazil.format.schema import Schema
from frazil.format.types.forms import FORMS, form_of
from frazil.planning.deletes.index import GLOBAL_SCOPE
from frazil.spark.deletes.bitmap import Longs, Words
from frazil.spark.deletes.deletion_cache import DeletedWords, Known
from frazil.spark.deletes.joins import Deleted, Joined, bytes_of_values, deleted_values, join_of
from frazil.spark.deletes.ways import ChosenWay, Load, Way, cheapest
from frazil.spark.files.arrow.files import FilePart, TableColumns, read_batches
from frazil.spark.files.arrow_scan import scan_with_arrow
from frazil.spark.files.file_rows import FileValue, attach
from frazil.spark.files.layout.footers import file_facts
from frazil.spark.files.layout.layouts import layout_of
from frazil.spark.files.parquet.native import ScanContext, Wanted, scan_by_id
from frazil.spark.files.projection import with_fields
from frazil.spark.session import costs
from frazil.storage.files import FileIO
from frazil.storage.moved import store_key
from frazil.storage.side_by_side import READING_THREADS, in_threads

_CHECKED_FILES: Final = 256
_KEY: Final = "_frazil_deleted_key_"
_HASH: Final = "_frazil_deleted_hash"
_SEQUENCE: Final = "_frazil_delete_sequence"
_SCOPE: Final = "_frazil_delete_scope"
ROW_SEQUENCE: Final = "_frazil_sequence"
ROW_SCOPE: Final = "_frazil_scope"

BY_VALUE: Final = tuple(
    form.kind for form in FORMS if "bucket" in form.transforms and form.meaning != "time"
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
        if keys is not None and keys.way.can_bear(keys.load()):
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


def top_level_id(schema: Schema, field_id: int) -> int:
    """The id of the top-level column that a field is or lies in."""
    while field_id in schema.parent_ids:
        field_id = schema.parent_ids[field_id]
    return field_id


def deleted_by_keys(
    context: ScanContext,
    schema: Schema,
    group: EqualityDeletes,
    table: TableColumns,
    columns: Mapping[int, Column],
    known: Mapping[str, Column],
) -> Deleted:
    """What finds the rows that the group's deletes delete.

    Args:
        schema: holds every compared column.
        columns: of the rows: top-level ones by field id, in scan types.
        known: `ROW_SEQUENCE` and `ROW_SCOPE` of the rows, where the deletes need them.

    Raises:
        InvalidDataFileError: a delete file that lacks a compared column, if it is read here.
    """
    integers = group.integer_keys(context.io, schema)
    words = None if integers is None else integers.words(table)
    if integers is not None and words is not None:
        value = as_long(columns[integers.field.field_id], integers.field.field_type)
        return integers.way.apply(context.spark, words, value)
    keys = _read_keys(context, schema, group, table)
    conditions = _same_keys(schema, group, columns, keys)
    if group.needs_sequence:
        conditions.append(known[ROW_SEQUENCE] < keys[_SEQUENCE])
    if group.needs_scope:
        here = known[ROW_SCOPE] == keys[_SCOPE]
        anywhere = keys[_SCOPE] == GLOBAL_SCOPE
        has_global = (group.deletes["scope"] == GLOBAL_SCOPE).any()
        conditions.append(here | anywhere if has_global else here)
    return Joined(group.join.way.apply(keys), reduce(and_, conditions))


def _same_keys(
    schema: Schema, group: EqualityDeletes, columns: Mapping[int, Column], keys: DataFrame
) -> list[Column]:
    """The compared columns are equal; NULL equals NULL (rule 230).

    Spark joins fastest by one long: the hash of the columns, where they are not one integer. The
    columns themselves are then compared in a form that it does not take for more keys of the join.
    """
    nullable = group.may_hold_nulls
    left = [_leaf(columns, schema, field_id) for field_id in group.ids]
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


def is_integer(field_type: I.IcebergType) -> bool:
    """Whether values of the type are integers of which bitmaps can be made."""
    return form_of(field_type).meaning in ("integer", "date")


def as_long(value: Column, field_type: I.IcebergType) -> Column:
    """A column of such a type as the longs that bitmaps are made of."""
    return F.unix_date(value).cast("long") if isinstance(field_type, I.DateType) else value


@dataclass(frozen=True, slots=True)
class IntegerKeys:
    """The keys of equality delete files that compare one column; none of them is NULL.

    Where the column is like an integer and every delete is for every file, a row is deleted if the
    bit of its value is set: one value to look into in place of a million keys to join. The keys are
    read beside the session where there are few enough, and kept as `DeletedWords`.

    Attributes:
        deletes: of a plan's delete files.
        field: the compared top-level column.
    """

    io: FileIO
    deletes: pl.DataFrame
    field: I.NestedField

    @property
    def way(self) -> Way[Callable[[SparkSession, Words, Column], Deleted]]:
        """How rows are compared with them where the load is borne."""
        most = {"files": costs.KEY_FILES_HERE, "keys": costs.KEYS_HERE, "bytes": costs.SENT_BYTES}
        return Way("compared with bits of keys", deleted_values, most)

    def load(self) -> Load:
        """Return what is yet to be read, and the bytes of the bits where nothing is."""
        return _load_of(*self._known_keys())

    def words(self, table: TableColumns) -> Words | None:
        """Return the keys; None where too many are not known yet, or they take too much.

        Raises:
            InvalidDataFileError: a delete file lacks the column, or holds NULL.
            MissingFileError: a delete file is not there.
        """
        # One look: other threads may keep more meanwhile.
        known, left = self._known_keys()
        if not self.way.can_bear(_load_of(known, left)):
            return None
        if len(left):
            needed = I.NestedField(
                self.field.field_id, self.field.name, self.field.field_type, required=True
            )
            files = left.select("file_path", "file_format").iter_rows()
            found = in_threads(
                lambda part: _keys(self.io, part, needed, table),
                [FilePart(path=path, file_format=file_format) for path, file_format in files],
                threads=READING_THREADS,
                name="frazil-keys",
            )
            words = Words.union((known.words, Words.of_values(np.concatenate(found))))
            known = Known(frozenset(self.deletes["file_path"]), words)
            DeletedWords.of(self.io).keep(self._owner, known)
        return known.words if self.way.can_bear(_load_of(known, left.clear())) else None

    @property
    def _owner(self) -> Hashable:
        return ("keys", store_key(self.io), self.field.field_id, str(self.field.field_type))

    def _known_keys(self) -> tuple[Known, pl.DataFrame]:
        """What is known of the keys, and the files of which nothing is."""
        files = self.deletes.unique("file_path", maintain_order=True)
        wanted: frozenset[Hashable] = frozenset(files["file_path"])
        known = DeletedWords.of(self.io).known_words(self._owner, wanted)
        return known, files.filter(~pl.col("file_path").is_in(list(known.deletes)))


def _load_of(known: Known, left: pl.DataFrame) -> Load:
    size = 0 if len(left) else bytes_of_values(known.words)
    return {"files": len(left), "keys": int(left["record_count"].sum()), "bytes": size}


def _keys(io: FileIO, part: FilePart, field: I.NestedField, table: TableColumns) -> Longs:
    found = [np.empty(0, dtype=np.int64)]
    for _, _, (values,) in read_batches(io, part, (field,), table):
        if values.null_count:
            raise InvalidDataFileError(
                f"the equality delete file holds NULL in {field.name!r} (field {field.field_id}), "
                "of which its manifest entry counts none",
                file=part.path,
            )
        whole = values.cast(pa.int32()) if pa.types.is_date32(values.type) else values
        found.append(whole.cast(pa.int64()).to_numpy(zero_copy_only=False))
    return np.concatenate(found)
