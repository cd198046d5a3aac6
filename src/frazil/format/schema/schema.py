"""Schemas: columns with an id, identifier fields, lookups by name and id (rules 14-42, 64-67)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from frazil.errors import InvalidMetadataError, ValidationError
from frazil.format.arguments import what_there_is
from frazil.format.schema.types_json import field_to_json, parse_type
from frazil.format.types import (
    DoubleType,
    FloatType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    PrimitiveType,
    StructType,
    UnknownType,
)
from frazil.format.types.forms import FORMS
from frazil.format.types.inside import fields_inside


@dataclass(frozen=True)
class Schema:
    """The columns of a table.

    Attributes:
        fields: the top-level columns, in order.
        schema_id: unique in the table's metadata (rule 43).
        identifier_field_ids: the ids of the columns that name a row (rule 64).

    Raises:
        ValidationError: on two fields of one id (rule 14) or of one name in a struct, and on
            identifier fields that rule 65 does not allow.
    """

    fields: tuple[NestedField, ...] = ()
    schema_id: int = 0
    identifier_field_ids: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", tuple(self.fields))
        object.__setattr__(self, "identifier_field_ids", tuple(self.identifier_field_ids))
        check_identifier_fields(self._index, self.identifier_field_ids)

    @cached_property
    def _struct(self) -> StructType:
        return StructType(self.fields)

    @cached_property
    def _index(self) -> SchemaIndex:
        return index_fields(self._struct)

    def as_struct(self) -> StructType:
        """Return the columns as a struct."""
        return self._struct

    def find_field(self, name_or_id: str | int, *, case_sensitive: bool = True) -> NestedField:
        """Return the field of an id, or of a dotted name such as ``point.x``.

        List elements and map values are ``element`` and ``value``; where they are structs, that
        part may be left out: ``points.x`` finds ``points.element.x``.

        Raises:
            ValidationError: where there is none, or several in that spelling.
        """
        found = self.field_or_none(name_or_id, case_sensitive=case_sensitive)
        if found is None:
            raise ValidationError(
                self.missing(name_or_id)
                if isinstance(name_or_id, str)
                else f"there is no column of id {name_or_id}"
            )
        return found

    def missing(self, name: str) -> str:
        """Return the message about a column that is not there: what there is, what is near."""
        known = what_there_is(
            name,
            (field.name for field in self.fields),
            names=(".".join(path) for path in self._index.paths.values()),
        )
        return f"there is no column {name!r}{known}"

    def field_or_none(
        self, name_or_id: str | int, *, case_sensitive: bool = True
    ) -> NestedField | None:
        """As ``find_field``, with None where there is no such field."""
        if isinstance(name_or_id, int):
            return self._index.fields.get(name_or_id)
        field_id = self._index.id_of(name_or_id, case_sensitive=case_sensitive)
        return None if field_id is None else self._index.fields[field_id]

    def find_type(self, name_or_id: str | int, *, case_sensitive: bool = True) -> IcebergType:
        """Return the type of ``find_field``."""
        return self.find_field(name_or_id, case_sensitive=case_sensitive).field_type

    def find_column_name(self, field_id: int) -> str | None:
        """Return the full dotted name of an id; None where the schema has no such field."""
        path = self._index.paths.get(field_id)
        return None if path is None else ".".join(path)

    def name_path(self, field_id: int) -> tuple[str, ...]:
        """Return the names from the top-level column down to the field, whatever dots they hold.

        Raises:
            ValidationError: where the schema has no such field.
        """
        self.find_field(field_id)
        return self._index.paths[field_id]

    @property
    def column_names(self) -> tuple[str, ...]:
        """The full names of all fields, nested ones after their parents."""
        return tuple(".".join(path) for path in self._index.paths.values())

    @property
    def field_ids(self) -> frozenset[int]:
        """The ids of all fields, nested ones included."""
        return frozenset(self._index.fields)

    @property
    def fields_by_id(self) -> Mapping[int, NestedField]:
        """All fields by id, nested ones after their parents."""
        return self._index.fields

    @property
    def parent_ids(self) -> Mapping[int, int]:
        """The id of the field around each nested field; top-level fields are not in it."""
        return self._index.parents

    @property
    def highest_field_id(self) -> int:
        """The highest id in use, 0 for a schema without fields."""
        return max(self._index.fields, default=0)

    def is_inside_collection(self, field_id: int) -> bool:
        """True for an element, key or value and everything below one (rules 65, 70)."""
        return field_id in self._index.in_collections

    def identifier_field_names(self) -> tuple[str, ...]:
        """Return the full names of the identifier fields."""
        return tuple(".".join(self._index.paths[i]) for i in self.identifier_field_ids)

    def is_same_as(self, other: Schema) -> bool:
        """True where both have the same columns and identifier fields, whatever their ids are."""
        return self.fields == other.fields and set(self.identifier_field_ids) == set(
            other.identifier_field_ids
        )

    def select(self, columns: Iterable[str | int], *, case_sensitive: bool = True) -> Schema:
        """Return the schema of some columns, in this schema's order; a named struct is taken whole.

        Raises:
            ValidationError: where a column is not there.
        """
        chosen = {
            self.find_field(column, case_sensitive=case_sensitive).field_id for column in columns
        }
        kept = tuple(_selected_fields(self.fields, chosen))
        ids = index_fields(StructType(kept)).fields
        return Schema(kept, self.schema_id, tuple(i for i in self.identifier_field_ids if i in ids))

    def with_id(self, schema_id: int) -> Schema:
        """Return the same schema under another id."""
        return replace(self, schema_id=schema_id)

    def check_types_for(self, format_version: int) -> None:
        """Check types, defaults and ids against a format version (rules 17, 29, 36, 38, 39, 66).

        Raises:
            ValidationError: naming the column and the rule's demand.
        """
        check_schema(self._index, format_version)

    @classmethod
    def from_json(cls, json_value: Any) -> Schema:
        """Return the schema of its JSON (rule 198); a missing ``schema-id`` is 0, as in v1.

        Raises:
            InvalidMetadataError: where it is malformed or contradicts itself.
        """
        if not isinstance(json_value, Mapping):
            raise InvalidMetadataError(f"{json_value!r} is not a schema: expected an object")
        struct = parse_type({"type": "struct", **json_value})
        schema_id = json_value.get("schema-id", 0)
        identifiers = json_value.get("identifier-field-ids") or []
        if not isinstance(struct, StructType):
            raise InvalidMetadataError(f"a schema is a struct, not {struct}", field="type")
        if not isinstance(schema_id, int) or isinstance(schema_id, bool):
            raise InvalidMetadataError(
                f"the schema id {schema_id!r} is no number", field="schema-id"
            )
        if not isinstance(identifiers, list) or not all(isinstance(i, int) for i in identifiers):
            raise InvalidMetadataError(
                f"{identifiers!r} is not a list of ids", field="identifier-field-ids"
            )
        try:
            return cls(struct.fields, schema_id, tuple(identifiers))
        except ValidationError as error:
            raise InvalidMetadataError(f"the schema {schema_id} is wrong: {error}") from error

    def to_json(self) -> dict[str, Any]:
        """Return the JSON of the schema (rule 198)."""
        json_value: dict[str, Any] = {"type": "struct", "schema-id": self.schema_id}
        if self.identifier_field_ids:
            json_value["identifier-field-ids"] = list(self.identifier_field_ids)
        json_value["fields"] = [field_to_json(field) for field in self.fields]
        return json_value

    def __str__(self) -> str:
        return "table {\n" + "".join(f"  {field}\n" for field in self.fields) + "}"


def _selected_fields(fields: Iterable[NestedField], chosen: set[int]) -> Iterator[NestedField]:
    for field in fields:
        if field.field_id in chosen:
            yield field
        else:
            kept = _selected_type(field.field_type, chosen)
            if kept is not None:
                yield replace(field, field_type=kept)


def _selected_type(field_type: IcebergType, chosen: set[int]) -> IcebergType | None:
    """The part of a type that holds chosen fields, or None where it holds none."""
    if isinstance(field_type, StructType):
        kept = tuple(_selected_fields(field_type.fields, chosen))
        return StructType(kept) if kept else None
    if isinstance(field_type, ListType):
        if field_type.element_id in chosen:
            return field_type
        element = _selected_type(field_type.element_type, chosen)
        return None if element is None else replace(field_type, element_type=element)
    if isinstance(field_type, MapType):
        if field_type.value_id in chosen or field_type.key_id in chosen:
            return field_type
        # A key is never cut: rows of a map are told apart by the whole of it.
        value = _selected_type(field_type.value_type, chosen)
        if value is not None:
            return replace(field_type, value_type=value)
        return field_type if _selected_type(field_type.key_type, chosen) else None
    return None


# -- checks ----------------------------------------------------------------------------------------


HIGHEST_FIELD_ID = 2_147_483_447
"""Ids above it are reserved for metadata columns (rule 66)."""

_V3_TYPES = tuple(form.kind for form in FORMS if form.since == 3)
_NULL_DEFAULT_TYPES = tuple(form.kind for form in FORMS if not form.is_ordered)


def check_identifier_fields(index: SchemaIndex, field_ids: Iterable[int]) -> None:
    """Identifier fields are required primitives, not floating, in required structs (rule 65)."""
    for field_id in field_ids:
        field = index.fields.get(field_id)
        if field is None:
            raise ValidationError(f"there is no column of id {field_id} to identify rows by")
        name, kind = ".".join(index.paths[field_id]), field.field_type
        for is_wrong, why in (
            (not isinstance(kind, PrimitiveType), f"{kind} is not a primitive"),
            (field.optional, "it is optional"),
            (isinstance(kind, FloatType | DoubleType), "it is a floating number"),
            (field_id in index.in_collections, "it is in a list or a map"),
        ):
            if is_wrong:
                raise ValidationError(f"{name!r} cannot identify rows: {why}")
        parent = index.parents.get(field_id)
        while parent is not None:
            if index.fields[parent].optional:
                raise ValidationError(
                    f"{name!r} cannot identify rows: it is in the optional struct "
                    f"{'.'.join(index.paths[parent])!r}"
                )
            parent = index.parents.get(parent)


def check_schema(index: SchemaIndex, format_version: int) -> None:
    """Types, defaults and ids fit the format version (rules 17, 29, 36, 38, 39, 66)."""
    for field_id, field in index.fields.items():
        name = ".".join(index.paths[field_id])
        if not 0 <= field_id <= HIGHEST_FIELD_ID:
            raise ValidationError(
                f"the id {field_id} of {name!r} is out of range: 0 to {HIGHEST_FIELD_ID}"
            )
        if format_version < 3:
            _check_before_v3(field, name, format_version)
        if isinstance(field.field_type, UnknownType) and field.required:
            raise ValidationError(f"{name!r} is of type unknown and must be optional")
        _check_defaults(field, name)


def _check_before_v3(field: NestedField, name: str, format_version: int) -> None:
    if isinstance(field.field_type, _V3_TYPES):
        raise ValidationError(
            f"{name!r} is of type {field.field_type}, which needs format version 3; "
            f"the table has version {format_version}"
        )
    if field.initial_default is not None:
        raise ValidationError(
            f"{name!r} has an initial default, which needs format version 3; "
            f"the table has version {format_version}: set its property format-version to 3"
        )


def _check_defaults(field: NestedField, name: str) -> None:
    for kind, value in (("initial", field.initial_default), ("write", field.write_default)):
        if value is None:
            continue
        if isinstance(field.field_type, _NULL_DEFAULT_TYPES):
            raise ValidationError(
                f"the {kind} default of {name!r} must be null: its type is {field.field_type}"
            )
        if isinstance(field.field_type, StructType) and value != ():
            raise ValidationError(
                f"the {kind} default of the struct {name!r} must be null or empty; give its "
                "fields defaults of their own"
            )


def levels_of(schema: Schema) -> int:
    """How deep its columns nest; 0 where none does."""
    depths: dict[int, int] = {}
    for field_id, parent in schema.parent_ids.items():
        depths[field_id] = depths.get(parent, 0) + 1
    return max(depths.values(), default=0)


# -- the fields by id and by name ------------------------------------------------------------------


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
        inside = in_collection or not isinstance(owner, StructType)
        for field in fields_inside(owner):
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
