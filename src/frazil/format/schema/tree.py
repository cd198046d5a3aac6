"""A schema taken apart, to be changed field by field and put together again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from frazil.errors import EvolutionError, NoSuchColumnError
from frazil.format.arguments import what_there_is
from frazil.format.schema import Schema
from frazil.format.types import IcebergType, ListType, MapType, NestedField, StructType
from frazil.format.types.inside import fields_inside


class SchemaTree:
    """The fields of a schema by id, with their order; names are found as before and after changes.

    A field's own ``field_type`` only tells its kind where it is nested: what is in it stands in the
    tree.
    """

    def __init__(self, base: Schema, *, case_sensitive: bool) -> None:
        self._case_sensitive = case_sensitive
        self._fields: dict[int, NestedField] = {}
        self._parents: dict[int, int | None] = {}
        self._children: dict[int | None, list[int]] = {None: []}
        self._first_paths: dict[int, tuple[str, ...]] = {}
        self._first_names: _Names = ({}, {})
        self._names_now: _Names | None = None
        for field in base.fields:
            self.insert(None, field)

    def __contains__(self, field_id: int) -> bool:
        return field_id in self._fields

    def field(self, field_id: int) -> NestedField:
        """The field, whose type is only its kind where it is nested."""
        return self._fields[field_id]

    def type_of(self, field_id: int) -> IcebergType:
        """The type of a field as it is now."""
        field_type = self._fields[field_id].field_type
        inside = self._children.get(field_id, [])
        if isinstance(field_type, StructType):
            return StructType(tuple(self._build_fields(inside)))
        if isinstance(field_type, ListType):
            element = next(self._build_fields(inside))
            return ListType(element.field_id, element.field_type, element.required)
        if isinstance(field_type, MapType):
            key, value = self._build_fields(inside)
            return MapType(
                key.field_id, key.field_type, value.field_id, value.field_type, value.required
            )
        return field_type

    def fields(self) -> tuple[NestedField, ...]:
        """The top-level columns as they are now."""
        return tuple(self._build_fields(self._children[None]))

    def _build_fields(self, field_ids: Iterable[int]) -> Iterator[NestedField]:
        for field_id in field_ids:
            yield replace(self._fields[field_id], field_type=self.type_of(field_id))

    def insert(self, parent: int | None, field: NestedField) -> set[int]:
        """Put a field behind the others of its parent; gives its id and those of all below it."""
        self._children.setdefault(parent, []).append(field.field_id)
        inside = self._put(parent, field)
        for field_id in sorted(inside):
            self._first_paths[field_id] = self.path_of(field_id)
            self._add_names(self._first_names, field_id)
        return inside

    def _put(self, parent: int | None, field: NestedField) -> set[int]:
        self._names_now = None
        self._fields[field.field_id] = field
        self._parents[field.field_id] = parent
        inside = {field.field_id}
        if field.field_type.is_nested:
            self._children[field.field_id] = [
                child.field_id for child in fields_inside(field.field_type)
            ]
            for child in fields_inside(field.field_type):
                inside |= self._put(field.field_id, child)
        return inside

    def remove(self, field_id: int) -> None:
        """Take a field and all below it out."""
        self._names_now = None
        self._children[self._parents[field_id]].remove(field_id)
        for inside in self.with_descendants(field_id):
            del self._fields[inside]
            del self._parents[inside]
            self._children.pop(inside, None)

    def update(self, field_id: int, **changes: Any) -> bool:
        """Change attributes of a field; gives whether anything is different."""
        changed = replace(self._fields[field_id], **changes)
        differs = changed != self._fields[field_id]
        self._fields[field_id] = changed
        if "name" in changes:
            self._names_now = None
        return differs

    def replace_type(self, field_id: int, field_type: IcebergType, **changes: Any) -> None:
        """Give a primitive field another type, which may be nested."""
        field = replace(self._fields[field_id], field_type=field_type, **changes)
        self._put(self._parents[field_id], field)

    def parent_of(self, field_id: int) -> int | None:
        """The id of the field around a field; None at the top."""
        return self._parents[field_id]

    def siblings_of(self, field_id: int) -> list[int]:
        """The ids of the fields beside a field and itself, in order: the list itself, to change."""
        return self._children[self._parents[field_id]]

    def with_descendants(self, field_id: int) -> set[int]:
        """The id of a field and of all below it."""
        found: set[int] = set()
        stack = [field_id]
        while stack:
            current = stack.pop()
            found.add(current)
            stack.extend(self._children.get(current, ()))
        return found

    def child_named(self, parent: int | None, name: str) -> int | None:
        """The id of the direct field of that name."""
        children = self._children.get(parent, ())
        wanted = self._key(name)
        return next((i for i in children if self._key(self._fields[i].name) == wanted), None)

    def collection_of(self, field_id: int) -> str | None:
        """``list 'a'`` or ``map 'a'`` where the field is an element, key or value; else None."""
        parent = self._parents[field_id]
        if parent is None:
            return None
        kind = self._fields[parent].field_type
        if isinstance(kind, ListType):
            return f"list {self.name_of(parent)!r}"
        return f"map {self.name_of(parent)!r}" if isinstance(kind, MapType) else None

    def is_in_map_key(self, field_id: int) -> bool:
        """True for a map's key and everything below one."""
        current: int | None = field_id
        while current is not None:
            parent = self._parents[current]
            if (
                parent is not None
                and isinstance(self._fields[parent].field_type, MapType)
                and self._children[parent][0] == current
            ):
                return True
            current = parent
        return False

    def struct_in(self, field_id: int) -> int | None:
        """The struct itself, or the one that a list or map has as element or value."""
        kind = self._fields[field_id].field_type
        if isinstance(kind, ListType | MapType):
            field_id = self._children[field_id][-1]
            kind = self._fields[field_id].field_type
        return field_id if isinstance(kind, StructType) else None

    def path_of(self, field_id: int) -> tuple[str, ...]:
        """The names from the top down to a field, as they are now."""
        path: list[str] = []
        current: int | None = field_id
        while current is not None:
            path.append(self._fields[current].name)
            current = self._parents[current]
        return tuple(reversed(path))

    def name_of(self, field_id: int) -> str:
        """The dotted name of a field, as it is now."""
        return ".".join(self.path_of(field_id))

    def child_name(self, parent: int | None, name: str) -> str:
        """The dotted name of a field that is to come below a parent."""
        return name if parent is None else f"{self.name_of(parent)}.{name}"

    def find(self, name: str | Sequence[str], action: str) -> int:
        """The id of a column by its first name, or by the one that it has now."""
        text = name if isinstance(name, str) else ".".join(name)
        first = _lookup(self._first_names, self._keys_of(name))
        alive = [field_id for field_id in first if field_id in self._fields]
        unchanged = [i for i in alive if self.path_of(i) == self._first_paths[i]]
        found = unchanged or self._ids_now(name) or alive
        if len(found) == 1:
            return found[0]
        if found:
            listed = ", ".join(f"{self.name_of(i)!r} (id {i})" for i in found)
            raise EvolutionError(f"cannot {action} column {text!r}: it may be {listed}")
        if first:
            raise EvolutionError(f"cannot {action} column {text!r}: the same evolution deletes it")
        known = what_there_is(
            text,
            (field.name for field in self.fields()),
            names=(self.name_of(field_id) for field_id in self._fields),
        )
        raise NoSuchColumnError(f"cannot {action} column {text!r}: there is no such column{known}")

    def _key(self, name: str) -> str:
        return name if self._case_sensitive else name.lower()

    def _ids_now(self, name: str | Sequence[str]) -> Sequence[int]:
        if self._names_now is None:
            self._names_now = ({}, {})
            for field_id in self._fields:
                self._add_names(self._names_now, field_id)
        return _lookup(self._names_now, self._keys_of(name))

    def _keys_of(self, name: str | Sequence[str]) -> str | tuple[str, ...]:
        if isinstance(name, str):
            return self._key(name)
        return tuple(self._key(part) for part in name)

    def _add_names(self, names: _Names, field_id: int) -> None:
        paths = _paths(field_id, self._fields, self._parents)
        for index, path in zip(names, paths, strict=True):
            keys = tuple(self._key(part) for part in path)
            index.setdefault(keys, []).append(field_id)
            index.setdefault(".".join(keys), []).append(field_id)


_Names = tuple[dict[str | tuple[str, ...], list[int]], dict[str | tuple[str, ...], list[int]]]


def _lookup(names: _Names, key: str | tuple[str, ...]) -> Sequence[int]:
    full, short = names
    return full.get(key, ()) or short.get(key, ())


def _paths(
    field_id: int, fields: Mapping[int, NestedField], parents: Mapping[int, int | None]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The full path of a field, and the one without elements and values that are structs."""
    full: list[str] = []
    short: list[str] = []
    current: int | None = field_id
    while current is not None:
        field, parent = fields[current], parents.get(current)
        full.append(field.name)
        in_collection = parent is not None and not isinstance(fields[parent].field_type, StructType)
        skipped = (
            current != field_id
            and in_collection
            and field.name != "key"
            and isinstance(field.field_type, StructType)
        )
        if not skipped:
            short.append(field.name)
        current = parent
    return tuple(reversed(full)), tuple(reversed(short))
