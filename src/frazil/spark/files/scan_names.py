"""Column names under which a scan may push filters into the Parquet reader.

Spark finds a column by its field id, but matches a pushed filter with the file's columns by name.
Where a file has another column under that name (after a rename, or a drop and an add), row groups
are then skipped by the wrong column's statistics: wrong rows. Such a column is scanned under a
name that no file has, so that nothing is pushed for it. So is a column of floats, which Parquet's
filters compare otherwise than Spark does.

Where a query takes parts of a nested column, Spark reads those parts alone, and finds them by name:
it loses field ids when it cuts a schema down. That is right only for columns that every file has
under the scan's own names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from frazil.format.schema import Schema
from frazil.format.types import ListType, MapType, NestedField, StructType
from frazil.format.types.inside import fields_inside
from frazil.spark.files.floats import is_float
from frazil.spark.files.layout.footers import FooterColumn
from frazil.spark.session.free_names import free_name, is_reserved

ROW_INDEX_NAME: Final = "_tmp_metadata_row_index"
"""A name that Spark's Parquet reader reserves: it numbers the rows of a file under it."""


def names_of_schemas(schemas: Iterable[Schema]) -> dict[str, frozenset[int]]:
    """Every dotted name that fields of these schemas had, lower case, with the ids it stood for."""
    names: dict[str, set[int]] = {}
    for schema in schemas:
        for name, field_id in _struct_paths(schema.fields, ""):
            names.setdefault(name, set()).add(field_id)
    return {name: frozenset(ids) for name, ids in names.items()}


def scan_names(
    fields: Sequence[NestedField],
    file_names: Mapping[str, frozenset[int]] | None,
    *,
    pushed: Collection[int] = (),
) -> dict[int, str]:
    """The scan's name of each top-level field; none is one that a scan gives to columns of its own.

    Args:
        fields: the top-level columns to scan.
        file_names: dotted names, lower case, with the ids that they stand for in the files; None
            where that is not known, which makes every name unlike any other.
        pushed: ids of columns of floats that only predicates for Parquet's filters are about.
    """
    spellings: dict[str, int] = {}
    for field in fields:
        key = field.name.lower()
        spellings[key] = spellings.get(key, 0) + 1
    chosen: dict[int, str] = {}
    for field in fields:
        clear = (
            file_names is not None
            and (field.field_id in pushed or not is_float(field.field_type))
            and field.name.lower() != ROW_INDEX_NAME
            and not is_reserved(field.name)
            and spellings[field.name.lower()] == 1
            and all(
                file_names.get(name, frozenset()) <= {field_id}
                for name, field_id in _struct_paths((field,), "")
            )
        )
        if clear:
            chosen[field.field_id] = field.name
    taken = [*(field.name for field in fields), *(file_names or ())]
    for field in fields:
        if field.field_id not in chosen:
            name = free_name(f"{field.name} (field {field.field_id})", taken)
            taken.append(name)
            chosen[field.field_id] = name
    return chosen


def named_alike(fields: Sequence[NestedField], columns: Sequence[FooterColumn]) -> bool:
    """Whether a file's columns are found by the fields' names, at any depth, just as by their ids.

    A field that the file lacks must not be found under another's name either.
    """
    by_id = {column.field_id: column for column in columns}
    for field in fields:
        stored = by_id.get(field.field_id)
        of_name = sum(column.name.lower() == field.name.lower() for column in columns)
        if stored is None:
            if of_name:
                return False
        elif stored.name != field.name or of_name > 1 or not _parts_alike(field, stored):
            return False
    return True


def _parts_alike(field: NestedField, stored: FooterColumn) -> bool:
    match field.field_type:
        case StructType(fields=fields):
            return named_alike(fields, stored.children)
        case ListType() | MapType() as kind:
            # Spark finds elements, keys and values by their places.
            return len(stored.children) == len(kind.fields) and all(
                map(_parts_alike, kind.fields, stored.children)
            )
        case _:
            return True


def columns_of_schema(schema: Schema) -> tuple[FooterColumn, ...]:
    """The columns of files that are written with a schema."""
    return tuple(map(_column, schema.fields))


def _column(field: NestedField) -> FooterColumn:
    kind = field.field_type
    parts = tuple(map(_column, fields_inside(kind)))
    return FooterColumn(field.name, field.field_id, str(kind), parts)


def _struct_paths(fields: Iterable[NestedField], prefix: str) -> Iterable[tuple[str, int]]:
    # Filters are pushed for columns and fields of structs, not into lists and maps.
    for field in fields:
        name = prefix + field.name.lower()
        yield name, field.field_id
        if isinstance(field.field_type, StructType):
            yield from _struct_paths(field.field_type.fields, name + ".")
