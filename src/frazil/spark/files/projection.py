"""Which columns a scan yields, by what names and in which order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from frazil.errors import ValidationError
from frazil.format.schema import Schema
from frazil.format.types import (
    BooleanType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
)
from frazil.format.types.inside import fields_inside
from frazil.spark.session.free_names import free_name

FILE: Final = "_file"
POS: Final = "_pos"
DELETED: Final = "_deleted"
SPEC_ID: Final = "_spec_id"
PARTITION: Final = "_partition"
ROW_ID: Final = "_row_id"
LAST_UPDATED: Final = "_last_updated_sequence_number"

ROW_ID_FIELD: Final = NestedField(2147483540, ROW_ID, LongType())
LAST_UPDATED_FIELD: Final = NestedField(2147483539, LAST_UPDATED, LongType())

METADATA_COLUMNS: Final[tuple[NestedField, ...]] = (
    NestedField(2147483646, FILE, StringType(), required=True),
    NestedField(2147483645, POS, LongType(), required=True),
    NestedField(2147483644, DELETED, BooleanType(), required=True),
    NestedField(2147483643, SPEC_ID, IntegerType(), required=True),
    NestedField(2147483642, PARTITION, StructType(())),
    ROW_ID_FIELD,
    LAST_UPDATED_FIELD,
)
"""The reserved columns that a scan can yield (rule 67); ``_partition`` gets the table's type."""

FILE_ORDINAL_FIELD: Final = NestedField(2147483450, "_frazil_ordinal", LongType(), required=True)
"""The ordinal of a row's file in the plan, for reads that know more of files; no user sees it."""

_METADATA_BY_NAME: Final = {field.name: field for field in METADATA_COLUMNS}


@dataclass(frozen=True, slots=True)
class Projection:
    """The columns of a scan's result in order.

    Attributes:
        fields: table columns (cut down to the requested nested fields) and metadata columns.
    """

    fields: tuple[NestedField, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The result's column names."""
        return tuple(field.name for field in self.fields)

    @property
    def metadata_names(self) -> frozenset[str]:
        """The names of the requested metadata columns."""
        return frozenset(field.name for field in self.fields if is_metadata_column(field))


def is_metadata_column(field: NestedField) -> bool:
    """Whether a field is one of the reserved columns, told by its id."""
    if field == FILE_ORDINAL_FIELD:
        return True
    known = _METADATA_BY_NAME.get(field.name)
    return known is not None and known.field_id == field.field_id


def project(
    schema: Schema, columns: Sequence[str] | None, *, case_sensitive: bool = True
) -> Projection:
    """The projection of these columns, in the order given; all of the schema's without a list.

    ``"s.x"`` takes one field of a struct; several of one struct come as one column at the place of
    the first. Metadata columns (``_file``, ``_pos``, …) are taken by name unless the table has a
    column of that name.

    Raises:
        ValidationError: a column that is not there, or one listed twice.
    """
    if columns is None:
        return Projection(schema.fields)
    wanted: dict[int, set[int]] = {}
    order: list[NestedField] = []
    seen: set[int] = set()
    for name in columns:
        field = _find(schema, name, case_sensitive=case_sensitive)
        if field.field_id in seen:
            raise ValidationError(f"the column {name!r} is listed twice")
        seen.add(field.field_id)
        top = field if is_metadata_column(field) else _top_level(schema, field)
        if top.field_id not in wanted:
            wanted[top.field_id] = set()
            order.append(top)
        wanted[top.field_id].add(field.field_id)
    return Projection(tuple(_pruned_field(field, wanted[field.field_id]) for field in order))


def projection_beside(
    added: Sequence[NestedField], schema: Schema, fields: Sequence[NestedField] | None = None
) -> Projection:
    """Columns of a table and then reserved ones, each under a name of its own.

    A column of the table that is called as a reserved one has another name in the result.

    Args:
        added: reserved columns.
        fields: top-level columns of the schema; all of them unless given.
    """
    names = [field.name for field in added]
    taken = [*names, *(field.name for field in schema.fields)]
    renamed: list[NestedField] = []
    for field in schema.fields if fields is None else fields:
        name = field.name
        if free_name(name, names) != name:
            name = free_name(name, taken)
            taken.append(name)
        renamed.append(replace(field, name=name))
    return Projection((*renamed, *added))


def with_fields(fields: Sequence[NestedField], schema: Schema, ids: set[int]) -> Projection:
    """The fields, widened and extended so that every id (nested ones included) is in them."""
    have = {f.field_id: set(leaf_ids(f.field_type)) or {f.field_id} for f in fields}
    merged = list(fields)
    for field_id in sorted(ids):
        field = schema.find_field(field_id)
        top = _top_level(schema, field)
        if top.field_id not in have:
            have[top.field_id] = set()
            merged.append(top)
        have[top.field_id].add(field_id)
    return Projection(
        tuple(
            field
            if is_metadata_column(field)
            else _pruned_field(schema.find_field(field.field_id), have[field.field_id])
            for field in merged
        )
    )


def leaf_ids(field_type: IcebergType) -> frozenset[int]:
    """The ids of the fields below a type that have no fields of their own."""
    ids: set[int] = set()
    for child in fields_inside(field_type):
        ids |= leaf_ids(child.field_type) or {child.field_id}
    return frozenset(ids)


def _pruned_field(field: NestedField, chosen: set[int]) -> NestedField:
    if field.field_id in chosen or not field.field_type.is_nested:
        return field
    cut = Schema((field,)).select(sorted(chosen)).fields[0]
    return replace(field, field_type=cut.field_type)


def _find(schema: Schema, name: str, *, case_sensitive: bool) -> NestedField:
    field = schema.field_or_none(name, case_sensitive=case_sensitive)
    if field is not None:
        return field
    if name in _METADATA_BY_NAME:
        return _METADATA_BY_NAME[name]
    raise ValidationError(schema.missing(name))


def _top_level(schema: Schema, field: NestedField) -> NestedField:
    field_id = field.field_id
    while field_id in schema.parent_ids:
        field_id = schema.parent_ids[field_id]
    return schema.find_field(field_id)
