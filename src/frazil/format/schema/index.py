"""Lookups into the fields of a schema: by id, by full and short name, parents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from frazil.errors import ValidationError
from frazil.format.types import IcebergType, ListType, MapType, NestedField, StructType


@dataclass(frozen=True)
class SchemaIndex:
    """The fields of a struct, nested ones after their parents.

    Attributes:
        fields: by id.
        paths: the names from the top down to the field, by id.
        short_paths: the same without ``element`` and ``value`` where these are structs.
        parents: the id of the field around each nested field.
        in_collections: the ids of elements, keys and values and of all below them.
    """

    fields: Mapping[int, NestedField]
    paths: Mapping[int, tuple[str, ...]]
    short_paths: Mapping[int, tuple[str, ...]]
    parents: Mapping[int, int]
    in_collections: frozenset[int]

    def id_of(self, name: str, *, case_sensitive: bool) -> int | None:
        """The id of a dotted name; full names go before short ones."""
        names, key = (
            (self._by_name, name) if case_sensitive else (self._by_lower_name, name.lower())
        )
        found = names.get(key, ())
        if len(found) > 1:
            full = ", ".join(f"{'.'.join(self.paths[i])} (id {i})" for i in found)
            raise ValidationError(f"the column name {name!r} is ambiguous: it may be {full}")
        return found[0] if found else None

    @cached_property
    def _by_name(self) -> dict[str, tuple[int, ...]]:
        return self._names(lower=False)

    @cached_property
    def _by_lower_name(self) -> dict[str, tuple[int, ...]]:
        return self._names(lower=True)

    def _names(self, *, lower: bool) -> dict[str, tuple[int, ...]]:
        names: dict[str, tuple[int, ...]] = {}
        for paths in (self.paths, self.short_paths):
            added: dict[str, tuple[int, ...]] = {}
            for field_id, path in paths.items():
                name = ".".join(path).lower() if lower else ".".join(path)
                if name not in names:
                    added[name] = (*added.get(name, ()), field_id)
            names.update(added)
        return names


def index_fields(struct: StructType) -> SchemaIndex:
    """Index all fields of a struct."""
    fields: dict[int, NestedField] = {}
    paths: dict[int, tuple[str, ...]] = {}
    short_paths: dict[int, tuple[str, ...]] = {}
    parents: dict[int, int] = {}
    in_collections: set[int] = set()

    def visit(
        owner: IcebergType,
        parent: int | None,
        path: tuple[str, ...],
        short_path: tuple[str, ...],
        in_collection: bool,
    ) -> None:
        if not isinstance(owner, StructType | ListType | MapType):
            return
        inside = in_collection or not isinstance(owner, StructType)
        for field in owner.fields:
            own_path = (*path, field.name)
            if field.field_id in fields:
                raise ValidationError(
                    f"the fields {'.'.join(paths[field.field_id])!r} and {'.'.join(own_path)!r} "
                    f"have the same id {field.field_id}"
                )
            fields[field.field_id] = field
            paths[field.field_id] = own_path
            short_paths[field.field_id] = (*short_path, field.name)
            if parent is not None:
                parents[field.field_id] = parent
            if inside:
                in_collections.add(field.field_id)
            skipped = (
                not isinstance(owner, StructType)
                and field.name != "key"
                and isinstance(field.field_type, StructType)
            )
            below = short_path if skipped else (*short_path, field.name)
            visit(field.field_type, field.field_id, own_path, below, inside)

    visit(struct, None, (), (), False)
    return SchemaIndex(fields, paths, short_paths, parents, frozenset(in_collections))
