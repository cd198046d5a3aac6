"""The columns that equality deletes compare, those that were dropped too (SPEC rule 232)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Final

import polars as pl

from frazil.errors import UnsupportedError
from frazil.format import types as I
from frazil.format.evolution.promotion import can_promote
from frazil.format.metadata import TableMetadata
from frazil.format.schema import Schema
from frazil.planning.deletes.index import EQUALITY_DELETES
from frazil.planning.scan_plan import ScanPlan
from frazil.spark.files.arrow.files import columns_of_file
from frazil.spark.files.layout.footers import FooterColumn
from frazil.spark.files.layout.stored_types import stored_type
from frazil.storage.files import FileIO
from frazil.storage.side_by_side import in_threads

_WITH_DEFAULTS: Final = 3
"""The first format version whose columns may have default values."""


def key_schema(metadata: TableMetadata, plan: ScanPlan, ids: frozenset[int], io: FileIO) -> Schema:
    """The plan's schema with those of the columns that its equality deletes compare and it lacks.

    They are as the newest schema has them that holds them. Where no schema of the table does any
    more, the delete files say the type. A field that was dropped from a struct is added to that
    struct.

    Raises:
        UnsupportedError: a key in a list or a map; or one of no schema, whose type or default value
            the files do not tell.
        MissingFileError, InvalidDataFileError: a file that had to be read cannot be.
    """
    schema = plan.schema
    newest_first = sorted(metadata.schemas, key=lambda s: s.schema_id, reverse=True)
    unknown: list[int] = []
    for field_id in sorted(ids):
        holders = (s for s in (schema, *newest_first) if field_id in s.field_ids)
        former = next(holders, None)
        if former is None:
            unknown.append(field_id)
            continue
        if former.is_inside_collection(field_id):
            raise _in_collection(former.find_column_name(field_id))
        place = [former.find_field(field_id)]
        while place[0].field_id in former.parent_ids:
            place.insert(0, former.find_field(former.parent_ids[place[0].field_id]))
        schema = Schema(_with_dropped(schema.fields, place), schema.schema_id)
    for field_id in unknown:
        has_it = pl.col("equality_ids").list.contains(field_id)
        compared = plan.deletes.filter((pl.col("content") == EQUALITY_DELETES) & has_it)
        place = _place_in_files(io, compared, field_id)
        if metadata.format_version >= _WITH_DEFAULTS:
            _refuse_unknown_default(io, plan, compared, field_id)
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


def _place_in_files(io: FileIO, deletes: pl.DataFrame, field_id: int) -> list[I.NestedField]:
    """A compared column as the delete files have it, behind the structs that it is in."""
    files = deletes.unique("file_path", keep="first", maintain_order=True)
    paths = files.select("file_path", "file_format").iter_rows()
    columns = in_threads(lambda file: columns_of_file(io, *file), paths, name="frazil-keys")
    found = [way for each in columns if (way := _place_of(field_id, each)) is not None]
    kinds = [stored_type(way[-1].kind) for way in found]
    known = [kind for kind in kinds if kind is not None]
    if not found or len(known) < len(kinds):
        stored = f"is stored as {found[0][-1].kind}" if found else "is not in its file"
        raise UnsupportedError(
            f"an equality delete in {files['file_path'][0]} compares the column of id {field_id}, "
            "which no schema of the table's metadata holds any more, and the column "
            f"{stored}: its type cannot be told and its deletes cannot be applied"
        )
    *around, last = found[0]
    if any(column.kind != "struct" for column in around):
        raise _in_collection(".".join(column.name for column in found[0]))
    kind = reduce(_wider, known)
    place = [I.NestedField(last.field_id or field_id, last.name, kind, required=False)]
    for column in reversed(around):
        struct = I.StructType((place[0],))
        place.insert(0, I.NestedField(column.field_id or 0, column.name, struct, required=False))
    return place


def _place_of(field_id: int, columns: Sequence[FooterColumn]) -> list[FooterColumn] | None:
    for column in columns:
        if column.field_id == field_id:
            return [column]
        below = _place_of(field_id, column.children)
        if below is not None:
            return [column, *below]
    return None


def _wider(left: I.IcebergType, right: I.IcebergType) -> I.IcebergType:
    return right if can_promote(left, right, _WITH_DEFAULTS) else left


def _refuse_unknown_default(
    io: FileIO, plan: ScanPlan, deletes: pl.DataFrame, field_id: int
) -> None:
    """Refuse data files that lack the column: the schema that is gone had its default value."""
    numbers = plan.delete_index.for_deletes(deletes["delete"]).ordinals()
    files = plan.files.filter(pl.col("ordinal").is_in(numbers.implode()))
    paths = list(files.select("file_path", "file_format").iter_rows())
    columns = in_threads(lambda file: columns_of_file(io, *file), paths, name="frazil-keys")
    for (path, _), each in zip(paths, columns, strict=True):
        if _place_of(field_id, each) is None:
            raise UnsupportedError(
                f"an equality delete compares the column of id {field_id}, which no schema of the "
                f"table's metadata holds any more, and the data file {path} lacks the column: what "
                "its rows have there by default cannot be told, and the deletes cannot be applied"
            )


def _in_collection(name: str | None) -> UnsupportedError:
    return UnsupportedError(
        f"an equality delete compares {name!r}, which is in a list or a map: a row has no one "
        "value of it"
    )
