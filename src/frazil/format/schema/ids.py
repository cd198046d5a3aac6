"""Fresh field ids for schemas and types (SPEC rules 48, 51)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count

from frazil.format.schema import Schema
from frazil.format.types import IcebergType, ListType, MapType, NestedField, StructType

MayBecome = Callable[[NestedField, IcebergType], bool]


def assign_fresh_ids(
    schema: Schema,
    *,
    after: int = 0,
    base: Schema | None = None,
    may_become: MayBecome | None = None,
) -> Schema:
    """Return the schema with ids counted on from ``after``, in Java's order.

    The fields of one struct are numbered first, then what is below each of them in turn.
    `base`: where this has a field of the same full name, its id is taken, as when a table is
    replaced; below a field with a new id every id is new. `may_become`: whether a field of the base
    may get another primitive type under its id; no unless given.
    Returns the schema under the same schema id; identifier fields follow their columns. The last id
    in use is ``max(after, result.highest_field_id)``.
    """
    numbering = _Numbering(count(after + 1), base, may_become)
    fields = numbering.struct(StructType(schema.fields), ()).fields
    fresh = Schema(fields, schema.schema_id)
    identifiers = (fresh.find_field(name) for name in schema.identifier_field_names())
    return replace(fresh, identifier_field_ids=tuple(field.field_id for field in identifiers))


def assign_fresh_type_ids(field_type: IcebergType, *, after: int) -> IcebergType:
    """The type with the ids of its nested fields counted on from ``after``, in Java's order."""
    return _Numbering(count(after + 1), None, None).of_type(field_type, ())


class _Numbering:
    def __init__(
        self, ids: Iterator[int], base: Schema | None, may_become: MayBecome | None
    ) -> None:
        self._ids = ids
        self._base = base
        self._may_become = may_become
        self._new: set[tuple[str, ...]] = set()

    def struct(self, struct: StructType, path: tuple[str, ...]) -> StructType:
        ids = [self._next_id((*path, field.name), field.field_type) for field in struct.fields]
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
                element_id=self._next_id(element_path, field_type.element_type),
                element_type=self.of_type(field_type.element_type, element_path),
            )
        if isinstance(field_type, MapType):
            key_path, value_path = (*path, "key"), (*path, "value")
            key_id = self._next_id(key_path, field_type.key_type)
            value_id = self._next_id(value_path, field_type.value_type)
            return replace(
                field_type,
                key_id=key_id,
                value_id=value_id,
                key_type=self.of_type(field_type.key_type, key_path),
                value_type=self.of_type(field_type.value_type, value_path),
            )
        return field_type

    def _next_id(self, path: tuple[str, ...], field_type: IcebergType) -> int:
        held: NestedField | None = None
        if self._base is not None and path[:-1] not in self._new:
            held = self._base.field_or_none(".".join(path))
        if held is None or not self._fits(held, field_type):
            self._new.add(path)
            return next(self._ids)
        return held.field_id

    def _fits(self, held: NestedField, field_type: IcebergType) -> bool:
        if not (held.field_type.is_primitive and field_type.is_primitive):
            return type(held.field_type) is type(field_type)
        if held.field_type == field_type:
            return True
        return self._may_become is not None and self._may_become(held, field_type)
