"""Fresh field ids for schemas and types (SPEC rules 48, 51)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

from frazil.format.schema import Schema
from frazil.format.types import IcebergType, ListType, MapType, NestedField, StructType


def assign_fresh_ids(schema: Schema, *, after: int = 0, base: Schema | None = None) -> Schema:
    """The schema with ids counted on from ``after``, in Java's order.

    The fields of one struct are numbered first, then what is below each of them in turn. Where
    ``base`` has a field of the same full name, its id is taken, as when a table is replaced.

    Returns:
        The schema under the same schema id; identifier fields follow their columns. The last id in
        use is ``max(after, result.highest_field_id)``.
    """
    numbering = _Numbering(count(after + 1), base)
    fields = numbering.struct(StructType(schema.fields), ()).fields
    fresh = Schema(fields, schema.schema_id)
    identifiers = (fresh.find_field(name) for name in schema.identifier_field_names())
    return replace(fresh, identifier_field_ids=tuple(field.field_id for field in identifiers))


def assign_fresh_type_ids(field_type: IcebergType, *, after: int) -> IcebergType:
    """The type with the ids of its nested fields counted on from ``after``, in Java's order."""
    return _Numbering(count(after + 1), None).of_type(field_type, ())


class _Numbering:
    def __init__(self, ids: Iterator[int], base: Schema | None) -> None:
        self._ids = ids
        self._base = base

    def struct(self, struct: StructType, path: tuple[str, ...]) -> StructType:
        ids = [self._next_id((*path, field.name)) for field in struct.fields]
        return StructType(
            tuple(
                replace(
                    field,
                    field_id=field_id,
                    field_type=self.of_type(field.field_type, (*path, field.name)),
                )
                for field, field_id in zip(struct.fields, ids, strict=True)
            )
        )

    def of_type(self, field_type: IcebergType, path: tuple[str, ...]) -> IcebergType:
        if isinstance(field_type, StructType):
            return self.struct(field_type, path)
        if isinstance(field_type, ListType):
            element_path = (*path, "element")
            return replace(
                field_type,
                element_id=self._next_id(element_path),
                element_type=self.of_type(field_type.element_type, element_path),
            )
        if isinstance(field_type, MapType):
            key_path, value_path = (*path, "key"), (*path, "value")
            key_id, value_id = self._next_id(key_path), self._next_id(value_path)
            return replace(
                field_type,
                key_id=key_id,
                value_id=value_id,
                key_type=self.of_type(field_type.key_type, key_path),
                value_type=self.of_type(field_type.value_type, value_path),
            )
        return field_type

    def _next_id(self, path: tuple[str, ...]) -> int:
        held: NestedField | None = None
        if self._base is not None:
            held = self._base.field_or_none(".".join(path))
        return next(self._ids) if held is None else held.field_id
